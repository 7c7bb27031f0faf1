"""Compiled kernels, one for each combination of what code depends on, and their calls."""

import ctypes
import json
import threading
import warnings
from typing import Any

from ._arrays import SIZE, fill
from ._cuda import chip
from ._library import (
    DTYPES,
    TARGET_CUDA,
    DLTensor,
    KernelSpec,
    RunInfo,
    Tensors,
    check,
    library,
)
from ._params import Params

# What code depends on: function, flags, dtype, Hq, Hkv, D, Dv, entries of a list, parameters, and
# the chip of a GPU, "" for the CPU.
Key = tuple[int, int, str, int, int, int, int, int, Params, str]

_TENSORS_SIZE = ctypes.sizeof(Tensors)


class Kernel:
    """A compiled kernel. Never destroyed: calls of other threads may be inside it at exit."""

    def __init__(self, key: Key, hints: int = 0) -> None:
        lib = library()
        handle = ctypes.c_void_p()
        spec = make_spec(key)
        spec.flags |= hints
        check(lib.pisaKernelCreate(ctypes.byref(spec), ctypes.byref(handle)))
        self._handle = handle.value
        self._run = lib.pisaKernelRun
        self.from_cache = bool(lib.pisaKernelIsFromCache(handle))
        self.scratch_seen = 0  # bytes, the most of all calls that asked
        warning = lib.pisaKernelGetWarning(handle).decode(errors="replace")
        if warning:
            warnings.warn(warning, RuntimeWarning, stacklevel=2)

    def __call__(
        self,
        arrays: dict[str, Any],
        scale: float,
        heads_inside: bool,
        measure: bool = False,
        stream: int | None = None,
    ) -> None:
        """Runs on arrays by the names of PisaTensors.

        `measure` keeps the scratch of the call in `scratch_seen`.
        """
        self.run(tuple(arrays), tuple(arrays.values()), scale, heads_inside, measure, stream)

    def run(
        self,
        names: tuple[str, ...],
        arrays: tuple[Any, ...],
        scale: float,
        heads_inside: bool,
        measure: bool = False,
        stream: int | None = None,
    ) -> None:
        """The same with names and arrays apart."""
        free = _free_frames.get(names)
        if free is None:
            free = _free_frames.setdefault(names, [])
        try:
            frame = free.pop()
        except IndexError:
            frame = Frame(names)
        tensors = frame.tensors
        tensors.heads_inside = heads_inside
        tensors.softmax_scale = scale
        alive = list(map(fill, names, arrays, frame.views))
        info = RunInfo(ctypes.sizeof(RunInfo)) if measure else None
        where = ctypes.addressof(info) if info else None
        status = self._run(self._handle, frame.address, stream, where)
        del alive
        free.append(frame)
        if status:
            check(status)
        if info:
            self.scratch_seen = max(self.scratch_seen, info.scratch_bytes)


class Frame:
    """The structs of one call, made once and used again: most of their fields stay."""

    __slots__ = ("address", "store", "tensors", "views")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.store = (DLTensor * len(names))()
        self.views = [self.store[i] for i in range(len(names))]
        self.tensors = Tensors(_TENSORS_SIZE)
        for i, name in enumerate(names):
            setattr(self.tensors, name, ctypes.addressof(self.store) + i * SIZE)
        self.address = ctypes.addressof(self.tensors)


# Frames that no call is using, by their tensors. Appending and popping are atomic; a frame lost to
# an exception is only made again.
_free_frames: dict[tuple[str, ...], list[Frame]] = {}


def make_spec(key: Key) -> KernelSpec:
    """The PisaKernelSpec of a key."""
    function, flags, dtype, heads, kv_heads, head_dim, value_dim, width, params, gpu = key
    spec = KernelSpec()
    library().pisaKernelSpecInit(ctypes.byref(spec))
    spec.function = function
    spec.flags = flags
    spec.dtype = DTYPES[dtype]
    spec.summary_dtype = DTYPES[params.summary_dtype] if params.summary_dtype else 0
    spec.heads, spec.kv_heads = heads, kv_heads
    spec.head_dim, spec.value_dim = head_dim, value_dim
    spec.list_width = width
    spec.block_size = params.block_size
    spec.fanout = params.fanout
    spec.topk = params.topk
    spec.beam = -1 if params.beam is None else params.beam
    spec.rerank = -1 if params.rerank is None else params.rerank
    spec.leaf_atoms = params.leaf_atoms
    spec.query_block = params.query_block
    spec.sink_blocks = params.sink_blocks
    spec.local_blocks = params.local_blocks
    spec.causal = params.causal
    if gpu:
        spec.target = TARGET_CUDA
        spec.chip = gpu.encode()
    return spec


def explain_spec(key: Key) -> dict[str, Any]:
    """The compiler's choices for a key."""
    text = ctypes.c_char_p()
    check(library().pisaExplain(ctypes.byref(make_spec(key)), ctypes.byref(text)))
    assert text.value is not None
    result: dict[str, Any] = json.loads(text.value)
    return result


_kernels: dict[Key, Kernel] = {}
_compiling: dict[Key, threading.Lock] = {}
_guard = threading.Lock()


def chip_of(ordinal: int) -> str:
    """The last part of a key, for arrays on a CUDA device (-1: on the CPU)."""
    return "" if ordinal < 0 else chip(ordinal)


def get_kernel(key: Key, hints: int = 0) -> Kernel:
    """The kernel of a key, compiled once however many threads ask for it. `hints`: PISA_EXPECT_*,
    what calls on a GPU will give."""
    kernel = _kernels.get(key)
    if kernel is not None:
        return kernel
    with _guard:
        lock = _compiling.setdefault(key, threading.Lock())
    with lock:
        kernel = _kernels.get(key)
        if kernel is None:
            kernel = _kernels[key] = Kernel(key, hints)
    return kernel


def compiled_kernel(key: Key) -> Kernel | None:
    """The kernel of a key if this process has compiled it."""
    return _kernels.get(key)
