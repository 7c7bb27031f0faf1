"""Bad input gets an error that names the argument, its value, and what is allowed."""

import dataclasses

import numpy as np
import pisa
import pytest


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


Q, K = zeros(2, 40, 4, 32), zeros(2, 40, 2, 32)


@pytest.mark.parametrize(
    "options,error,match",
    [
        ({"topk": 2}, ValueError, "'topk' to be at least 3.*got 2"),
        ({"topk": 0}, ValueError, "'topk' to be in .*got 0"),
        ({"topk": -1}, ValueError, "'topk' to be in .*got -1"),
        ({"topk": 5000}, ValueError, "'topk' to be in .*got 5000"),
        ({"topk": 4.0}, TypeError, "topk to be an int, but got 4.0"),
        ({"topk": True}, TypeError, "topk to be an int, but got True"),
        ({"topk": None}, TypeError, "topk to be an int, but got None"),
        ({"topk": 1 << 70}, ValueError, "topk"),
        ({"block_size": 0}, ValueError, "'block_size' to be in .*got 0"),
        ({"block_size": 1 << 40}, ValueError, "'block_size' to be in"),
        ({"fanout": 1}, ValueError, "'fanout' to be in .*got 1"),
        ({"beam": 8}, ValueError, "'beam' to be at least 'topk' = 16, but got 8"),
        ({"beam": -1}, ValueError, "beam"),
        ({"rerank": 5}, ValueError, "'rerank' to be 0 or in.*got 5"),
        ({"rerank": -1}, ValueError, "rerank"),
        ({"leaf_atoms": 5, "rerank": 0}, ValueError, "'leaf_atoms' to divide.*got 5"),
        ({"query_block": 0}, ValueError, "'query_block' to be in .*got 0"),
        ({"query_block": 16, "k_len": 39}, ValueError, r"q_start\[0\].*multiple of query_block"),
        ({"local_blocks": 0}, ValueError, "'local_blocks'.*got 0"),
        ({"sink_blocks": -1}, ValueError, "'sink_blocks'.*got -1"),
        ({"summary_dtype": "int8"}, TypeError, "summary_dtype.*'int8'"),
        ({"softmax_scale": "1"}, TypeError, "softmax_scale.*'1'"),
        ({"softmax_scale": float("nan")}, ValueError, "softmax_scale.*NaN"),
        ({"causal": 1}, TypeError, "causal to be True or False, but got 1"),
        ({"layout": "sbhd"}, ValueError, "layout.*bshd, bhsd.*'sbhd'"),
        ({"k_len": 41}, ValueError, r"k_len\[0\].*\[0, 40\].*41"),
        ({"k_len": [40, -1]}, ValueError, r"k_len\[1\].*-1"),
        ({"k_len": [40, 40, 40]}, ValueError, r"k_len.*\[2\].*\[3\]"),
        ({"k_len": 3.5}, TypeError, "k_len"),
        ({"q_start": 1 << 40}, ValueError, "q_start.*int32"),
        ({"cu_seqlens_q": [0, 4]}, NotImplementedError, "cu_seqlens_q"),
        ({"max_seqlen_k": 4}, NotImplementedError, "max_seqlen_k"),
        ({"union_hint": 0.5}, ValueError, "union_hint.*0.5"),
        ({"deterministic": None}, TypeError, "deterministic"),
        ({"dense_below": "x"}, TypeError, "dense_below"),
        ({"dense_below": 99, "return_indices": True}, ValueError, "return_indices"),
        ({"backend": "cuda"}, (RuntimeError, TypeError), "CUDA"),
        ({"backend": "tpu"}, ValueError, "backend.*auto, cpu, cuda.*'tpu'"),
        ({"check": "yes"}, TypeError, "check"),
        ({"return_lse": 1}, TypeError, "return_lse"),
    ],
    ids=str,
)
def test_options(options, error, match):
    with pytest.raises(error, match=match):
        pisa.attention(Q, K, K, **options)


