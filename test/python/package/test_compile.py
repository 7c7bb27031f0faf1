"""MLIR in, IR, an object or a callable out."""

import numpy as np
import pisa
import pytest
from pisa.compiler import LEVELS, NVPTX_LEVELS

LAYER = """
func.func @layer(%q: tensor<?x2x?x16xf32>, %k: tensor<?x1x?x16xf32>, %v: tensor<?x1x?x16xf32>,
                 %idx: tensor<?x1x?x3xi32>, %len: tensor<?xi32>, %scale: f32,
                 %out: tensor<?x2x?x16xf32>) -> tensor<?x2x?x16xf32> {
  %o = pisa.attention #pisa.params<block_size = 16, topk = 3>
         ins(%q, %k, %v, %idx : tensor<?x2x?x16xf32>, tensor<?x1x?x16xf32>, tensor<?x1x?x16xf32>,
             tensor<?x1x?x3xi32>)
         k_len(%len : tensor<?xi32>) scale(%scale)
         outs(%out : tensor<?x2x?x16xf32>) -> tensor<?x2x?x16xf32>
  return %o : tensor<?x2x?x16xf32>
}
"""


@pytest.fixture(scope="module")
def module():
    return pisa.compile(LAYER)


def arguments(queries=50, keys=50):
    rng = np.random.default_rng(0)
    q, k, v = (
        rng.standard_normal((1, h, t, 16), np.float32)
        for h, t in ((2, queries), (1, keys), (1, keys))
    )
    idx = np.broadcast_to(np.array([0, 1, -1], np.int32), (1, 1, queries, 3))
    return [q, k, v, idx, np.array([keys], np.int32), 0.25, np.full_like(q, np.nan)]


def test_a_callable(module):
    given = arguments()
    out = module["layer"](*given)
    assert out is given[-1]
    q, k, v, idx = given[:4]
    want = pisa.block_sparse_attention(q, k, v, idx, block_size=16, layout="bhsd")
    assert (out == want).all()


def test_levels(module):
    assert module.functions == ("layer",)
    assert "pisa.attention" in module.ir("problem") and "tensor<" in module.ir("phase")
    assert "scf.forall" in module.ir("tile")
    assert "memref<" in module.ir("kernel") and "tensor<" not in module.ir("kernel")
    assert module.ir() == module.ir("llvm") and "llvm.func" in module.ir()
    # What comes out can go in again.
    assert pisa.compile(module.ir("problem")).ir("phase") == module.ir("phase")
    with pytest.raises(ValueError, match=", ".join(LEVELS)):
        module.ir("attic")


def test_an_object(module):
    assert module.object.startswith(b"\x7fELF")
    assert module.target == "cpu" and module.chip == ""
    with pytest.raises(ValueError, match="module for GPUs, but it is for the CPU"):
        _ = module.ptx


@pytest.fixture(scope="module")
def gpu_module():
    return pisa.compile(LAYER.replace("f32>", "f16>"), target="nvptx", chip="sm_90")


def test_ptx(gpu_module):
    assert gpu_module.target == "nvptx" and gpu_module.chip == "sm_90"
    assert ".target sm_90" in gpu_module.ptx and ".entry layer_kernel" in gpu_module.ptx
    with pytest.raises(ValueError, match="module for the CPU, but it is for sm_90"):
        _ = gpu_module.object


def test_levels_of_gpus(gpu_module):
    assert gpu_module.functions == ("layer",)
    assert "tensor<" in gpu_module.ir("phase") and "scf.forall" in gpu_module.ir("tile")
    assert "#gpu.address_space<workgroup>" in gpu_module.ir("gpu-kernel")
    assert gpu_module.ir() == gpu_module.ir("plan") and "gpu.launch_func" in gpu_module.ir()
    for other in ("kernel", "llvm"):
        with pytest.raises(ValueError, match=", ".join(NVPTX_LEVELS)):
            gpu_module.ir(other)


def test_a_gpu_module_takes_no_arrays_of_the_cpu(gpu_module):
    given = arguments()
    with pytest.raises(TypeError, match="argument 0 of @layer.*not on a CUDA device"):
        gpu_module["layer"](*[g.astype(np.float16) if np.ndim(g) == 4 else g for g in given])


