"""Views without a copy."""

import numpy as np
import pisa
import pytest
from oracle import normal


@pytest.fixture
def qkv():
    """[B, T, H, D]"""
    return normal(1, 2, 150, 4, 32), normal(2, 2, 150, 2, 32), normal(3, 2, 150, 2, 32)


def same(a, b):
    return all((x == y).all() for x, y in zip(a, b, strict=True))


def full(*qkv, **options):
    return pisa.attention(
        *qkv, topk=4, block_size=16, return_lse=True, return_indices=True, **options
    )


def test_transposed(qkv):
    want = full(*qkv)
    out, lse, indices = full(*(x.swapaxes(1, 2) for x in qkv), layout="bhsd")
    assert same((out.swapaxes(1, 2), lse, indices), want)


def test_fused_projection(qkv):
    fused = np.concatenate([x.reshape(2, 150, -1) for x in qkv], axis=2)
    q = fused[:, :, :128].reshape(2, 150, 4, 32)
    k, v = (fused[:, :, i : i + 64].reshape(2, 150, 2, 32) for i in (128, 192))
    assert all(np.shares_memory(x, fused) for x in (q, k, v))
    assert same(full(q, k, v), full(*qkv))


def test_slices(qkv):
    q, k, v = qkv
    padded = [np.pad(x, ((0, 0), (0, 9), (0, 3), (0, 5)), constant_values=np.nan) for x in (k, v)]
    k2, v2 = (x[:, :-9, :2, :32] for x in padded)
    wide = np.pad(q, ((0, 0), (7, 0), (0, 0), (8, 0)), constant_values=np.nan)
    assert same(full(wide[:, 7:, :, 8:], k2, v2), full(q, k, v))


def test_expanded_batch(qkv):
    q, k, v = qkv
    k, v = (np.broadcast_to(x[:1], x.shape) for x in (k, v))
    assert same(full(q, k, v), full(q, k.copy(), v.copy()))


def test_reversed_heads(qkv):
    """Negative strides are strides."""
    q, k, v = qkv
    got = full(q[:, :, ::-1], k[:, :, ::-1], v[:, :, ::-1])
    want = full(q[:, :, ::-1].copy(), k[:, :, ::-1].copy(), v[:, :, ::-1].copy())
    assert same(got, want)


def test_odd_strides_of_size_one():
    x = np.lib.stride_tricks.as_strided(
        normal(0, 50, 16), (1, 50, 1, 16), (4 * 12345, 64, 4 * 777, 4)
    )
    assert same(full(x, x, x), full(*(x.copy(),) * 3))


def test_byte_offsets():
    store = normal(0, 2 * 60 * 16 + 3)
    x = store[3:].reshape(2, 60, 1, 16)  # 12 bytes off any alignment of a vector
    assert same(full(x, x, x), full(*(x.copy(),) * 3))


def test_last_dimension_must_be_contiguous(qkv):
    q, k, v = qkv
    with pytest.raises(ValueError, match="'k'.*stride 1 in its last dimension, but got 2"):
        full(q, np.repeat(k, 2, axis=3)[..., ::2], v)


def test_read_only(qkv):
    for x in qkv:
        x.flags.writeable = False
    assert np.isfinite(full(*qkv)[0]).all()


def test_block_lists_in_other_orders(qkv):
    out, _, indices = full(*qkv)
    for order in ("bqhk", "bhqk"):
        there = pisa.to_block_lists(indices, order)
        back = pisa.from_block_lists(there.astype(np.int64), order)
        assert (back == indices).all()
        got = pisa.block_sparse_attention(*qkv, back, block_size=16)
        assert (got == out).all()
    one = pisa.to_block_lists(indices[:1], "hqk")
    assert one.shape == (2, 150, 4)
    assert (pisa.from_block_lists(one, "hqk") == indices[:1]).all()
    with pytest.raises(ValueError, match="batch of 1"):
        pisa.to_block_lists(indices, "hqk")
    with pytest.raises(ValueError, match="order"):
        pisa.to_block_lists(indices, "kqh")
    with pytest.raises(TypeError, match="float32"):
        pisa.from_block_lists(np.zeros((1, 1, 1, 1), np.float32), "bhqk")
