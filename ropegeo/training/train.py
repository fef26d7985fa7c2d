"""Training a controlled model: one loop, exactly repeatable, that can be stopped anywhere and resumed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ropegeo._version import __version__
from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.tasks import ControlledTask, TaskBatch, task_dataset
from ropegeo.tasks.controlled import checked_integer
from ropegeo.training.extra import import_models
from ropegeo.training.network import config_of, correct_by_hops, last_logits, load_network, make_network
from ropegeo.training.recipes import BETAS, CLIP_NORM, WEIGHT_DECAY, TrainingRecipe
from ropegeo.training.run_folder import RunFolder, json_bytes

RESULT_SCHEMA = "ropegeo.training_result/1"
WATCHED = 600
"""Validation sequences that each checkpoint is judged by; the last one, by the whole part."""
TESTED = 5_000
CHECKPOINTS = 50
"""As many as a run keeps, unless told how often."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedModel:
    """A finished run.

    Attributes:
        folder: of the model: config.json and model.safetensors.
        accuracy: share of right answers on test sequences, by the 16-bit weights as written.
        by_hops: hop count to (right answers, sequences).
        resumed_at: the step it went on from; 0 for a run in one piece, the last step for one that was over before.
    """

    folder: Path
    accuracy: float
    by_hops: dict[int, tuple[int, int]]
    resumed_at: int


def train(
    task: ControlledTask,
    recipe: TrainingRecipe,
    *,
    seed: int,
    out: Path,
    threads: int = 1,
    checkpoint_every: int | None = None,
    progress: Callable[[int], None] = lambda _step: None,
) -> TrainedModel:
    """Train a model in a folder, or go on with the run that is there.

    The same seed, recipe, thread count and library versions give the same weights, bit for bit, however often the run
    was interrupted: the data come from the seed and the step alone, and the optimizer and the random state of dropout
    are kept with the weights. An interruption loses at most the steps since the last checkpoint.

    Args:
        task: what to learn.
        recipe: how.
        seed: of the data, the first weights and dropout.
        out: the folder; new, empty, or holding the same run.
        threads: of torch.
        checkpoint_every: steps between checkpoints. (default: 50 checkpoints in all)
        progress: called with the number of steps that are done.

    Raises:
        UnsupportedError: torch or transformers is missing.
        InvalidInputError: another run in the folder, or a file that cannot be written; the last state stays.
        FileFormatError: a damaged file in the folder.
    """
    torch, transformers = import_models("train")
    threads = checked_integer("train", "threads", threads, 1, 1024)
    every = max(1, round(recipe.steps / CHECKPOINTS)) if checkpoint_every is None else checkpoint_every
    every = checked_integer("train", "checkpoint_every", every, 1, recipe.steps)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "numpy": np.__version__}
    asked = {
        "package_version": __version__,
        "task": task.to_dict(),
        "recipe": recipe.to_dict(),
        "seed": seed,
        "threads": threads,
        "checkpoint_every": every,
        "versions": versions,
    }
    data = task_dataset(task, seed=seed)
    run = RunFolder(out, asked)
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    try:
        with run.locked():
            result = run.result()
            if result is not None:
                return _finished(run, result, resumed_at=recipe.steps)
            with torch.random.fork_rng(devices=[]):
                start = _Loop(task, recipe, data.train, data.validation, seed, run, versions).run_to_end(
                    every, progress
                )
            tested = load_network(out / "model", length=task.length)
            counts = correct_by_hops(tested, data.test.rows(np.arange(min(TESTED, len(data.test)))))
            result = {
                "schema": RESULT_SCHEMA,
                "package_version": __version__,
                "by_hops": {str(hops): list(pair) for hops, pair in counts.items()},
            }
            run.write("result.json", json_bytes(result))
            return _finished(run, result, resumed_at=start)
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1])


def _finished(run: RunFolder, result: dict[str, Any], *, resumed_at: int) -> TrainedModel:
    try:
        by_hops = {int(hops): (int(pair[0]), int(pair[1])) for hops, pair in result["by_hops"].items()}
        accuracy = sum(right for right, _ in by_hops.values()) / sum(total for _, total in by_hops.values())
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError) as error:
        raise FileFormatError(f"{run.path / 'result.json'} is not the result of a run ({error})") from error
    return TrainedModel(folder=run.path / "model", accuracy=accuracy, by_hops=by_hops, resumed_at=resumed_at)


def order_of_training(seed: int, epoch: int, count: int) -> Any:
    """The order in which an epoch passes through the training sequences."""
    return np.random.default_rng([seed, 1, epoch]).permutation(count)


