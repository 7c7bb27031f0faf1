"""Arrays of any framework as DLTensors, without a copy: NumPy's, PyTorch's, and whatever speaks
DLPack. Neither PyTorch nor NumPy is imported before an array of theirs comes."""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from ._library import (
    CODE_BFLOAT,
    CODE_FLOAT,
    CODE_INT,
    DEVICE_CPU,
    DEVICE_CUDA,
    DEVICE_CUDA_MANAGED,
    DLTensor,
)

# (DLPack's code, bits) -> our name
_NAMES = {
    (CODE_FLOAT, 32): "f32",
    (CODE_FLOAT, 16): "f16",
    (CODE_BFLOAT, 16): "bf16",
    (CODE_INT, 32): "i32",
}
_ALIASES = {
    "float32": "f32",
    "f32": "f32",
    "float16": "f16",
    "f16": "f16",
    "half": "f16",
    "bfloat16": "bf16",
    "bf16": "bf16",
}
_NUMPY_CODES = {"f": CODE_FLOAT, "i": CODE_INT}

SIZE = ctypes.sizeof(DLTensor)

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)

# In the DLPackExchangeAPI of DLPack 1.3: 16 bytes of header, then pointers to functions, of which
# this one fills a DLTensor that borrows from a framework's object. It runs under the GIL.
_EXCHANGE_OFFSET = 16 + 3 * 8
_EXCHANGE_TYPE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
_exchanges: dict[type, Callable[[object, int], int] | None] = {}


def dtype_name(argument: str, dtype: object) -> str:
    """ "f32", "f16" or "bf16" for a framework's dtype or its name; TypeError for any other."""
    text = str(dtype).rsplit(".", 1)[-1] if not isinstance(dtype, type) else dtype.__name__
    if text not in _ALIASES:
        raise TypeError(
            f"expected {argument} to be float32, float16 or bfloat16, but got {dtype!r}"
        )
    return _ALIASES[text]


def is_torch(array: object) -> bool:
    """Whether it is a torch.Tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def is_numpy(array: object) -> bool:
    """Whether it is a numpy.ndarray, without importing NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, numpy.ndarray)


def _find_exchange(kind: type) -> Callable[[object, int], int] | None:
    """The function that fills a DLTensor from an object of this type, if its framework has one."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return None
    api = _get_pointer(capsule, b"dlpack_exchange_api")
    major = ctypes.c_uint32.from_address(api).value
    address = ctypes.c_void_p.from_address(api + _EXCHANGE_OFFSET).value
    if major != 1 or not address:
        return None
    return _EXCHANGE_TYPE(address)


def _fill(
    target: DLTensor,
    data: int,
    device: tuple[int, int],
    dtype: tuple[int, int],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> object:
    """Fills a DLTensor (strides in elements); returns what must live as long as it."""
    rank = len(shape)
    sizes = (ctypes.c_int64 * (2 * rank))(*shape, *strides)
    address = ctypes.addressof(sizes)
    target.data = data
    target.device_type, target.device_id = device
    target.ndim = rank
    target.code, target.bits = dtype
    target.lanes = 1
    target.shape = ctypes.cast(address, ctypes.POINTER(ctypes.c_int64))
    target.strides = ctypes.cast(address + 8 * rank, ctypes.POINTER(ctypes.c_int64))
    target.byte_offset = 0
    return sizes


def _fill_torch(name: str, tensor: Any, target: DLTensor) -> object:
    """For torch's tensors where there is no exchange API (before 2.10)."""
    torch = sys.modules["torch"]
    codes = {
        torch.float32: (CODE_FLOAT, 32),
        torch.float16: (CODE_FLOAT, 16),
        torch.bfloat16: (CODE_BFLOAT, 16),
        torch.float64: (CODE_FLOAT, 64),
        torch.int32: (CODE_INT, 32),
        torch.int64: (CODE_INT, 64),
    }
    if tensor.dtype not in codes:
        raise TypeError(f"expected {name} to be of floats or int32, but got {tensor.dtype}")
    devices = {"cpu": DEVICE_CPU, "cuda": DEVICE_CUDA}
    if tensor.device.type not in devices or tensor.layout != torch.strided:
        raise TypeError(
            f"expected {name} to be a dense tensor on cpu or cuda, but got {tensor.layout} on"
            f" {tensor.device}"
        )
    device = (devices[tensor.device.type], tensor.device.index or 0)
    data, dtype = tensor.data_ptr(), codes[tensor.dtype]
    return _fill(target, data, device, dtype, tuple(tensor.shape), tensor.stride())