def test_a_gpu_pipeline_of_ones_own():
    text = LAYER.replace("f32>", "bf16>")
    made = pisa.compile(text, target="nvptx", pipeline="pisa-nvptx-pipeline{num-warps=8}")
    assert ".maxntid 256" in made.ptx or ".reqntid 256" in made.ptx
    # Without a GPU the oldest one that there is code for.
    assert f".target {made.chip}" in made.ptx
    unfinished = pisa.compile(text, target="nvptx", pipeline="pisa-set-lowering-config,cse")
    assert "lowering_config" in unfinished.ir()
    with pytest.raises(ValueError, match="to end as pisa-nvptx-pipeline does"):
        _ = unfinished.ptx
    assert "gpu.launch_func" in pisa.compile(text, pipeline="pisa-nvptx-pipeline").ir()


def test_a_pipeline_of_ones_own():
    made = pisa.compile(LAYER, pipeline="pisa-set-lowering-config,pisa-decompose,cse")
    assert "pisa.attend_tiles" in made.ir()
    with pytest.raises(ValueError, match="LLVM dialect"):
        made["layer"](*arguments())
    whole = pisa.compile(LAYER, pipeline="pisa-cpu-pipeline{vector-bits=256}")
    given = arguments()
    assert np.isfinite(whole["layer"](*given)).all()


def test_a_file(tmp_path):
    file = tmp_path / "layer.mlir"
    file.write_text(LAYER)
    assert pisa.compile(file).functions == pisa.compile(str(file)).functions == ("layer",)
    with pytest.raises(ValueError, match="absent.mlir"):
        pisa.compile(tmp_path / "absent.mlir")


def test_shapes_must_agree(module):
    given = arguments()
    given[2] = given[2][:, :, :49]
    with pytest.raises(ValueError, match="do not fit together(.|\n)*'v'"):
        module["layer"](*given)
    given = arguments()
    given[0] = np.zeros((1, 3, 50, 16), np.float32)
    with pytest.raises(ValueError, match="argument 0 of @layer.*size 3 in dimension 1"):
        module["layer"](*given)


@pytest.mark.parametrize("position,value", [(0, None), (0, 1.0), (4, np.zeros(1)), (5, "x")])
def test_arguments_must_be_of_their_type(module, position, value):
    given = arguments()
    given[position] = value
    with pytest.raises(TypeError, match=f"argument {position}"):
        module["layer"](*given)


def test_counts_and_names(module):
    with pytest.raises(TypeError, match="expected 7 arguments"):
        module["layer"]()
    with pytest.raises(KeyError, match="layer"):
        module["lair"]


@pytest.mark.parametrize(
    "text,match",
    [
        ("func.func @f(", "cannot be parsed"),
        ("", None),
        (LAYER.replace("topk = 3", "topk = 1"), "'topk'"),
        (LAYER.replace("x16xf32>, %k", "x20xf32>, %k"), "cannot be parsed"),
    ],
)
def test_bad_text(text, match):
    if match is None:
        assert pisa.compile(text).functions == ()
        return
    with pytest.raises(ValueError, match=match):
        pisa.compile(text)


def test_bad_options():
    with pytest.raises(ValueError, match="polish"):
        pisa.compile(LAYER, pipeline="polish")
    with pytest.raises(NotImplementedError, match="f16 or bf16, but got f32"):
        pisa.compile(LAYER, target="nvptx")
    with pytest.raises(ValueError, match="cpu, nvptx, but got 'cuda'"):
        pisa.compile(LAYER, target="cuda")
    with pytest.raises(ValueError, match="sm_80 on that LLVM knows, but got 'sm_75'"):
        pisa.compile(LAYER, target="nvptx", chip="sm_75")
    with pytest.raises(ValueError, match="no chip with target='cpu', but got 'sm_90'"):
        pisa.compile(LAYER, chip="sm_90")
    with pytest.raises(ValueError, match="no cpu with target='nvptx', but got 'znver4'"):
        pisa.compile(LAYER, target="nvptx", cpu="znver4")
    with pytest.raises(ValueError, match="abacus"):
        pisa.compile(LAYER, cpu="abacus")
    with pytest.raises(TypeError, match="int"):
        pisa.compile(3)
