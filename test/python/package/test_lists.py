"""Any list of blocks is accepted: entries that mean nothing contribute nothing."""

import numpy as np
import pisa
import pytest
from oracle import attend, normal

C = 16


@pytest.fixture
def qkv():
    """100 queries over 100 keys, 4 and 2 heads, [B, H, T, D]."""
    return normal(1, 2, 4, 100, 32), normal(2, 2, 2, 100, 32), normal(3, 2, 2, 100, 32)


def run(qkv, lists, **options):
    return pisa.block_sparse_attention(
        *qkv,
        np.ascontiguousarray(lists, np.int32),
        block_size=C,
        layout="bhsd",
        return_lse=True,
        **options,
    )


def compare(qkv, lists, **options):
    out, lse = run(qkv, lists, **options)
    want, want_lse = attend(*qkv, lists, block_size=C, scale=32**-0.5, **options)
    assert np.abs(out - want).max() < 1e-5
    finite = np.isfinite(want_lse)
    assert (np.isfinite(lse) == finite).all() and not np.isnan(lse).any()
    assert np.abs(lse[finite] - want_lse[finite]).max(initial=0) < 1e-4
    assert (out[~finite] == 0).all() and (lse[~finite] == -np.inf).all()


def random_lists(width, valid):
    rng = np.random.default_rng(4)
    lists = np.full((2, 2, 100, width), -1)
    for row in lists.reshape(-1, width):
        row[rng.permutation(width)[:valid]] = rng.permutation(7)[:valid]
    return lists


@pytest.mark.parametrize("width,valid", [(1, 1), (4, 2), (7, 7), (20, 3), (33, 7), (64, 0)])
def test_holes_anywhere(qkv, width, valid):
    compare(qkv, random_lists(width, valid))


def test_holes_in_front(qkv):
    lists = np.full((2, 2, 100, 20), -1)
    lists[..., 16:19] = [0, 3, 5]
    compare(qkv, lists)


def test_a_row_of_holes(qkv):
    lists = random_lists(4, 4)
    lists[:, :, ::3] = -1
    compare(qkv, lists)


def test_out_of_range(qkv):
    lists = random_lists(8, 2)
    lists[lists == -1] = np.random.default_rng(5).choice(
        [7, 8, 1 << 20, (1 << 31) - 1, -2, -(1 << 31)], (lists == -1).sum()
    )
    compare(qkv, lists)


def test_future_blocks(qkv):
    lists = np.full((2, 2, 100, 1), 6)
    compare(qkv, lists)


def test_unordered(qkv):
    lists = np.broadcast_to([5, 0, 3, 1], (2, 2, 100, 4))
    compare(qkv, lists)


def test_poison_in_blocks_that_nobody_selects(qkv):
    q, k, v = qkv
    k[:, :, 32:48] = v[:, :, 32:48] = np.nan
    lists = np.broadcast_to([0, 4, 6], (2, 2, 100, 3))
    compare((q, k, v), lists)


def test_poison_past_the_length(qkv):
    q, k, v = qkv
    k[0, :, 90:] = v[0, :, 90:] = np.nan
    k[1, :, 33:] = v[1, :, 33:] = np.inf
    lists = np.broadcast_to(np.arange(7), (2, 2, 100, 7))
    compare((q, k, v), lists, k_len=[90, 33], q_start=[-10, 0])


def test_duplicates_are_reported_on_request(qkv):
    lists = np.full((2, 2, 100, 3), -1)
    lists[1, 0, 57] = [2, -1, 2]
    out, _ = run(qkv, lists)
    assert np.isfinite(out).all()
    with pytest.raises(RuntimeError, match="block 2 stands twice.*batch 1, kv head 0"):
        run(qkv, lists, check=True)


def test_the_last_block_may_be_short():
    for tail in (1, 15, 16):
        keys = 3 * C + tail
        q, k, v = (normal(s, 1, 1, keys, 16) for s in range(3))
        lists = np.broadcast_to([0, 3], (1, 1, keys, 2))
        out, _ = run((q, k, v), lists)
        want, _ = attend(q, k, v, lists, block_size=C, scale=0.25)
        assert np.abs(out - want).max() < 1e-5
