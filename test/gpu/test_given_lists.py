"""Attention over any lists of blocks, on every device."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import oracle  # noqa: E402
from common import SMALL, attend, attention, check_attention, make, same, wide  # noqa: E402

# 100 queries at the end of 7 blocks of 16, the last one short.
TOKENS, BLOCKS, WIDTH = 100, 7, 20


@pytest.fixture
def qkv(device, dtype):
    return make(TOKENS, batch=2, device=device, dtype=dtype)


def check(qkv, lists, **options):
    lists = torch.as_tensor(np.ascontiguousarray(lists, np.int32)).to(qkv[0].device)
    assert lists.shape == (2, 2, TOKENS, WIDTH)
    out, lse = attend(*qkv, lists, block_size=16, **options)
    check_attention(out, lse, *qkv, lists, block_size=16, **options)
    return out, lse


def holes():
    return np.full((2, 2, TOKENS, WIDTH), -1)


def random_lists(valid):
    """`valid` entries of each row, one number or [rows], are distinct blocks in any place."""
    rng, lists = np.random.default_rng(4), holes()
    for row, n in zip(lists.reshape(-1, WIDTH), np.broadcast_to(valid, 4 * TOKENS), strict=True):
        row[rng.permutation(WIDTH)[:n]] = rng.permutation(BLOCKS)[:n]
    return lists


@pytest.mark.parametrize("first", [0, 1, 8, 16, 17])
def test_holes_before_and_after_the_blocks(qkv, first):
    lists = holes()
    lists[..., first : first + 3] = [0, 3, 5]
    check(qkv, lists)


def test_rows_of_one_to_all_blocks_with_holes_anywhere(qkv):
    check(qkv, random_lists(np.arange(4 * TOKENS) % BLOCKS + 1))


def test_rows_of_holes_give_zero(qkv):
    lists = random_lists(3)
    lists[:, :, ::3] = -1
    lists[1, 1] = -1
    out, lse = check(qkv, lists)
    assert (out[1, :, 2:] == 0).all() and (lse[1, 2:] == -math.inf).all()


def test_nothing_but_holes_gives_zero(qkv):
    out, lse = check(qkv, holes())
    assert (out == 0).all() and (lse == -math.inf).all()


def test_entries_out_of_range_mean_nothing(qkv):
    lists = random_lists(2)
    wrong = [7, 8, 1 << 20, (1 << 31) - 1, 1 << 28, 1 << 27, -2, -(1 << 31)]
    lists[lists == -1] = np.random.default_rng(5).choice(wrong, (lists == -1).sum())
    check(qkv, lists)


def test_future_blocks_mean_nothing(qkv):
    lists = holes()
    lists[..., 4], lists[..., 9] = 6, 3
    out, lse = check(qkv, lists)
    assert (out[:, :48] == 0).all() and (lse[:, :, :48] == -math.inf).all()


def test_lists_wider_than_any_topk(device, dtype):
    """160 entries for 7 blocks, in front, in the middle and at the end."""
    q, k, v = make(TOKENS, batch=2, device=device, dtype=dtype)
    lists = torch.full((2, 2, TOKENS, 160), -1, dtype=torch.int32, device=device)
    lists[..., [0, 1, 70, 129, 158, 159]] = torch.tensor([3, 0, 5, 1, 9, 6], dtype=torch.int32).to(
        device
    )
    out, lse = attend(q, k, v, lists, block_size=16)
    check_attention(out, lse, q, k, v, lists, block_size=16)


def test_blocks_in_any_order(qkv):
    lists = holes()
    lists[..., :5] = [5, 0, 6, 3, 1]
    out, lse = check(qkv, lists)
    lists[..., :5] = [0, 1, 3, 5, 6]
    ascending, _ = check(qkv, lists)
    assert torch.allclose(out.float(), ascending.float(), atol=0.02)


def test_duplicates_are_finite_and_reported_on_request(qkv):
    lists = torch.full((2, 2, TOKENS, WIDTH), -1, dtype=torch.int32, device=qkv[0].device)
    lists[..., 0] = 0
    lists[1, 0, 57, :3] = torch.tensor([2, -1, 2])
    out, _ = attend(*qkv, lists, block_size=16)
    assert out.isfinite().all()
    with pytest.raises(RuntimeError, match="block 2 stands twice.*batch 1, kv head 0"):
        attend(*qkv, lists, block_size=16, check=True)


@pytest.mark.parametrize("tail", [1, 16, 63])
def test_the_last_block_may_be_short(device, dtype, tail):
    q, k, v = make(3 * 64 + tail, batch=2, device=device, dtype=dtype)
    lists = torch.tensor([3, -1, 0, -1], dtype=torch.int32, device=device)
    lists = lists.expand(2, 2, q.shape[1], 4)
    out, lse = attend(q, k, v, lists)
    check_attention(out, lse, q, k, v, lists, block_size=64)


def test_keys_past_the_end_add_nothing_where_all_logits_are_low(device, dtype):
    """exp(0) of a key that is not there would drown those that are."""
    q, k, v = make(3 * 64 + 1, batch=2, device=device, dtype=dtype)
    q[:], k[:] = 4, -4
    lists = torch.tensor([3, -1, -1, -1], dtype=torch.int32, device=device)
    lists = lists.expand(2, 2, q.shape[1], 4)
    out, lse = attend(q, k, v, lists)
    check_attention(out, lse, q, k, v, lists, block_size=64)
    assert torch.equal(out[:, -1, 0], v[:, -1, 0])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_poison_in_blocks_that_no_query_selects(qkv, value):
    q, k, v = qkv
    lists = holes()
    lists[..., [2, 6, 9]] = [0, 6, 4]
    want = check(qkv, lists)
    k[:, 16:64] = v[:, 16:64] = k[:, 80:96] = v[:, 80:96] = value
    assert same(check((q, k, v), lists), want)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_poison_past_the_length(qkv, value):
    q, k, v = qkv
    lengths, starts = [90, 33], [-10, 0]
    k[0, 90:] = v[0, 90:] = value
    k[1, 33:] = v[1, 33:] = value
    lists = holes()
    lists[..., :BLOCKS] = np.arange(BLOCKS)
    check((q, k, v), lists, k_len=lengths, q_start=starts)


def test_poison_in_unselected_blocks_with_chosen_lists(device, dtype):
    """The blocks that all queries leave out, with lists that pisa chose."""
    q, k, v = make(600, queries=8, device=device, dtype=dtype)
    out, lse, indices = attention(q, k, v, **SMALL)
    want = attend(q, k, v, indices, block_size=16)
    assert same(want, (out, lse))
    left_out = sorted(set(range(37)) - set(indices.flatten().tolist()))
    assert left_out
    for block in left_out:
        k[:, 16 * block : 16 * block + 16] = v[:, 16 * block : 16 * block + 16] = math.nan
    assert same(attend(q, k, v, indices, block_size=16), want)


def test_every_row_and_head_of_a_long_batch(device, dtype):
    """The last row of the last batch included; says where the error is largest."""
    q, k, v = make(4100, batch=2, heads=4, kv_heads=2, dim=32, device=device, dtype=dtype)
    out, lse, indices = attention(q, k, v, topk=8)
    check_attention(out, lse, q, k, v, indices, block_size=64)


def test_errors_are_at_most_twice_those_of_torch(device, dtype):
    """Of attention of the same type over the same blocks, both against float64."""
    q, k, v = (x.transpose(1, 2) for x in make(600, batch=2, device=device, dtype=dtype))
    out, _, indices = attention(q, k, v, layout="bhsd", **SMALL)
    block = torch.arange(600, device=device) // 16
    mask = (indices[..., None].long() == block).any(-2).tril().repeat_interleave(2, 1)
    heads = [x.repeat_interleave(2, 1) for x in (k, v)]
    theirs = torch.nn.functional.scaled_dot_product_attention(q, *heads, attn_mask=mask)
    every = [wide(x.transpose(1, 2)) for x in (q, k, v)]
    want, _ = oracle.attend(*every, indices.cpu().numpy(), block_size=16, scale=0.125)
    error = abs(out.double().cpu().numpy() - want).max()
    assert error <= 2 * abs(theirs.double().cpu().numpy() - want).max() + 1e-5
