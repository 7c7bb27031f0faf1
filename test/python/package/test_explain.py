"""What explain says is what happens."""

import numpy as np
import pisa
import pytest

Q, K = np.zeros((1, 1000, 8, 64), np.float32), np.zeros((1, 1000, 2, 64), np.float32)


def test_choices():
    found = pisa.explain(Q, K, K, topk=4, query_block=1)
    assert found.backend == "cpu" and found.vector_bits in (128, 256, 512)
    assert found.dtype == found.summary_dtype == "f32"
    assert (found.selected, found.blocks, found.dense) == (4, 16, False)
    assert set(found.tiles) == {"build_pyramid", "route", "attention"}
    # 16 + 8 + 4 + 2 + 1 nodes, 2 heads of 64 floats; 1000 lists of 4 a head
    assert found.intermediate_bytes == 31 * 2 * 64 * 4 + 1000 * 2 * 4 * 4
    assert "query tiles" in str(found) and found.reasons


def test_a_gpu_that_need_not_be_there():
    q, k = Q.astype(np.float16), K.astype(np.float16)
    found = pisa.explain(q, k, k, topk=4, chip="sm_90")
    assert (found.backend, found.chip, found.device) == ("cuda", "sm_90", None)
    assert found.cpu is found.vector_bits is found.threads is None
    assert set(found.tiles) == {"build_pyramid", "route", "attention"}
    # 64 rows of 4 heads, and as many of one leaf as a task gathers.
    assert found.tiles["attention"]["query_tile"] == 16 and found.tiles["route"]["gather"] == 128
    assert "leaf by leaf" in found.strategy and "sm_90" in str(found)
    assert not found.compiled and found.intermediate_bytes == 31 * 2 * 64 * 2 + 1000 * 2 * 4 * 4
    # Query blocks of that many rows share by themselves.
    blocks = pisa.explain(q, k, k, topk=8, query_block=256, chip="sm_80")
    assert blocks.strategy == "query tiles" and "gather" not in blocks.tiles["route"]


def test_refusals_of_gpus():
    with pytest.raises(NotImplementedError, match="f16 or bf16"):
        pisa.explain(Q, K, K, chip="sm_90")
    q, k = Q.astype(np.float16), K.astype(np.float16)
    with pytest.raises(ValueError, match="sm_80 on that LLVM knows, but got 'sm_70'"):
        pisa.explain(q, k, k, chip="sm_70")
    for other in ({"measure": True}, {"backend": "cpu"}):
        with pytest.raises(ValueError, match="chip='sm_90' only"):
            pisa.explain(q, k, k, chip="sm_90", **other)


def test_measured_scratch():
    found = pisa.explain(Q, K, K, topk=5, measure=True)
    assert found.compiled and found.scratch_bytes >= found.intermediate_bytes


def test_dense():
    found = pisa.explain(Q, K, K, dense_below=1001)
    assert found.dense and "dense_below = 1001" in str(found)
    assert not pisa.explain(Q, K, K, dense_below=1000).dense


def test_refusals_are_those_of_attention():
    with pytest.raises(ValueError, match="'topk'"):
        pisa.explain(Q, K, K, topk=1)
    with pytest.raises((RuntimeError, TypeError), match="CUDA"):
        pisa.explain(Q, K, K, backend="cuda")
