"""libpisa through ctypes: the structs of include/pisa-c, and errors as Python exceptions."""

import ctypes
import os
from ctypes import POINTER, c_char_p, c_float, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from functools import cache
from pathlib import Path

FILE = "libpisa.so"

# PisaFunction
BUILD_PYRAMID, ROUTE, ATTENTION, FORWARD = 1, 2, 4, 7
# Flags of PisaKernelSpec
WITHOUT_Q_START, WANT_OPEN_SUMS, WANT_COUNT, WANT_SCORES, WANT_LSE, CHECK_INPUTS = (
    1 << i for i in range(6)
)
EXPECT_K_LEN, EXPECT_Q_START, EXPECT_INDICES, EXPECT_MANY_KEYS = 64, 128, 256, 512
MANY_KEYS = 16384
# PisaTarget
TARGET_CPU, TARGET_CUDA = 0, 1
# PisaDType, by our name of it
DTYPES = {"f32": 1, "f16": 2, "bf16": 3}

# Device types and type codes of DLPack
DEVICE_CPU, DEVICE_CUDA, DEVICE_CUDA_MANAGED = 1, 2, 13
CODE_INT, CODE_FLOAT, CODE_BFLOAT = 0, 2, 4


class DLTensor(ctypes.Structure):
    """DLPack's DLTensor, which is ABI of every version of it."""

    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class KernelSpec(ctypes.Structure):
    """PisaKernelSpec."""

    _fields_ = (
        ("struct_size", c_size_t),
        ("function", ctypes.c_int),
        ("flags", c_uint32),
        ("dtype", ctypes.c_int),
        ("summary_dtype", ctypes.c_int),
        ("heads", c_int64),
        ("kv_heads", c_int64),
        ("head_dim", c_int64),
        ("value_dim", c_int64),
        ("list_width", c_int64),
        ("block_size", c_int64),
        ("fanout", c_int64),
        ("topk", c_int64),
        ("beam", c_int64),
        ("rerank", c_int64),
        ("leaf_atoms", c_int64),
        ("query_block", c_int64),
        ("sink_blocks", c_int64),
        ("local_blocks", c_int64),
        ("causal", c_int32),
        ("cpu", c_char_p),
        ("cache_directory", c_char_p),
        ("target", c_int32),
        ("device", c_int32),
        ("chip", c_char_p),
    )


# The pointers of PisaTensors, in order.
TENSORS = (
    "q",
    "k",
    "v",
    "k_len",
    "q_start",
    "pyramid",
    "open_sums",
    "atoms",
    "outlier",
    "indices",
    "count",
    "scores",
    "out",
    "lse",
)


class Tensors(ctypes.Structure):
    """PisaTensors; the pointers are addresses of DLTensors, 0 where absent."""

    _fields_ = (
        ("struct_size", c_size_t),
        *((name, c_void_p) for name in TENSORS),
        ("heads_inside", c_int32),
        ("softmax_scale", c_float),
    )


class RunInfo(ctypes.Structure):
    """PisaRunInfo."""

    _fields_ = (("struct_size", c_size_t), ("scratch_bytes", c_size_t))


class CudaDevice(ctypes.Structure):
    """PisaCudaDevice."""

    _fields_ = (
        ("struct_size", c_size_t),
        ("name", ctypes.c_char * 256),
        ("chip", ctypes.c_char * 16),
        ("compute_capability", c_int32),
        ("multiprocessors", c_int32),
        ("max_shared_bytes", c_int32),
        ("driver_version", c_int32),
    )


class _ValueUnion(ctypes.Union):
    _fields_ = (("tensor", c_void_p), ("f32", c_float), ("i32", c_int32), ("index", c_int64))


class Value(ctypes.Structure):
    """PisaValue."""

    _fields_ = (("kind", ctypes.c_int), ("value", _ValueUnion))


VALUE_TENSOR, VALUE_F32, VALUE_I32, VALUE_INDEX = range(4)