@pytest.mark.parametrize(
    "q,k,v,error,match",
    [
        (Q[0], K, K, ValueError, r"q to be \[B, T, H, D\], but got shape \[40, 4, 32\]"),
        (Q, K[..., :24], K, ValueError, "D of k to be 32, as in q, but got 24"),
        (Q, K, K[:, :39], ValueError, "Tk of v to be 40, as in k, but got 39"),
        (Q, K, K[:, :, :1], ValueError, "Hkv of v to be 2, as in k, but got 1"),
        (Q, K[:1], K, ValueError, "B of k to be 2, as in q, but got 1"),
        (Q[:, :, :3], K, K, ValueError, "Hq.*got 3 and 2"),
        (Q, K[:, :20], K[:, :20], ValueError, "Tq to be at most Tk = 20"),
        (Q, K.astype(np.float16), K, TypeError, "dtype of k to be f32, as in q, but got f16"),
        (Q.astype(np.float64), K, K, TypeError, "q to be of float32"),
        (Q.astype(np.int32), K, K, TypeError, "q to be of float32.*i32"),
        (Q.astype(np.complex64), K, K, TypeError, "q to be of floats"),
        (Q.astype(">f4"), K, K, TypeError, "q to be of floats"),
        (Q[..., :20], K[..., :20], K, NotImplementedError, "dimension D.*got 20"),
        (Q, K, zeros(2, 40, 2, 264), NotImplementedError, "dimension Dv.*got 264"),
        ([[1.0]], K, K, TypeError, "q to be an array.*list"),
        (None, K, K, TypeError, "q to be an array.*NoneType"),
    ],
    ids=str,
)
def test_tensors(q, k, v, error, match):
    with pytest.raises(error, match=match):
        pisa.attention(q, k, v)


@pytest.mark.parametrize(
    "lists,error,match",
    [
        (zeros(2, 40, 3, dtype=np.int32), ValueError, r"indices to be \[B, Hkv, NQ, K\]"),
        (zeros(2, 40, 2, 3, dtype=np.int32), ValueError, "Hkv of 'indices'.*2.*got 40"),
        (zeros(1, 2, 40, 3, dtype=np.int32), ValueError, "B of 'indices'.*2.*got 1"),
        (zeros(2, 2, 41, 3, dtype=np.int32), ValueError, "NQ of 'indices'.*40.*got 41"),
        (zeros(2, 2, 40, 3, dtype=np.int64), TypeError, "'indices' to be int32.*int64"),
        (zeros(2, 2, 40, 3), TypeError, "'indices' to be int32.*float32"),
        (zeros(2, 2, 40, 0, dtype=np.int32), ValueError, "at least 1 entry"),
    ],
    ids=str,
)
def test_lists(lists, error, match):
    with pytest.raises(error, match=match):
        pisa.block_sparse_attention(Q, K, K, lists)


def test_pyramids():
    pyramid = pisa.build_pyramid(K, block_size=16)
    with pytest.raises(ValueError, match="return_atoms=True"):
        pisa.route(Q, K, pyramid, rerank=16)
    with pytest.raises(TypeError, match="build_pyramid.*ndarray"):
        pisa.route(Q, K, pyramid.summaries)
    with pytest.raises(ValueError, match="rows of 'pyramid'"):
        pisa.route(Q, np.concatenate([K, K], 1), pyramid)
    other = dataclasses.replace(pyramid, summaries=pyramid.summaries[:, :1])
    with pytest.raises(ValueError, match="Hkv of 'pyramid'.*2.*got 1"):
        pisa.route(Q, K, other)


def expanded(*shape):
    """Zeros that take no memory."""
    return np.broadcast_to(np.zeros(shape[-1], np.float32), shape)


@pytest.mark.parametrize(
    "queries,keys,error,match",
    [
        ((1 << 25, 0, 1, 8), (1 << 25, 9, 1, 8), ValueError, "B to be at most 16777216"),
        ((1 << 24, 0, 1, 8), (1 << 24, 1 << 30, 1, 8), RuntimeError, "out of memory"),
        ((1 << 20, 1 << 20, 1, 256), (1 << 20, 1 << 20, 1, 256), RuntimeError, "out of memory"),
    ],
)
def test_sizes_beyond_any_memory(queries, keys, error, match):
    with pytest.raises(error, match=match):
        pisa.attention(expanded(*queries), expanded(*keys), expanded(*keys))


def test_unknown_arguments():
    with pytest.raises(TypeError, match="topks"):
        pisa.attention(Q, K, K, topks=4)
    with pytest.raises(TypeError, match="topks"):
        pisa.explain(Q, K, K, topks=4)


def test_threads():
    before = pisa.get_num_threads()
    pisa.set_num_threads(3)
    assert pisa.get_num_threads() == 3
    for wrong, error in ((-1, ValueError), (4097, ValueError), ("2", TypeError)):
        with pytest.raises(error, match="count"):
            pisa.set_num_threads(wrong)
    pisa.set_num_threads(before)
