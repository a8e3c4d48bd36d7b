"""Tensors as numpy arrays of the same memory, and back.

Small copies are far cheaper in numpy than in torch, and gathering byte rows is ten times faster
there, so records are copied as numpy arrays. A dtype that numpy lacks travels as an integer of the
same size: a copy does not care what the bits mean.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

# What the elements are is known at run time only; this name keeps that in one place.
Array = npt.NDArray[Any]

_NUMPY: Final[dict[torch.dtype, np.dtype[Any]]] = {
    torch.bool: np.dtype(np.bool_),
    torch.uint8: np.dtype(np.uint8),
    torch.uint16: np.dtype(np.uint16),
    torch.uint32: np.dtype(np.uint32),
    torch.uint64: np.dtype(np.uint64),
    torch.int8: np.dtype(np.int8),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64),
    torch.float16: np.dtype(np.float16),
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.complex64: np.dtype(np.complex64),
    torch.complex128: np.dtype(np.complex128),
}
_TORCH: Final = {theirs: ours for ours, theirs in _NUMPY.items()}
_SAME_SIZE: Final = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def torch_dtype(dtype: np.dtype[Any]) -> torch.dtype | None:
    """Return the torch dtype that has the same elements as a numpy dtype, if there is one."""
    return _TORCH.get(dtype)


def stand_in(dtype: torch.dtype) -> torch.dtype | None:
    """Return the dtype as which elements travel through numpy; None when they cannot.

    Quantised and sub-byte dtypes cannot: their bits mean nothing without what is kept beside them.
    """
    if dtype in _NUMPY:
        return dtype
    if dtype.is_floating_point or dtype.is_complex:
        return _SAME_SIZE.get(dtype.itemsize)
    return None


def array_of(tensor: torch.Tensor) -> Array:
    """Return the elements of a dense host tensor as an array, without a copy where possible.

    The autograd history is left behind; a pending conjugation or negation is carried out.
    """
    try:
        return tensor.numpy()
    except (RuntimeError, TypeError):
        plain = tensor.detach().resolve_conj().resolve_neg()
        return plain.view(stand_in(plain.dtype) or plain.dtype).numpy()


def tensor_of(array: Array, dtype: torch.dtype) -> torch.Tensor:
    """Return the tensor over an array that `array_of` would give that array for."""
    tensor = torch.from_numpy(array)
    return tensor if tensor.dtype is dtype else tensor.view(dtype)


def empty_array(shape: tuple[int, ...], dtype: torch.dtype) -> Array:
    """Return a new array that holds elements of a dtype; untouched pages cost no memory."""
    return np.zeros(shape, dtype=array_dtype(dtype))


def array_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """Return the dtype of the arrays that hold elements of a dtype."""
    return _NUMPY[stand_in(dtype) or dtype]