class _Loop:
    """Weights, optimizer and the steps between them."""

    def __init__(
        self,
        task: ControlledTask,
        recipe: TrainingRecipe,
        train: TaskBatch,
        validation: TaskBatch,
        seed: int,
        run: RunFolder,
        versions: dict[str, str],
    ) -> None:
        self.torch, _ = import_models("train")
        self.task, self.recipe, self.seed, self.run, self.versions = task, recipe, seed, run, versions
        self.data, self.validation = train, validation
        if len(train) < recipe.batch:
            raise InvalidInputError(f"train: {len(train)} training sequences are fewer than a batch of {recipe.batch}")
        self.torch.manual_seed(seed)
        self.network = make_network(config_of(task, recipe, dtype="float32")).train()
        self.parameters = dict(self.network.named_parameters())
        matrices = [value for value in self.parameters.values() if value.ndim >= 2]
        vectors = [value for value in self.parameters.values() if value.ndim < 2]
        self.optimizer = self.torch.optim.AdamW(
            [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}],
            lr=recipe.learning_rate,
            betas=BETAS,
        )
        self.epoch, self.order = -1, np.zeros(0, dtype=np.int64)

    def run_to_end(self, every: int, progress: Callable[[int], None]) -> int:
        """All steps from the last state on, checkpoints, and the model; returns the step it started after."""
        state = self.run.last_state()
        start = 0 if state is None else state[0]
        if state is not None:
            self._restore(start, state[1])
        rows = self.run.log(until=start)
        spent = float(rows[-1]["cpu_seconds"]) if rows else 0.0
        if state is not None:
            rows.append({"step": start, "event": "resumed", "cpu_seconds": spent, "versions": self.versions})
        else:
            self._keep(rows, 0, [], spent)
        losses: list[float] = []
        clock = time.process_time()
        for step in range(start + 1, self.recipe.steps + 1):
            losses.append(self._step(step))
            progress(step)
            if step % every == 0 or step == self.recipe.steps:
                self._keep(rows, step, losses, spent + time.process_time() - clock)
                losses = []
        config = config_of(self.task, self.recipe, dtype="float16")
        self.run.save_model(config, self._half())
        return start

    def _batch(self, step: int) -> tuple[Any, Any]:
        size = self.recipe.batch
        epoch, place = divmod(step - 1, len(self.data) // size)
        if epoch != self.epoch:
            self.epoch, self.order = epoch, order_of_training(self.seed, epoch, len(self.data))
        rows = self.order[place * size : (place + 1) * size]
        return self.torch.from_numpy(self.data.tokens[rows]), self.torch.from_numpy(self.data.answers[rows])

    def _step(self, step: int) -> float:
        tokens, answers = self._batch(step)
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.rate(step)
        loss = self.torch.nn.functional.cross_entropy(last_logits(self.network, tokens), answers)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.network.parameters(), CLIP_NORM)
        self.optimizer.step()
        found = float(loss.detach())
        if not np.isfinite(found):
            raise InvalidInputError(
                f"train: the loss is {found} at step {step}; use another seed or a smaller learning rate"
            )
        return found

    def _keep(self, rows: list[dict[str, Any]], step: int, losses: list[float], seconds: float) -> None:
        """A checkpoint: the log first and the state last, so that a state always has its log."""
        last = step == self.recipe.steps
        watched = self.validation if last else self.validation.rows(np.arange(min(WATCHED, len(self.validation))))
        counts = correct_by_hops(self.network, watched)
        rows.append(
            {
                "step": step,
                "loss": float(np.mean(losses)) if losses else None,
                "learning_rate": self.recipe.rate(step) if step else 0.0,
                "accuracy": sum(right for right, _ in counts.values()) / len(watched),
                "by_hops": {str(hops): right / total for hops, (right, total) in counts.items() if total},
                "sequences": len(watched),
                "cpu_seconds": round(seconds, 3),
            }
        )
        self.run.save_checkpoint(step, self._half())
        self.run.write_log(rows)
        self.run.save_state(step, self._state())

    def _half(self) -> dict[str, Any]:
        half = {name: value.detach().to(self.torch.float16) for name, value in self.parameters.items()}
        if not all(bool(self.torch.isfinite(value).all()) for value in half.values()):
            raise InvalidInputError("train: a weight is beyond 16-bit floats; use a smaller learning rate")
        return half

    def _state(self) -> dict[str, Any]:
        tensors = {f"weight.{name}": value.detach() for name, value in self.parameters.items()}
        for name, value in self.parameters.items():
            for moment in ("exp_avg", "exp_avg_sq"):
                kept = self.optimizer.state.get(value, {})
                tensors[f"{moment}.{name}"] = kept.get(moment, self.torch.zeros_like(value))
        return tensors | {"random_state": self.torch.get_rng_state()}

    def _restore(self, step: int, tensors: dict[str, Any]) -> None:
        try:
            with self.torch.no_grad():
                for name, value in self.parameters.items():
                    value.copy_(tensors[f"weight.{name}"])
                    if step:
                        self.optimizer.state[value] = {
                            "step": self.torch.tensor(float(step)),
                            "exp_avg": tensors[f"exp_avg.{name}"].clone(),
                            "exp_avg_sq": tensors[f"exp_avg_sq.{name}"].clone(),
                        }
            self.torch.set_rng_state(tensors["random_state"])
        except (KeyError, RuntimeError, TypeError) as error:
            raise FileFormatError(
                f"{self.run.path}: the state after step {step} is not that of this model ({error}); remove it"
            ) from error
