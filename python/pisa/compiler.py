"""MLIR in, IR or an object or PTX or a callable out: for people who build compilers."""

import ctypes
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _cuda
from . import _library as c
from ._arrays import fill
from ._call import check_choice

LEVELS = ("problem", "phase", "tile", "kernel", "llvm")
NVPTX_LEVELS = ("problem", "phase", "tile", "gpu-kernel", "plan")
TARGETS = ("cpu", "nvptx")
_KINDS = {"f32": c.VALUE_F32, "i32": c.VALUE_I32, "index": c.VALUE_INDEX}


class Module:
    """A compiled module: `compile` makes it.

    functions: names of its functions, as they were before lowering. A function is called with the
    arguments that it had: arrays, whose shapes are checked also against each other, and numbers.
    Its results are the arrays that it was given to write to. A module for GPUs takes arrays on one
    CUDA device and puts its work on the stream that their framework works on.
    target: "cpu" or "nvptx". chip: LLVM's name of the GPU, "" for the CPU.
    """

    def __init__(self, handle: int, named: bool) -> None:
        self._handle: int | None = handle
        self._destroy = c.library().pisaModuleDestroy  # at exit the names above are gone
        self.chip: str = c.library().pisaModuleGetChip(handle).decode()
        self.target = "nvptx" if self.chip else "cpu"
        levels = NVPTX_LEVELS if self.chip else LEVELS
        self._levels = levels if named else ()
        text = c.library().pisaModuleDescribe(handle)
        self._functions = {f["name"]: f for f in json.loads(text)}

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            self._handle = None
            self._destroy(handle)

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions."""
        return tuple(self._functions)

    def ir(self, level: str | None = None) -> str:
        """The MLIR after a level: problem, phase, tile, kernel or llvm; for GPUs problem, phase,
        tile, gpu-kernel or plan. None is the last one, the only one where a pipeline of one's own
        was given. ValueError for another level."""
        text, length = ctypes.c_void_p(), ctypes.c_size_t()
        name = (level or "").encode()
        if level is not None and level not in self._levels:
            raise ValueError(
                f"expected level to be one of {', '.join(self._levels) or 'None only'},"
                f" but got {level!r}"
            )
        c.check(
            c.library().pisaModuleGetIr(
                self._handle, name, ctypes.byref(text), ctypes.byref(length)
            )
        )
        return ctypes.string_at(text.value or 0, length.value).decode()

    @property
    def object(self) -> bytes:
        """A relocatable ELF object of the module, for this kind of CPU; ValueError for GPUs."""
        data, length = ctypes.c_void_p(), ctypes.c_size_t()
        c.check(
            c.library().pisaModuleGetObject(self._handle, ctypes.byref(data), ctypes.byref(length))
        )
        return ctypes.string_at(data.value or 0, length.value)

    @property
    def ptx(self) -> str:
        """The kernels as PTX, of a module for NVIDIA's GPUs; ValueError for the CPU."""
        text, length = ctypes.c_void_p(), ctypes.c_size_t()
        c.check(
            c.library().pisaModuleGetPtx(self._handle, ctypes.byref(text), ctypes.byref(length))
        )
        return ctypes.string_at(text.value or 0, length.value).decode()

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self._functions:
            raise KeyError(
                f"expected a function of the module, {', '.join(self._functions)}, but got {name!r}"
            )

        def function(*arguments: Any) -> Any:
            return self._call(name, arguments)

        function.__name__ = function.__qualname__ = name
        return function

    def _call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        about = self._functions[name]
        types, results = about["arguments"], about["results"]
        if len(arguments) != len(types):
            raise TypeError(
                f"expected {len(types)} arguments of @{name} ({', '.join(types)}), but got"
                f" {len(arguments)}"
            )
        values = (c.Value * len(types))()
        alive: list[Any] = []
        stream = None
        for i, (argument, kind) in enumerate(zip(arguments, types, strict=True)):
            where = f"argument {i} of @{name}"
            value = values[i]
            if kind not in _KINDS:
                value.kind = c.VALUE_TENSOR
                view = c.DLTensor()
                alive += [view, fill(where, argument, view)]
                if self.chip and stream is None and view.device_type != c.DEVICE_CPU:
                    stream = _cuda.current_stream(argument, view.device_id)
                value.value.tensor = ctypes.addressof(view)
                continue
            value.kind = _KINDS[kind]
            try:
                if kind == "f32":
                    value.value.f32 = float(argument)
                else:
                    number = int(argument)
                    bound = 1 << (31 if kind == "i32" else 63)
                    if number != argument or not -bound <= number < bound:
                        raise ValueError
                    setattr(value.value, kind, number)
            except (TypeError, ValueError) as error:
                raise TypeError(f"expected {where} to be {kind}, but got {argument!r}") from error
        c.check(
            c.library().pisaModuleCallOnStream(
                self._handle, name.encode(), values, len(values), stream, None
            )
        )
        outputs = tuple(arguments[i] for i in results)
        return outputs[0] if len(outputs) == 1 else outputs


def compile(
    source: str | os.PathLike[str],
    *,
    target: str = "cpu",
    pipeline: str | None = None,
    cpu: str | None = None,
    chip: str | None = None,
) -> Module:
    """Compiles MLIR.

    Args:
        source: MLIR text, or the path of a file with it (a pathlib.Path, or a string that ends in
            .mlir).
        target: "cpu", or "nvptx" for NVIDIA's GPUs, of which none is needed to compile.
        pipeline: None is pisa-cpu-pipeline or pisa-nvptx-pipeline, level by level. Otherwise any
            pass pipeline in MLIR's textual form; one that ends in the LLVM dialect, or for GPUs as
            pisa-nvptx-pipeline does, makes a module that can be called.
        cpu: LLVM's name of a CPU; None is this one. For target="cpu" only.
        chip: LLVM's name of a GPU, "sm_80" or later; None is that of the first CUDA device, "sm_80"
            without one; the module's `chip` says which. For target="nvptx" only.

    Raises:
        ValueError: the text is no MLIR, a pass failed, or the pipeline is unknown.
        NotImplementedError: what the code for GPUs is not made for.

    >>> module = compile(
    ...     "func.func @half(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {"
    ...     "  %0 = linalg.copy ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) -> tensor<?xf32>"
    ...     "  return %0 : tensor<?xf32> }")
    >>> import numpy as np
    >>> module["half"](np.ones(2, np.float32), np.zeros(2, np.float32)).tolist()
    [1.0, 1.0]
    """
    check_choice("target", target, TARGETS)
    other = ("cpu", cpu) if target == "nvptx" else ("chip", chip)
    if other[1] is not None:
        raise ValueError(f"expected no {other[0]} with target={target!r}, but got {other[1]!r}")
    if isinstance(source, os.PathLike) or (isinstance(source, str) and source.endswith(".mlir")):
        try:
            source = Path(source).read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{os.fspath(source)!r} cannot be read: {error.strerror}") from error
    if not isinstance(source, str):
        raise TypeError(f"expected source to be text or a path, but got {type(source).__name__}")
    text = source.encode()
    handle = ctypes.c_void_p()
    lib = c.library()
    create, machine = (
        (lib.pisaModuleCreateForCuda, chip) if target == "nvptx" else (lib.pisaModuleCreate, cpu)
    )
    c.check(
        create(
            text,
            len(text),
            None if pipeline is None else pipeline.encode(),
            None if machine is None else machine.encode(),
            ctypes.byref(handle),
        )
    )
    assert handle.value is not None
    return Module(handle.value, pipeline is None)
