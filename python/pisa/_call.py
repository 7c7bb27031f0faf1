"""From the caller's arguments to a kernel's: what all public operations share."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ._arrays import describe, fill, is_numpy, is_torch
from ._cuda import ordinal_of, require_cuda
from ._library import DEVICE_CPU, DEVICE_CUDA, DEVICE_CUDA_MANAGED, DTYPES, DLTensor

LAYOUTS = ("bshd", "bhsd")
BACKENDS = ("auto", "cpu", "cuda")


class Heads(NamedTuple):
    """Sizes of a [B, T, H, D] or [B, H, T, D] array, whatever its order."""

    dtype: str
    batch: int
    length: int
    heads: int
    dim: int
    device: int = -1  # number of the CUDA device, -1 on the CPU


def heads_of(name: str, array: Any, layout: str) -> Heads:
    """Sizes of `array` in `layout`; TypeError or ValueError with its name if it has none."""
    view = DLTensor()
    alive = fill(name, array, view)
    dtype, shape = describe(view)
    kind = view.device_type
    ordinal = view.device_id if kind in (DEVICE_CUDA, DEVICE_CUDA_MANAGED) else -1
    del alive
    if ordinal < 0 and kind != DEVICE_CPU:
        raise TypeError(
            f"expected {name} to be in the CPU's memory or on a CUDA device, but got DLPack device"
            f" {kind}"
        )
    if dtype not in DTYPES:
        raise TypeError(f"expected {name} to be of float32, float16 or bfloat16, but got {dtype}")
    if len(shape) != 4:
        order = "[B, T, H, D]" if layout == "bshd" else "[B, H, T, D]"
        raise ValueError(f"expected {name} to be {order}, but got shape {list(shape)}")
    if layout == "bshd":
        return Heads(dtype, shape[0], shape[1], shape[2], shape[3], ordinal)
    return Heads(dtype, shape[0], shape[2], shape[1], shape[3], ordinal)


def check_same(name: str, what: str, value: object, other: str, expected: object) -> None:
    """Raises unless a property of an argument is that of another; TypeError for dtypes."""
    if value != expected:
        error = TypeError if what == "dtype" else ValueError
        raise error(f"expected {what} of {name} to be {expected}, as in {other}, but got {value}")


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raises ValueError unless `value` is one of `allowed`."""
    if value not in allowed:
        raise ValueError(f"expected {name} to be one of {', '.join(allowed)}, but got {value!r}")


def check_backend(backend: str, name: str, array: Any) -> None:
    """Raises unless `array` is where `backend` works: "auto" is where the arrays are."""
    check_choice("backend", backend, BACKENDS)
    if backend == "auto":
        return
    if backend == "cuda":
        require_cuda()
    on_cuda = ordinal_of(name, array) >= 0
    if on_cuda != (backend == "cuda"):
        raise TypeError(
            f"expected {name} to be"
            f" {'on a CUDA device' if backend == 'cuda' else 'in the memory of the CPU'} with"
            f" backend={backend!r}, but it is"
            f" {'on a CUDA device' if on_cuda else 'in the memory of the CPU'}"
        )


def check_device(name: str, value: Heads, other: str, expected: Heads) -> None:
    """Raises unless two arrays are on one device."""
    if value.device != expected.device:
        places = [
            f"CUDA device {d}" if d >= 0 else "the CPU" for d in (value.device, expected.device)
        ]
        raise ValueError(
            f"expected {name} to be on {places[1]}, as {other} is, but got {places[0]}"
        )


def device_lengths(name: str, value: Any, batch: int, like: Any, limit: int | None) -> Any:
    """k_len or q_start as an int32 array [B] on the device of `like`. Numbers that are there
    already are not looked at; others are in [0, limit] if there is a limit."""
    if ordinal_of(name, value, absent=-2) >= 0:
        if not is_torch(value):
            return value
        import torch

        if value.dtype not in (torch.int32, torch.int64):
            raise TypeError(f"expected {name} to be of int32 or int64, but got {value.dtype}")
        if value.dim() == 0:
            value = value.expand(batch)
        if value.shape != (batch,):
            raise ValueError(
                f"expected {name} to be one number or [B] = [{batch}], but got shape"
                f" {list(value.shape)}"
            )
        return value.to(torch.int32).contiguous()
    numbers = lengths(name, value, batch)
    if is_torch(numbers):
        numbers = numbers.numpy()
    for i, number in enumerate(numbers.tolist()):
        if limit is not None and not 0 <= number <= limit:
            raise ValueError(f"expected {name}[{i}] to be in [0, {limit}], but got {number}")
    if is_torch(like):
        import torch

        if isinstance(value, int) or batch == 1:
            first = int(numbers[0]) if batch else 0
            return torch.full((batch,), first, dtype=torch.int32, device=like.device)
        return torch.from_numpy(numbers.copy()).to(like.device)
    return like.__array_namespace__().asarray(numbers, device=like.device)


def check_heads(heads: int, kv_heads: int) -> None:
    """Raises ValueError unless Hkv divides Hq."""
    if kv_heads < 1 or heads < 1 or heads % kv_heads:
        raise ValueError(
            "expected the query heads Hq to be a positive multiple of the kv heads Hkv, but got"
            f" {heads} and {kv_heads}"
        )


def softmax_scale(value: float | None, head_dim: int) -> float:
    """The factor of q . k: 1 / sqrt(D) where none is given."""
    if value is None:
        return 1 / math.sqrt(head_dim) if head_dim else 1.0
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"expected softmax_scale to be a number or None, but got {value!r}")
    number = float(value)
    if math.isnan(number):
        raise ValueError("expected softmax_scale to be a number, but got NaN")
    return number


def lengths(name: str, value: Any, batch: int) -> Any:
    """k_len or q_start as an int32 array [B], None for None: from an int (one for all), a sequence
    of ints, or an array of ints."""
    if value is None:
        return None
    if is_torch(value):
        import torch

        if value.dtype == torch.int32:
            array = value
        elif value.dtype == torch.int64:
            array = value.to(torch.int32)
            if not bool((array == value).all()):
                raise ValueError(f"expected {name} to fit in int32, but got {value.tolist()}")
        else:
            raise TypeError(f"expected {name} to be of int32 or int64, but got {value.dtype}")
    else:
        import numpy

        if hasattr(value, "__dlpack__") and not is_numpy(value):
            value = numpy.from_dlpack(value)
        wide = numpy.asarray(value)
        if wide.size == 0:
            wide = wide.astype(numpy.int64)
        if wide.dtype.kind not in "iu":
            raise TypeError(f"expected {name} to be an int or ints, but got {value!r}")
        array = wide.astype(numpy.int32)
        if (array != wide).any():
            raise ValueError(f"expected {name} to fit in int32, but got {value!r}")
    if len(array.shape) == 0:
        array = array.reshape(1).repeat(batch)
    if tuple(array.shape) != (batch,):
        raise ValueError(
            f"expected {name} to be one number or [B] = [{batch}], but got shape"
            f" {list(array.shape)}"
        )
    return array
