"""Array types for annotations, and the rule that every stored array is read-only."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    FloatArray = NDArray[np.float64]
    ComplexArray = NDArray[np.complex128]
    IntArray = NDArray[np.int64]
    UintArray = NDArray[np.uint64]
    BoolArray = NDArray[np.bool_]
else:  # jaxtyping takes the plain class at run time.
    FloatArray = ComplexArray = IntArray = UintArray = BoolArray = np.ndarray


def frozen(values: ArrayLike, dtype: Any) -> Any:
    """A C-ordered, read-only copy of `values` as `dtype`."""
    array = np.array(values, dtype=dtype, order="C", copy=True)
    array.flags.writeable = False
    return array
