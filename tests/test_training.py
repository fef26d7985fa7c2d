"""Training: recipes, and runs that are stopped, resumed, refused and damaged."""

from __future__ import annotations

import importlib.util
import itertools
import json
from pathlib import Path

import pytest

from ropegeo.errors import FileFormatError, InvalidInputError, UnsupportedError
from ropegeo.tasks import NumberTask
from ropegeo.training.network import load_network, task_of
from ropegeo.training.recipes import TrainingRecipe, recipe
from ropegeo.training.run_folder import RunFolder
from ropegeo.training.train import TrainedModel, order_of_training, train

TASK = NumberTask(letters=6, target=2, pre_target=2, hops=(1, 2))
SMALL = TrainingRecipe(
    size="tiny", name="fast", layers=1, width=8, batch=16, learning_rate=1e-3, warm_up=2, dropout=0.1, steps=6
)


def run(out: Path, *, stop_at: int = 0, steps: int = 6) -> TrainedModel:
    """A run of 6 steps with a checkpoint every 2, stopped as Ctrl-C would after a step."""

    def progress(step: int) -> None:
        if step == stop_at:
            raise KeyboardInterrupt

    asked = TrainingRecipe(**(SMALL.to_dict() | {"steps": steps}))
    return train(TASK, asked, seed=3, out=out, checkpoint_every=2, progress=progress)


@pytest.mark.models
@pytest.mark.parametrize("stop_at", [1, 4, 5])
def test_a_run_that_was_stopped_ends_with_the_same_bytes(tmp_path: Path, stop_at: int) -> None:
    whole = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", stop_at=stop_at)
    parts = run(tmp_path / "parts")
    assert parts.resumed_at == (stop_at - 1) // 2 * 2  # stopped before the checkpoint of its own step
    for name in ("model/model.safetensors", "model/config.json", "checkpoints/step-0000004.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    assert parts.by_hops == whole.by_hops
    rows = [json.loads(line) for line in (tmp_path / "parts" / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "event" not in row] == [0, 2, 4, 6]
    again = run(tmp_path / "parts")
    assert (again.resumed_at, again.accuracy) == (6, parts.accuracy)


@pytest.mark.models
def test_other_options_and_other_folders_are_refused_and_nothing_changes(tmp_path: Path) -> None:
    run(tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(InvalidInputError, match="another recipe steps"):
        run(tmp_path / "run", steps=8)
    assert before == {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"has files and no run\.json"):
        run(tmp_path / "other")


@pytest.mark.models
def test_a_damaged_state_is_named_and_the_one_before_serves(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", stop_at=5)
    newest = tmp_path / "run" / "state-0000004.safetensors"
    newest.write_bytes(newest.read_bytes()[:-9])
    with pytest.raises(FileFormatError, match=r"state-0000004.safetensors is damaged .* go on from state-0000002"):
        run(tmp_path / "run")
    newest.unlink()
    resumed = run(tmp_path / "run")
    assert resumed.resumed_at == 2
    assert (resumed.folder / "model.safetensors").read_bytes() == (whole.folder / "model.safetensors").read_bytes()


@pytest.mark.models
def test_a_full_disk_keeps_the_last_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: RunFolder, name: str, content: bytes) -> None:
        if name == "state-0000004.safetensors":
            raise InvalidInputError(f"output {name!r} cannot be written (No space left on device); choose another")
        writes(self, name, content)

    writes = RunFolder.write
    monkeypatch.setattr(RunFolder, "write", full)
    with pytest.raises(InvalidInputError, match="No space left"):
        run(tmp_path / "run")
    monkeypatch.undo()
    assert run(tmp_path / "run").resumed_at == 2


@pytest.mark.models
def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", stop_at=3)
    other = RunFolder(tmp_path / "run", json.loads((tmp_path / "run" / "run.json").read_text()))
    with other.locked(), pytest.raises(InvalidInputError, match="in use by another process"):
        run(tmp_path / "run")


@pytest.mark.models
def test_a_model_folder_that_is_wrong_is_named(tmp_path: Path) -> None:
    folder = run(tmp_path / "run").folder
    assert task_of(folder) == TASK
    assert load_network(folder, length=2000).config.n_positions == 2000
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"n_layer": 2}))
    with pytest.raises(FileFormatError, match=r"does not fit config.json"):
        load_network(folder, length=5)
    (folder / "config.json").write_text(json.dumps(config | {"ropegeo_task": {"name": "chess"}}))
    with pytest.raises(FileFormatError, match="names no task"):
        task_of(folder)


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is here")
def test_without_the_extra_the_message_says_what_installs_it(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"pip install 'ropegeo\[models\]'"):
        run(tmp_path / "run")
    assert not (tmp_path / "run").exists()


REFUSED = [
    (("number", "huge"), r"size 'huge' is unknown; use one of tiny, small, paper"),
    (("number", "tiny", "slow"), r"recipe 'slow' is unknown"),
    (("number", "tiny", "printed"), r"recipe 'printed' is for size 'paper'"),
    (("chess", "tiny"), r"task 'chess' is unknown"),
]


@pytest.mark.parametrize(("names", "message"), REFUSED)
def test_unknown_names_are_refused(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        recipe(*names)
    for steps in (0, True, 10**9):
        with pytest.raises(InvalidInputError, match="steps is"):
            recipe("number", "tiny", steps=steps)


def test_the_rate_rises_and_falls_to_nothing() -> None:
    asked = recipe("letter", "paper", "printed")
    assert asked.rate(750) == asked.learning_rate == 1e-4
    assert asked.rate(1) == pytest.approx(1e-4 / 750)
    assert asked.rate(6750) == pytest.approx(1e-4 / 6000)
    rates = [asked.rate(step) for step in range(750, 6751)]
    assert all(a >= b for a, b in itertools.pairwise(rates))


def test_each_epoch_passes_every_sequence_once() -> None:
    first, second = order_of_training(1, 0, 500), order_of_training(1, 1, 500)
    assert sorted(first) == sorted(second) == list(range(500))
    assert list(first) != list(second)