def _fill_numpy(name: str, array: Any, target: DLTensor) -> object:
    dtype = array.dtype
    code = _NUMPY_CODES.get(dtype.kind)
    if dtype.name == "bfloat16":  # ml_dtypes, which NumPy takes for bytes
        code = CODE_BFLOAT
    if code is None or not dtype.isnative:
        raise TypeError(f"expected {name} to be of floats or int32, but got {dtype!r}")
    for stride in array.strides:
        if stride % dtype.itemsize:
            raise ValueError(
                f"expected the strides of {name} to be whole elements of {dtype.itemsize} bytes,"
                f" but got {array.strides} bytes"
            )
    strides = tuple(stride // dtype.itemsize for stride in array.strides)
    bits = 8 * dtype.itemsize
    return _fill(target, array.ctypes.data, (DEVICE_CPU, 0), (code, bits), array.shape, strides)


def fill(name: str, array: Any, target: DLTensor) -> object:
    """Makes `target` a view of `array`; returns what must live as long as the view.

    Raises TypeError for an object that is no array, ValueError for one without a view.
    """
    kind = type(array)
    try:
        exchange = _exchanges[kind]
    except KeyError:
        exchange = _exchanges[kind] = _find_exchange(kind)
    if exchange is not None:
        try:
            exchange(array, ctypes.addressof(target))
        except Exception as error:  # the framework's own class
            raise TypeError(f"{name} cannot be used as a tensor: {error}") from error
        return array
    if is_numpy(array):
        return _fill_numpy(name, array, target)
    if is_torch(array):
        return _fill_torch(name, array, target)
    if not hasattr(array, "__dlpack__"):
        raise TypeError(
            f"expected {name} to be an array of NumPy, PyTorch or another library with DLPack,"
            f" but got {kind.__name__}"
        )
    try:
        capsule = array.__dlpack__()
        managed = _get_pointer(capsule, b"dltensor")
    except Exception as error:  # the framework's own class
        raise TypeError(f"{name} cannot be used through DLPack: {error}") from error
    ctypes.memmove(ctypes.addressof(target), managed, SIZE)  # a DLManagedTensor begins with one
    return capsule


def describe(view: DLTensor) -> tuple[str, tuple[int, ...]]:
    """dtype name (DLPack's code and bits where we have none) and shape of a view."""
    known = _NAMES.get((view.code, view.bits)) if view.lanes == 1 else None
    return known or f"DLPack type {view.code} of {view.bits} bits", tuple(view.shape[: view.ndim])


def empty(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """An uninitialised array of the library of `like`, where `like` is.

    dtype: "f32", "f16", "bf16" or "i32". For libraries other than NumPy and PyTorch this is a NumPy
    array, which `give_back` converts. bf16 in NumPy is that of ml_dtypes.
    """
    if is_torch(like):
        torch = sys.modules["torch"]
        kind = {
            "f32": torch.float32,
            "f16": torch.float16,
            "bf16": torch.bfloat16,
            "i32": torch.int32,
        }[dtype]
        return torch.empty(shape, dtype=kind, device=like.device)
    if _is_on_cuda(like):
        return _empty_on_cuda(like, shape, dtype)
    import numpy

    if dtype == "bf16":
        try:
            import ml_dtypes
        except ImportError as error:
            raise TypeError(
                "bfloat16 outside PyTorch is an array of NumPy with the dtype of the package"
                " ml_dtypes, which is not installed"
            ) from error
        return numpy.empty(shape, ml_dtypes.bfloat16)
    kinds = {"f32": numpy.float32, "f16": numpy.float16, "i32": numpy.int32}
    try:
        return numpy.empty(shape, kinds[dtype])
    except (MemoryError, ValueError) as error:  # ValueError: beyond what NumPy can address
        raise RuntimeError(f"out of memory for a result of shape {list(shape)}: {error}") from error


def _is_on_cuda(array: Any) -> bool:
    if is_numpy(array) or not hasattr(array, "__dlpack_device__"):
        return False
    return int(array.__dlpack_device__()[0]) in (DEVICE_CUDA, DEVICE_CUDA_MANAGED)


def _empty_on_cuda(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """The same on a GPU, for libraries that follow the Python array API and have arrays that can
    be written to."""
    if not hasattr(like, "__array_namespace__") or type(like).__module__.startswith("jax"):
        raise NotImplementedError(
            f"results in the memory of a GPU of the type {type(like).__name__}: use PyTorch or CuPy"
        )
    library = like.__array_namespace__()
    names = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32"}
    kind = getattr(library, names[dtype], None)
    if kind is None:
        raise TypeError(f"expected a library with {names[dtype]}, but got {library.__name__}")
    return library.empty(shape, dtype=kind, device=like.device)


def give_back(like: Any, array: Any) -> Any:
    """An array from `empty` in the library of `like`, where that follows the Python array API;
    NumPy's otherwise."""
    if is_torch(like) or is_numpy(like) or not hasattr(like, "__array_namespace__"):
        return array
    if type(array) is type(like):
        return array
    return like.__array_namespace__().asarray(array)
