r"""Index heads as run: the first length at which a number format points elsewhere, and the weights that it gives.

What is computed, operation by operation, is in `arithmetic.py`; every logit of every query position is computed so,
and none is bounded, sampled or skipped. A head is asked at every position i >= offset with one query content, over
keys of one content at 0..i: length n = i + 1. It is *wrong* where a rival's logit is larger than the target's, *tied*
where the largest is equal, and has an *overflow* where a logit is NaN or +infinity.

Why a format fails is told by the exact gaps at the failing length, L(target) - L(rival) in real arithmetic:

* `near return`: the rival is the one that is closest in exact arithmetic, more than one step away from the target: the
  planes have nearly come back, the exact margin is tiny there, and the format is too coarse for it;
* `rounding`: any other rival, a neighbour of the target included: the format cannot tell even what exact arithmetic
  holds apart better than the runner-up, or what lies side by side;
* `overflow`.

Softmax. With l the emulated logits, S = sum over the rivals of exp(l - l_target), weight w = 1/(1 + S). S is summed
in float64 relative to the largest logit so far: terms err by 4u of themselves, u = 2^-53, and by u |l - top|, which
counts for at most u (1 + log n) of the sum; each tile adds a rescaling (5u) and an addition (u), and a tile's own sum
16u. So

    |error of log S| <= (6 tiles + 64) 2^-53,    and a quarter of it for w.

Source: ours; docs/MATHEMATICS.md, section 8.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from ropegeo._arrays import FloatArray
from ropegeo.engine.work import Progress
from ropegeo.errors import InvalidInputError
from ropegeo.limits.arithmetic import Arithmetic
from ropegeo.limits.emulation_results import EmulatedLength, EmulatedWeightLength, EmulatedWeights
from ropegeo.limits.rotated_head import RotatedHead, log_error, overflowed
from ropegeo.spectrum import RopeSpectrum

__all__ = [
    "DEFAULT_SEARCHED",
    "EmulatedLength",
    "EmulatedWeightLength",
    "EmulatedWeights",
    "emulated_weights",
    "first_light_length",
    "first_wrong_length",
]

DEFAULT_SEARCHED = 4096


def first_wrong_length(
    query: Float64[FloatArray, " head_dim"],
    key: Float64[FloatArray, " head_dim"],
    spectrum: RopeSpectrum,
    *,
    offset: int,
    scale: float,
    arithmetic: Arithmetic,
    max_length: int = DEFAULT_SEARCHED,
    start_position: int = 0,
    window: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> EmulatedLength:
    """First length at which an index head, computed in a number format, points elsewhere, ties or overflows.

    Args:
        query: content of every query, before rotation; turned back by the offset, as built heads have it.
        key: content of every key, before rotation.
        spectrum: the rotation.
        offset: distance of the target.
        scale: factor on the dot product; 1/sqrt(head_dim) in most models.
        arithmetic: how the model computes.
        max_length: the largest length to look at, above the offset, at most 2^18.
        start_position: position of the first key.
        window: keys that a query sees, itself included; above the offset.
        threads: all usable cores if not given.
        progress: called now and then with the number of query positions done.

    Raises:
        InvalidInputError: an offset outside the length or the window, or another value out of range.
        UnsupportedError: a length beyond 2^18.

    Accuracy: exact for the arithmetic of `ropegeo.limits.arithmetic`; gaps within `exact_gap_error`.

    Source: ours; docs/MATHEMATICS.md, section 8.

    Example:
        >>> spectrum, v = RopeSpectrum.from_angle("1"), np.array([1.0, 0.0])
        >>> format_16 = Arithmetic(number_format="bfloat16")
        >>> found = first_wrong_length(v, v, spectrum, offset=0, scale=1.0, arithmetic=format_16)
        >>> found.first_wrong_length, found.outcome, found.rival, found.cause
        (47, 'wrong', 44, 'near return')
    """
    head = RotatedHead.checked(
        "first_wrong_length",
        query,
        key,
        spectrum,
        offset=offset,
        scale=scale,
        arithmetic=arithmetic,
        max_length=max_length,
        start_position=start_position,
        window=window,
    )
    unsure = False
    for start, target_sum, top_sum in head.walk(head.tops, offset, max_length, threads, progress):
        target, top = head.logits(target_sum), head.logits(top_sum)
        failed = ~(top < target) | overflowed(target) | overflowed(top)
        shaky = head.order_may_fail(start, target_sum, top_sum)
        if failed.any():
            row = int(failed.argmax())
            found = head.failure(start + row)
            return EmulatedLength(
                first_wrong_length=start + row + 1,
                searched=start + row + 1,
                outcome=found.outcome,
                offset=offset,
                rival=found.rival,
                target_logit=found.target_logit,
                rival_logit=found.rival_logit,
                exact_gap=found.gap,
                runner_up=found.runner_up,
                runner_up_gap=found.runner_up_gap,
                exact_gap_error=head.gap_error,
                order_matters=unsure or bool(shaky[:row].any()) or found.order_may_mend,
                arithmetic=arithmetic,
                start_position=start_position,
                window=window,
            )
        unsure = unsure or bool(shaky.any())
    return EmulatedLength(
        first_wrong_length=None,
        searched=max_length,
        outcome="none",
        offset=offset,
        order_matters=unsure,
        arithmetic=arithmetic,
        start_position=start_position,
        window=window,
    )


def emulated_weights(
    query: Float64[FloatArray, " head_dim"],
    key: Float64[FloatArray, " head_dim"],
    spectrum: RopeSpectrum,
    *,
    offset: int,
    scale: float,
    arithmetic: Arithmetic,
    last: int = DEFAULT_SEARCHED,
    first: int | None = None,
    start_position: int = 0,
    window: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> EmulatedWeights:
    """Logits and softmax weights of an index head as computed in a number format, at every length of a range.

    Args:
        query: as in `first_wrong_length`, like all that is not named here.
        key: content of every key.
        spectrum: the rotation.
        offset: distance of the target.
        scale: factor on the dot product.
        arithmetic: how the model computes.
        last: the largest length.
        first: the smallest length; offset + 1 if not given.
        start_position: position of the first key.
        window: keys that a query sees.
        threads: all usable cores if not given.
        progress: called now and then with the number of query positions done.

    Raises:
        InvalidInputError: a value out of range.
        UnsupportedError: a length beyond 2^18.

    Accuracy: logits bit for bit; `log_rivals` within `log_error`.

    Source: ours; docs/MATHEMATICS.md, section 8.

    Example:
        >>> spectrum, v = RopeSpectrum.from_angle("1"), np.array([1.0, 0.0])
        >>> found = emulated_weights(v, v, spectrum, offset=0, scale=10.0, arithmetic=Arithmetic(), last=8)
        >>> float(found.weight[-1].round(6)), bool(found.right.all())
        (0.565716, True)
    """
    head = RotatedHead.checked(
        "emulated_weights",
        query,
        key,
        spectrum,
        offset=offset,
        scale=scale,
        arithmetic=arithmetic,
        max_length=last,
        start_position=start_position,
        window=window,
    )
    begin = offset if first is None else first - 1
    if not offset <= begin < last:
        raise InvalidInputError(
            f"emulated_weights: the lengths {begin + 1} to {last} must begin above the offset {offset} and not be empty"
        )
    parts = list(head.walk(head.weights, begin, last, threads, progress))
    target, top, log_sum = (np.concatenate([part[place] for part in parts]) for place in (1, 2, 3))
    return EmulatedWeights(
        lengths=np.arange(begin + 1, last + 1),
        target=target,
        rival=top,
        log_rivals=log_sum,
        log_error=log_error(last),
        arithmetic=arithmetic,
    )


def first_light_length(
    query: Float64[FloatArray, " head_dim"],
    key: Float64[FloatArray, " head_dim"],
    spectrum: RopeSpectrum,
    *,
    offset: int,
    scale: float,
    arithmetic: Arithmetic,
    weight: float = 0.5,
    max_length: int = DEFAULT_SEARCHED,
    start_position: int = 0,
    window: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> EmulatedWeightLength:
    """First length at which the target's softmax weight, from logits computed in a number format, is not above a value.

    Args:
        query: as in `first_wrong_length`, like all that is not named here.
        key: content of every key.
        spectrum: the rotation.
        offset: distance of the target.
        scale: factor on the dot product.
        arithmetic: how the model computes.
        weight: what the target must exceed, strictly between 0 and 1: for built heads 1/2 for an integer query, 1/4
            for a letter query, 3/4 for a fixed offset above 0.
        max_length: the largest length to look at.
        start_position: position of the first key.
        window: keys that a query sees.
        threads: all usable cores if not given.
        progress: called now and then with the number of query positions done.

    Raises:
        InvalidInputError: a weight that is not between 0 and 1, or another value out of range.
        UnsupportedError: a length beyond 2^18.

    Accuracy: logits bit for bit; a weight within `weight_error` of the value counts as not above it.

    Source: ours; docs/MATHEMATICS.md, section 8.
    """
    if not 0 < weight < 1:
        raise InvalidInputError(f"first_light_length: weight {weight} must lie strictly between 0 and 1")
    head = RotatedHead.checked(
        "first_light_length",
        query,
        key,
        spectrum,
        offset=offset,
        scale=scale,
        arithmetic=arithmetic,
        max_length=max_length,
        start_position=start_position,
        window=window,
    )
    error = log_error(max_length)
    limit = float(np.log1p(-weight) - np.log(weight)) - error - 2.0**-50
    smallest, smallest_at, found, wrong = np.inf, offset + 1, None, False
    for start, target, top, log_sum in head.walk(head.weights, offset, max_length, threads, progress):
        here = EmulatedWeights(
            lengths=start + 1 + np.arange(len(target)),
            target=target,
            rival=top,
            log_rivals=log_sum,
            log_error=error,
            arithmetic=arithmetic,
        )
        light = ~(here.log_odds < limit)
        row = int(light.argmax()) if light.any() else len(light) - 1
        weights = here.weight[: row + 1]
        if np.isnan(weights[row]):
            weights = weights[:row]
        if weights.size and weights.min() < smallest:
            smallest, smallest_at = float(weights.min()), start + 1 + int(weights.argmin())
        if light.any():
            found, wrong = start + row + 1, not here.right[row]
            break
    return EmulatedWeightLength(
        first_light_length=found,
        searched=max_length if found is None else found,
        weight=weight,
        smallest_weight=smallest if smallest < np.inf else float("nan"),
        smallest_at=smallest_at,
        wrong=bool(wrong),
        weight_error=error / 4 + 1e-15,
        arithmetic=arithmetic,
    )
