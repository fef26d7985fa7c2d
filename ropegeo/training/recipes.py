"""Sizes of the controlled models, and the recipes that train them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ropegeo.errors import InvalidInputError
from ropegeo.tasks.controlled import checked_integer
from ropegeo.tasks.oracles import shown

MAX_STEPS = 1_000_000
BETAS = (0.95, 0.999)
WEIGHT_DECAY = 1e-4
CLIP_NORM = 1.0
POSITIONS = 1024


@dataclass(frozen=True, kw_only=True)
class TrainingRecipe:
    """How a model of one size is trained on one task.

    AdamW with betas (0.95, 0.999), weight decay 1e-4 on matrices, gradients clipped to norm 1; the learning rate rises
    linearly over `warm_up` steps and falls linearly to 0 at `steps`. The loss is that of the last token.

    Attributes:
        size: name of the size.
        name: name of the recipe.
        layers: layers, of one head each.
        width: width of the model and of its head, all of it rotated.
        batch: sequences a step.
        learning_rate: at the end of the warm-up.
        warm_up: steps.
        dropout: of embeddings, attention and residuals.
        steps: steps in all.

    Source: `printed` is the recipe of arXiv 2605.31558, appendix C; the others are ours.
    """

    size: str
    name: str
    layers: int
    width: int
    batch: int
    learning_rate: float
    warm_up: int
    dropout: float
    steps: int

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 1."""
        rising = min(1.0, step / self.warm_up)
        falling = (self.steps - step + 1) / max(1, self.steps - self.warm_up)
        return self.learning_rate * max(0.0, min(rising, falling))

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return asdict(self)


_SIZES = {"tiny": (6, 64), "small": (8, 64), "paper": (12, 128)}
# (size, recipe): batch, learning rate, warm-up, dropout, steps of the number task and of the letter task.
_RECIPES = {
    ("tiny", "fast"): (128, 1e-3, 150, 0.0, 1500, 1500),
    ("small", "fast"): (64, 1e-3, 300, 0.1, 4000, 5000),
    ("paper", "fast"): (64, 5e-4, 300, 0.1, 2500, 2500),
    ("paper", "printed"): (64, 1e-4, 750, 0.1, 6750, 6750),
}
SIZES = tuple(_SIZES)
RECIPES = tuple(dict.fromkeys(name for _, name in _RECIPES))


def recipe(task: str, size: str, name: str = "fast", *, steps: int | None = None) -> TrainingRecipe:
    """The recipe of a task, a size and a name.

    Args:
        task: `number` or `letter`.
        size: `tiny`, `small` or `paper`.
        name: `fast` or `printed`.
        steps: in place of the recipe's own; the learning rate falls to 0 at the last one.

    Raises:
        InvalidInputError: an unknown size or recipe, `printed` for another size than the paper's, or steps below 1.

    Example:
        >>> recipe("number", "tiny").steps
        1500
    """
    if size not in SIZES:
        raise InvalidInputError(f"size {shown(size)} is unknown; use one of {', '.join(SIZES)}")
    if name not in RECIPES:
        raise InvalidInputError(f"recipe {shown(name)} is unknown; use one of {', '.join(RECIPES)}")
    if (size, name) not in _RECIPES:
        raise InvalidInputError(f"recipe {name!r} is for size 'paper'; size {size!r} has the recipe 'fast'")
    batch, learning_rate, warm_up, dropout, number_steps, letter_steps = _RECIPES[size, name]
    layers, width = _SIZES[size]
    own = {"number": number_steps, "letter": letter_steps}.get(task)
    if own is None:
        raise InvalidInputError(f"task {shown(task)} is unknown; use one of number, letter")
    return TrainingRecipe(
        size=size,
        name=name,
        layers=layers,
        width=width,
        batch=batch,
        learning_rate=learning_rate,
        warm_up=warm_up,
        dropout=dropout,
        steps=checked_integer("recipe", "steps", own if steps is None else steps, 1, MAX_STEPS),
    )
