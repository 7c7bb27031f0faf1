"""Compiled kernels, one for each combination of what code depends on, and their calls."""

import ctypes
import json
import threading
import warnings
from typing import Any

from ._arrays import SIZE, fill
from ._library import (
    DTYPES,
    DLTensor,
    KernelSpec,
    RunInfo,
    Tensors,
    check,
    library,
)
from ._params import Params

# What code depends on: function, flags, dtype, Hq, Hkv, D, Dv, entries of a list, parameters.
Key = tuple[int, int, str, int, int, int, int, int, Params]

_TENSORS_SIZE = ctypes.sizeof(Tensors)


class Kernel:
    """A compiled kernel. Never destroyed: calls of other threads may be inside it at exit."""

    def __init__(self, key: Key) -> None:
        lib = library()
        handle = ctypes.c_void_p()
        check(lib.pisaKernelCreate(ctypes.byref(make_spec(key)), ctypes.byref(handle)))
        self._handle = handle.value
        self._run = lib.pisaKernelRun
        self.from_cache = bool(lib.pisaKernelIsFromCache(handle))
        self.scratch_seen = 0  # bytes, the most of all calls that asked
        warning = lib.pisaKernelGetWarning(handle).decode(errors="replace")
        if warning:
            warnings.warn(warning, RuntimeWarning, stacklevel=2)

    def __call__(
        self, arrays: dict[str, Any], scale: float, heads_inside: bool, measure: bool = False
    ) -> None:
        """Runs on arrays by the names of PisaTensors; those absent or None are not there.

        `measure` keeps the scratch of the call in `scratch_seen`.
        """
        views = (DLTensor * len(arrays))()
        address = ctypes.addressof(views)
        tensors = Tensors(_TENSORS_SIZE)
        alive = []
        for i, (name, array) in enumerate(arrays.items()):
            alive.append(fill(name, array, views[i]))
            setattr(tensors, name, address + i * SIZE)
        tensors.heads_inside = heads_inside
        tensors.softmax_scale = scale
        info = RunInfo(ctypes.sizeof(RunInfo)) if measure else None
        where = ctypes.addressof(info) if info else None
        status = self._run(self._handle, ctypes.addressof(tensors), None, where)
        if status:
            check(status)
        if info:
            self.scratch_seen = max(self.scratch_seen, info.scratch_bytes)


def make_spec(key: Key) -> KernelSpec:
    """The PisaKernelSpec of a key."""
    function, flags, dtype, heads, kv_heads, head_dim, value_dim, width, params = key
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


def get_kernel(key: Key) -> Kernel:
    """The kernel of a key, compiled once however many threads ask for it."""
    kernel = _kernels.get(key)
    if kernel is not None:
        return kernel
    with _guard:
        lock = _compiling.setdefault(key, threading.Lock())
    with lock:
        kernel = _kernels.get(key)
        if kernel is None:
            kernel = _kernels[key] = Kernel(key)
    return kernel


def compiled_kernel(key: Key) -> Kernel | None:
    """The kernel of a key if this process has compiled it."""
    return _kernels.get(key)
