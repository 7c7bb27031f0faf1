"""Tests run on the CPU, and on a GPU where torch has one."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
# The modules beside the tests, and oracle.py.
sys.path[:0] = [str(HERE), str(HERE.parent / "python" / "package")]


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    torch = pytest.importorskip("torch")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return request.param


@pytest.fixture
def cuda():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "cuda"


@pytest.fixture(params=["bfloat16", "float16"])
def dtype(request):
    return getattr(pytest.importorskip("torch"), request.param)


def pytest_report_header():
    """The GPU, and the assembler that kernels go through."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch
    from pisa._library import library

    if not torch.cuda.is_available():
        return "GPU: none"
    ptxas = library().pisaFindPtxas().decode()
    version = "the driver compiles"
    if ptxas:
        said = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=False)
        version = (said.stdout.strip() or "no version").splitlines()[-1]
    return [f"GPU: {torch.cuda.get_device_name()}", f"ptxas: {ptxas or 'none'}, {version}"]
