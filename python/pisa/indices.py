"""Lists of blocks in the orders that other selectors and kernels use."""

from typing import Any

from ._arrays import is_torch
from ._call import check_choice

# Orders of a list's axes: ours, and those of packed and of token-major kernels.
ORDERS = ("bhqk", "hqk", "bqhk")


def _as_int32(indices: Any) -> Any:
    if is_torch(indices):
        import torch

        if indices.dtype not in (torch.int32, torch.int64):
            raise TypeError(f"expected indices to be of int32 or int64, but got {indices.dtype}")
        return indices.to(torch.int32)
    import numpy

    array = numpy.asarray(indices)
    if array.dtype.kind != "i":
        raise TypeError(f"expected indices to be of int32 or int64, but got {array.dtype}")
    return array.astype(numpy.int32, copy=False)


def from_block_lists(indices: Any, order: str) -> Any:
    """Lists for `block_sparse_attention` from those of another kernel.

    order: "hqk" for [Hkv, T, K] (one sequence), "bqhk" for [B, T, Hkv, K], "bhqk" for what is
    in the right order already. Returns [B, Hkv, T, K] int32, a view where it can be. Numbers past
    int32 and the meaning of -1 are the caller's: -1 and whatever is out of range means no block.

    >>> import numpy as np
    >>> from_block_lists(np.zeros((2, 5, 3), np.int64), "hqk").shape
    (1, 2, 5, 3)
    """
    check_choice("order", order, ORDERS)
    array = _as_int32(indices)
    rank = len(order)
    if len(array.shape) != rank:
        raise ValueError(
            f"expected indices of order {order!r} to have {rank} dimensions, but got shape"
            f" {list(array.shape)}"
        )
    if order == "hqk":
        return array[None]
    return array.swapaxes(1, 2) if order == "bqhk" else array


def to_block_lists(indices: Any, order: str) -> Any:
    """The lists [B, Hkv, NQ, K] of `attention` or `route` in another order; see
    `from_block_lists`. "hqk" needs a batch of one.

    >>> import numpy as np
    >>> to_block_lists(np.zeros((1, 2, 5, 3), np.int32), "bqhk").shape
    (1, 5, 2, 3)
    """
    check_choice("order", order, ORDERS)
    array = _as_int32(indices)
    if len(array.shape) != 4:
        raise ValueError(
            f"expected indices to be [B, Hkv, NQ, K], but got shape {list(array.shape)}"
        )
    if order == "hqk":
        if array.shape[0] != 1:
            raise ValueError(f"expected a batch of 1 for order 'hqk', but got {array.shape[0]}")
        return array[0]
    return array.swapaxes(1, 2) if order == "bqhk" else array
