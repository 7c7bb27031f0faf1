"""NVIDIA's GPUs: which there are, and the stream that a framework works on."""

import ctypes
import sys
from functools import cache
from typing import Any

from ._arrays import fill, is_torch
from ._library import DEVICE_CUDA, DEVICE_CUDA_MANAGED, CudaDevice, DLTensor, check, library


def device_count() -> int:
    """Devices of this machine; RuntimeError, which says why, where there is no driver."""
    count = ctypes.c_int32()
    check(library().pisaGetCudaDeviceCount(ctypes.byref(count)))
    return count.value


def require_cuda() -> None:
    """Raises RuntimeError without a driver or a device."""
    if device_count() == 0:
        raise RuntimeError("no CUDA device")


@cache
def device(ordinal: int) -> CudaDevice:
    """What there is to know about a device."""
    found = CudaDevice(ctypes.sizeof(CudaDevice))
    check(library().pisaGetCudaDevice(ordinal, ctypes.byref(found)))
    return found


@cache
def chip(ordinal: int) -> str:
    """LLVM's name of what is compiled for a device; NotImplementedError for one that is too old."""
    name = device(ordinal).chip.decode()
    if not name:
        capability = device(ordinal).compute_capability
        raise NotImplementedError(
            f"expected a GPU of compute capability 8.0 or later, but device {ordinal} has"
            f" {capability // 10}.{capability % 10}"
        )
    return str(name)


def ordinal_of(name: str, array: Any, absent: int | None = None) -> int:
    """Number of the CUDA device that an array is on, -1 for the CPU; `absent` (or TypeError) for
    what is no array."""
    if is_torch(array):
        if array.device.type != "cuda":
            return -1
        return int(array.device.index or 0)
    if absent is not None and not hasattr(array, "__dlpack__"):
        return absent
    if hasattr(array, "__dlpack_device__"):
        kind, ordinal = array.__dlpack_device__()
        return int(ordinal) if int(kind) in (DEVICE_CUDA, DEVICE_CUDA_MANAGED) else -1
    view = DLTensor()
    alive = fill(name, array, view)
    del alive
    return view.device_id if view.device_type in (DEVICE_CUDA, DEVICE_CUDA_MANAGED) else -1


def current_stream(like: Any, ordinal: int) -> int | None:
    """The CUstream that the library of `like` works on; None is the default stream."""
    if not is_torch(like):
        return None
    torch = sys.modules["torch"]
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return int(raw(ordinal)) or None
    return torch.cuda.current_stream(ordinal).cuda_stream or None
