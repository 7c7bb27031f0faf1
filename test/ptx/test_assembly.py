"""PTX of the pipeline, for every phase and dtype: promised instructions, and what ptxas says."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess

import problems
import pytest

if "PISA_OPT" not in os.environ:
    pytest.skip("PISA_OPT names no pisa-opt", allow_module_level=True)


def find_ptxas():
    found = os.environ.get("PISA_PTXAS") or shutil.which("ptxas")
    if found:
        return found
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations if spec else []:
        for path in pathlib.Path(root).glob("**/bin/ptxas"):
            return str(path)
    return None


PARAMS = {
    "default": "#pisa.params<topk = 16>",
    "wide": "#pisa.params<block_size = 32, topk = 8, beam = 32, fanout = 4>",
    "query blocks": "#pisa.params<topk = 8, query_block = 4>",
    "by block": "#pisa.params<topk = 16>",
    "blocks in parts": "#pisa.params<topk = 16, block_size = 256>",
}
TOPK = {"wide": 8, "query blocks": 8}
DIM = {"by block": 128, "blocks in parts": 256}
OPTIONS = {"by block": "partial-bytes=100000000"}


def ptx(name, dtype, chip):
    text = problems.module(8, 2, DIM.get(name, 64), TOPK.get(name, 16), PARAMS[name], dtype)
    return problems.lower(text, chip, "emit-ptx", OPTIONS.get(name, ""))


@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_promised_instructions(dtype, chip):
    text = ptx("default", dtype, chip)
    assert f"mma.sync.aligned.m16n8k16.row.col.f32.{dtype}.{dtype}.f32" in text
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in text
    assert "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in text
    assert "cp.async.cg.shared.global" in text
    assert "ex2.approx.ftz.f32" in text and "lg2.approx.ftz.f32" in text
    assert "redux.sync" in text
    assert "__nv_" not in text and ".extern .func" not in text


@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("name", PARAMS)
def test_ptxas_assembles_without_spills_of_attention(name, dtype, chip, tmp_path):
    ptxas = find_ptxas()
    if not ptxas:
        pytest.skip("no ptxas: neither on PATH nor in nvidia-cuda-nvcc")
    path = tmp_path / "kernels.ptx"
    path.write_text(ptx(name, dtype, chip))
    done = subprocess.run(
        [ptxas, f"-arch={chip}", "-v", str(path), "-o", str(tmp_path / "kernels.cubin")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = done.stderr + done.stdout
    assert "C75" not in report
    spills = [int(n) for n in re.findall(r"(\d+) bytes spill stores", report)]
    assert spills and max(spills) <= 64, report
