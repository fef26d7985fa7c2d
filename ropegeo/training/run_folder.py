"""The folder of a training run: what it was asked, its log, its states to resume from, its checkpoints, its model.

    run.json                        what was asked; a folder is resumed only for the same
    log.jsonl                       one line a checkpoint: loss, learning rate, accuracy by hop count
    state-000123.safetensors        weights, optimizer and random state after that step; the last two are kept
    checkpoints/step-000123.safetensors   the weights alone, 16-bit, for the dynamics of learning
    model/                          config.json and model.safetensors (16-bit), when the run is over
    result.json                     accuracy on sequences that were not trained on

Every file is written whole or not at all, and nothing but safetensors and JSON is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.files import write_atomically
from ropegeo.training.extra import import_models

RUN_SCHEMA = "ropegeo.run/1"
STATES_KEPT = 2
UNCOMPARED = ("package_version", "versions")
"""What may differ between a run and its continuation; the log then says so."""


def json_bytes(data: Any) -> bytes:
    """Indented JSON."""
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()


def _difference(key: str, old: Any, new: Any) -> tuple[str, Any, Any]:
    """The first thing in which two values of a key differ, inside it where both are dictionaries."""
    if isinstance(old, dict) and isinstance(new, dict):
        inner = next(name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name))
        return f"{key} {inner}", old.get(inner), new.get(inner)
    return key, old, new


class RunFolder:
    """A run's files.

    Args:
        path: the folder; made if it does not exist.
        asked: what the run is asked, for run.json.

    Raises:
        InvalidInputError: a folder that holds something else, or a run that was asked something else.
        FileFormatError: a run.json that cannot be read.
    """

    def __init__(self, path: Path, asked: dict[str, Any]) -> None:
        self.path = path
        self._run = path / "run.json"
        try:
            if path.exists() and not path.is_dir():
                raise InvalidInputError(f"run folder {str(path)!r} is a file; give a folder")
            if not self._run.exists():
                if path.is_dir() and any(path.iterdir()):
                    raise InvalidInputError(
                        f"run folder {str(path)!r} has files and no run.json; give a new or an empty folder"
                    )
                (path / "checkpoints").mkdir(parents=True, exist_ok=True)
                self.write("run.json", json_bytes({"schema": RUN_SCHEMA} | asked))
                return
        except OSError as error:
            raise InvalidInputError(f"run folder {str(path)!r} cannot be used ({error.strerror or error})") from error
        self._check_same(self._read_json(self._run), asked)

    def _check_same(self, before: Any, asked: dict[str, Any]) -> None:
        if not isinstance(before, dict) or before.get("schema") != RUN_SCHEMA:
            raise FileFormatError(f"{self._run}: not a run of this version ({RUN_SCHEMA})")
        now = json.loads(json.dumps(asked))
        for key, value in now.items():
            if key not in UNCOMPARED and before.get(key) != value:
                what, old, new = _difference(key, before.get(key), value)
                raise InvalidInputError(
                    f"run folder {str(self.path)!r} holds a run with another {what} ({old!r}, now {new!r}); "
                    "give the same options to resume it, or another folder"
                )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second process out while this one writes.

        Raises:
            InvalidInputError: another process has the folder.
        """
        try:
            import fcntl
        except ImportError:  # not a Unix: nothing keeps two processes apart there
            yield
            return
        with (self.path / ".lock").open("w") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise InvalidInputError(
                    f"run folder {str(self.path)!r} is in use by another process; wait for it or give another folder"
                ) from error
            yield

    def write(self, name: str, content: bytes) -> None:
        """Write one file whole.

        Raises:
            InvalidInputError: the system refuses (a full disk, say); what was there stays.
        """
        write_atomically([(self.path / name, content)], force=True)

    @staticmethod
    def _read_json(path: Path) -> Any:
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise FileFormatError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error})") from error

    # ---- the log ----

    def log(self, *, until: int) -> list[dict[str, Any]]:
        """The rows of the log up to a step.

        Raises:
            FileFormatError: a row that is not one.
        """
        path = self.path / "log.jsonl"
        if not path.exists():
            return []
        try:
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            return [row for row in rows if row["step"] <= until]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileFormatError(f"{path} cannot be read ({error}); remove it to go on without it") from error

    def write_log(self, rows: list[dict[str, Any]]) -> None:
        """Replace the log."""
        self.write("log.jsonl", "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode())

    # ---- states ----

    def _states(self) -> list[Path]:
        return sorted(self.path.glob("state-*.safetensors"))

    def save_state(self, step: int, tensors: dict[str, Any]) -> None:
        """Keep what a run needs to go on after a step; the last `STATES_KEPT` stay."""
        from safetensors.torch import save

        self.write(f"state-{step:07d}.safetensors", save(tensors, {"step": str(step)}))
        for old in self._states()[:-STATES_KEPT]:
            old.unlink(missing_ok=True)

    def last_state(self) -> tuple[int, dict[str, Any]] | None:
        """The step and the tensors of the newest state, or None.

        Raises:
            FileFormatError: it is damaged; the message says how to go on from the one before.
        """
        states = self._states()
        if not states:
            return None
        torch, _ = import_models("last_state")
        from safetensors import SafetensorError, safe_open

        newest = states[-1]
        try:
            with safe_open(newest, framework="pt") as file:
                step = int(file.metadata()["step"])
                names = list(file.keys())
                tensors = {name: file.get_tensor(name) for name in names}
            if not all(bool(torch.isfinite(value).all()) for value in tensors.values() if value.is_floating_point()):
                raise ValueError("NaN or infinity")
        except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
            before = f"go on from {states[-2].name}" if len(states) > 1 else "start again"
            raise FileFormatError(f"{newest} is damaged ({error}); remove it to {before}") from error
        return step, tensors

    # ---- results ----

    def save_checkpoint(self, step: int, weights: dict[str, Any]) -> None:
        """Keep the weights after a step, in 16 bits."""
        from safetensors.torch import save

        self.write(f"checkpoints/step-{step:07d}.safetensors", save(weights, {"step": str(step)}))

    def save_model(self, config: dict[str, Any], weights: dict[str, Any]) -> Path:
        """Write the folder of the finished model; the same weights give the same bytes."""
        from safetensors.torch import save

        (self.path / "model").mkdir(exist_ok=True)
        self.write("model/config.json", json_bytes(config))
        self.write("model/model.safetensors", save(weights, {"format": "pt"}))
        return self.path / "model"

    def result(self) -> dict[str, Any] | None:
        """What a finished run has written, or None.

        Raises:
            FileFormatError: it cannot be read.
        """
        path = self.path / "result.json"
        if not path.exists():
            return None
        found = self._read_json(path)
        if not isinstance(found, dict):
            raise FileFormatError(f"{path} is not the result of a run")
        return found