_SIGNATURES: dict[str, tuple[object, tuple[object, ...]]] = {
    "pisaGetLastError": (c_char_p, ()),
    "pisaGetVersion": (c_char_p, ()),
    "pisaGetBuildId": (c_char_p, ()),
    "pisaGetLlvmVersion": (c_char_p, ()),
    "pisaGetDefaultCacheDirectory": (c_char_p, ()),
    "pisaSetNumThreads": (ctypes.c_int, (ctypes.c_uint,)),
    "pisaGetNumThreads": (ctypes.c_uint, ()),
    "pisaKernelSpecInit": (None, (POINTER(KernelSpec),)),
    "pisaKernelCreate": (ctypes.c_int, (POINTER(KernelSpec), POINTER(c_void_p))),
    "pisaKernelDestroy": (None, (c_void_p,)),
    "pisaKernelRun": (ctypes.c_int, (c_void_p, c_void_p, c_void_p, c_void_p)),
    "pisaKernelGetWarning": (c_char_p, (c_void_p,)),
    "pisaKernelIsFromCache": (c_int32, (c_void_p,)),
    "pisaExplain": (ctypes.c_int, (POINTER(KernelSpec), POINTER(c_char_p))),
    "pisaGetPyramidRows": (c_int64, (c_int64, c_int64, c_int64)),
    "pisaGetPyramidLevels": (c_int64, (c_int64, c_int64, c_int64)),
    "pisaModuleCreate": (
        ctypes.c_int,
        (c_char_p, c_size_t, c_char_p, c_char_p, POINTER(c_void_p)),
    ),
    "pisaModuleCreateForCuda": (
        ctypes.c_int,
        (c_char_p, c_size_t, c_char_p, c_char_p, POINTER(c_void_p)),
    ),
    "pisaModuleGetPtx": (ctypes.c_int, (c_void_p, POINTER(c_void_p), POINTER(c_size_t))),
    "pisaModuleGetChip": (c_char_p, (c_void_p,)),
    "pisaGetCudaDeviceCount": (ctypes.c_int, (POINTER(c_int32),)),
    "pisaGetCudaDevice": (ctypes.c_int, (c_int32, POINTER(CudaDevice))),
    "pisaFindPtxas": (c_char_p, ()),
    "pisaModuleDestroy": (None, (c_void_p,)),
    "pisaModuleGetIr": (
        ctypes.c_int,
        (c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t)),
    ),
    "pisaModuleGetObject": (ctypes.c_int, (c_void_p, POINTER(c_void_p), POINTER(c_size_t))),
    "pisaModuleDescribe": (c_char_p, (c_void_p,)),
    "pisaModuleCallOnStream": (
        ctypes.c_int,
        (c_void_p, c_char_p, POINTER(Value), c_size_t, c_void_p, POINTER(RunInfo)),
    ),
}


def find_library() -> Path:
    """libpisa: `$PISA_LIBRARY`, or beside this file, or that of the build folder of this checkout.

    Raises RuntimeError if there is none.
    """
    given = os.environ.get("PISA_LIBRARY")
    if given:
        return Path(given)
    here = Path(__file__).resolve().parent
    places = [here / FILE, here.parents[1] / "build" / "lib" / FILE]
    for place in places:
        if place.is_file():
            return place
    raise RuntimeError(
        f"{FILE} is neither {' nor '.join(map(str, places))}: install the wheel, build it, or set"
        " PISA_LIBRARY to its path"
    )


def _name_ptxas() -> None:
    """Sets PISA_PTXAS to the ptxas of the package nvidia-cuda-nvcc (or nvidia-cuda-nvcc-cu12) where
    that is installed and the variable is not set: the library finds no other one than on the PATH.
    """
    if os.environ.get("PISA_PTXAS"):
        return
    from importlib.util import find_spec

    try:
        spec = find_spec("nvidia")
    except (ImportError, ValueError):
        return
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(place).glob("*/bin/ptxas")):
            if os.access(path, os.X_OK):
                os.environ["PISA_PTXAS"] = str(path)
                return


@cache
def library() -> ctypes.CDLL:
    """The loaded library; its functions release the GIL. Raises RuntimeError if it cannot be
    loaded or is of another version than this package."""
    path = find_library()
    _name_ptxas()
    try:
        lib = ctypes.CDLL(str(path))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(lib, name)
            function.restype = result
            function.argtypes = arguments
    except (OSError, AttributeError) as error:
        raise RuntimeError(f"{path} cannot be used: {error}") from error
    from . import __version__

    version = lib.pisaGetVersion().decode()
    if version != __version__:
        raise RuntimeError(
            f"{path} is of version {version}, but this package is {__version__}: install both anew"
        )
    return lib


# By PisaStatus.
_EXCEPTIONS: dict[int, type[Exception]] = {
    1: ValueError,
    2: TypeError,
    3: NotImplementedError,
    4: RuntimeError,
    5: RuntimeError,
}


def check(status: int) -> None:
    """Raises what a PisaStatus stands for, with the library's message."""
    if status:
        message = library().pisaGetLastError().decode(errors="replace")
        raise _EXCEPTIONS.get(status, RuntimeError)(message)
