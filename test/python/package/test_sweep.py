"""Shapes, parameters and dtypes against float64."""

import numpy as np
import pisa
import pytest
from oracle import attend, check_selection, normal, tolerance

LENGTHS = (1, 2, 63, 64, 65, 127, 129, 511, 513, 1001)
HEADS = ((1, 1), (4, 4), (8, 2), (12, 4), (6, 2), (7, 1), (16, 1))
DEPTHS = ((16, 16), (32, 32), (64, 64), (80, 80), (96, 64), (128, 128), (192, 128), (256, 256))


def cases(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        keys = int(rng.choice(LENGTHS))
        yield {
            "batch": int(rng.integers(1, 4)),
            "keys": keys,
            "queries": int(min(keys, rng.choice([1, 5, 64, 100, keys]))),
            "heads": HEADS[rng.integers(len(HEADS))],
            "depths": DEPTHS[rng.integers(len(DEPTHS))],
            "topk": int(rng.choice([3, 4, 8, 16, 32])),
            "block_size": int(rng.choice([16, 32, 64, 128])),
            "fanout": int(rng.choice([2, 3, 4, 8])),
            "rerank": bool(rng.integers(2)),
            "dtype": ["float32", "float16"][rng.integers(2)],
            "layout": ["bshd", "bhsd"][rng.integers(2)],
        }


@pytest.mark.parametrize("case", list(cases(24)), ids=lambda c: "-".join(map(str, c.values())))
def test_attention_against_float64(case):
    heads, kv_heads = case["heads"]
    depth, value_depth = case["depths"]
    batch, keys, queries = case["batch"], case["keys"], case["queries"]
    q = normal(1, batch, heads, queries, depth, dtype=case["dtype"])
    k = normal(2, batch, kv_heads, keys, depth, dtype=case["dtype"])
    v = normal(3, batch, kv_heads, keys, value_depth, dtype=case["dtype"])
    given = [q, k, v]
    if case["layout"] == "bshd":
        given = [np.ascontiguousarray(x.swapaxes(1, 2)) for x in given]
    options = {key: case[key] for key in ("topk", "block_size", "fanout", "layout")}
    if case["rerank"]:
        options |= {"rerank": case["topk"], "beam": case["topk"] + 1}
    out, lse, indices = pisa.attention(*given, **options, return_lse=True, return_indices=True)
    if case["layout"] == "bshd":
        out = out.swapaxes(1, 2)
    assert out.dtype == q.dtype and lse.dtype == np.float32 and indices.dtype == np.int32
    check_selection(indices, topk=case["topk"], keys=keys, block_size=case["block_size"])
    want, want_lse = attend(
        q, k, v, indices, block_size=case["block_size"], scale=1 / np.sqrt(depth)
    )
    assert np.abs(out - want).max() <= tolerance(v, case["dtype"])
    assert np.abs(lse - want_lse).max() <= 1e-4 * np.maximum(1, np.abs(want_lse)).max()


def test_a_long_sequence():
    q, k, v = normal(1, 1, 2, 4097, 32), normal(2, 1, 1, 4097, 32), normal(3, 1, 1, 4097, 32)
    out, indices = pisa.attention(q, k, v, topk=8, layout="bhsd", return_indices=True)
    check_selection(indices, topk=8, keys=4097, block_size=64)
    want, _ = attend(q, k, v, indices, block_size=64, scale=32**-0.5)
    assert np.abs(out - want).max() <= tolerance(v, "float32")


def test_all_blocks_is_dense_attention():
    q, k, v = (normal(s, 2, 200, 4, 32) for s in range(3))
    out = pisa.attention(q, k, v, topk=8, block_size=32)
    dense = pisa.attention(q, k, v, topk=3, block_size=32, dense_below=201)
    assert np.abs(out - dense).max() < 1e-5
    sparse = pisa.attention(q, k, v, topk=3, block_size=32, dense_below=200)
    assert np.abs(out - sparse).max() > 1e-3


def test_lengths_and_chunks():
    """Chunked prefill in a cache with poisoned slack equals one shot, bits and selections."""
    q, k, v = normal(1, 1, 300, 4, 32), normal(2, 1, 300, 2, 32), normal(3, 1, 300, 2, 32)
    want = pisa.attention(q, k, v, topk=4, block_size=32, return_indices=True)
    cache_k = np.full((1, 512, 2, 32), np.nan, np.float32)
    cache_v = cache_k.copy()
    for start, stop in ((0, 1), (1, 64), (64, 164), (164, 300)):
        cache_k[:, start:stop], cache_v[:, start:stop] = k[:, start:stop], v[:, start:stop]
        got = pisa.attention(
            q[:, start:stop], cache_k, cache_v, topk=4, block_size=32, k_len=stop, q_start=start,
            return_indices=True,
        )  # fmt: skip
        assert np.abs(got[0] - want[0][:, start:stop]).max() < 1e-5
        assert (got[1] == want[1][:, :, start:stop]).all()


def test_query_blocks_share_a_selection():
    q, k, v = normal(1, 1, 4, 130, 32), normal(2, 1, 2, 130, 32), normal(3, 1, 2, 130, 32)
    out, indices = pisa.attention(
        q, k, v, topk=5, block_size=16, query_block=8, q_start=0, layout="bhsd", return_indices=True
    )
    assert indices.shape == (1, 2, 17, 5)
    want, _ = attend(q, k, v, indices, block_size=16, scale=32**-0.5, shared=8)
    assert np.abs(out - want).max() < 1e-5


def test_without_causal():
    q, k, v = normal(1, 1, 2, 50, 32), normal(2, 1, 1, 333, 32), normal(3, 1, 1, 333, 32)
    out, indices = pisa.attention(q, k, v, topk=4, causal=False, layout="bhsd", return_indices=True)
    want, _ = attend(q, k, v, indices, block_size=64, scale=32**-0.5, causal=False)
    assert np.abs(out - want).max() < 1e-5


@pytest.mark.parametrize("shape", [(0, 5, 5), (1, 0, 5), (2, 0, 0)])
def test_nothing_to_do(shape):
    batch, queries, keys = shape
    q, k = np.zeros((batch, queries, 2, 16), np.float32), np.zeros((batch, keys, 1, 16), np.float32)
    out, lse = pisa.attention(q, k, k, return_lse=True)
    assert out.shape == q.shape and lse.shape == (batch, 2, queries)


def test_no_keys_gives_zero():
    q, k = normal(0, 2, 3, 2, 16), np.zeros((2, 0, 1, 16), np.float32)
    out, lse, indices = pisa.attention(q, k, k, return_lse=True, return_indices=True)
    assert (out == 0).all() and (lse == -np.inf).all() and (indices == -1).all()


def test_extreme_logits():
    q, k, v = (normal(s, 1, 200, 1, 16) for s in range(3))
    k[0, 77] *= 1e4
    out, indices = pisa.attention(q, k, v, topk=3, return_indices=True)
    want, _ = attend(*(x.swapaxes(1, 2) for x in (q, k, v)), indices, block_size=64, scale=0.25)
    assert np.abs(out.swapaxes(1, 2) - want).max() < 1e-4
