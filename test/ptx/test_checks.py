"""Lists of blocks checked on the GPU: which one is reported, and what is none."""

import os

import numpy as np
import problems
import pytest
from bundle import Bundle, CheckFailed

if "PISA_OPT" not in os.environ:
    pytest.skip("PISA_OPT names no pisa-opt", allow_module_level=True)

HEADS, KV_HEADS, DIM, QUERIES, KEYS, BLOCK = 2, 2, 8, 70, 128, 16


def check(lists):
    """Attends over the lists [B, Hkv, queries, K] in checked mode; returns what was written."""
    batch, _, queries, width = lists.shape
    q, k, indices, n = (
        f"tensor<?x{HEADS}x?x{DIM}xbf16>",
        f"tensor<?x{KV_HEADS}x?x{DIM}xbf16>",
        f"tensor<?x{KV_HEADS}x?x{width}xi32>",
        "tensor<?xi32>",
    )
    bundle = Bundle(problems.lower(f"""
func.func @f(%q: {q}, %k: {k}, %lists: {indices}, %n: {n}, %scale: f32, %out: {q}) -> {q} {{
  %0 = pisa.attention #pisa.params<block_size = {BLOCK}, topk = {max(width, 3)}>
         ins(%q, %k, %k, %lists : {q}, {k}, {k}, {indices}) k_len(%n : {n}) scale(%scale)
         outs(%out : {q}) -> {q}
  return %0 : {q}
}}
""", options="check-inputs=true"))  # fmt: skip
    ones = problems.to_bf16(np.ones((1, 1, 1, 1)))
    out = np.full((batch, HEADS, queries, DIM), 0x7FC0, np.uint16)
    bundle.run(
        "f",
        [np.tile(ones, (batch, HEADS, queries, DIM)), np.tile(ones, (batch, KV_HEADS, KEYS, DIM)),
         lists, np.full(batch, KEYS, np.int32), 1.0, out],
    )  # fmt: skip
    return out


def good(width, batch=1):
    """Lists of which each is in another order."""
    rng = np.random.default_rng(0)
    rows = [rng.permutation(1000)[:width] for _ in range(batch * KV_HEADS * QUERIES)]
    return np.array(rows, np.int32).reshape(batch, KV_HEADS, QUERIES, width)


@pytest.mark.parametrize("width", [1, 4, 40])
def test_lists_with_distinct_entries_pass(width):
    out = check(good(width))
    assert not (out == 0x7FC0).any()


def test_padding_and_entries_out_of_range_are_no_errors():
    lists = good(4)
    lists[:, 0] = [-1, 5, -1, 2]
    lists[0, 1, 3] = [-(2**31), -(2**31), 2**31 - 1, 0]
    check(lists)


@pytest.mark.parametrize(
    "head, query, row, block",
    [
        (0, 0, [7, 7, 1, 2], 7),
        (1, 69, [0, 1, 2, 0], 0),
        (0, 64, [-1, 9, -1, 9], 9),  # the first of the second task
        (1, 13, [3, 5, 5, 3], 5),  # what stands a second time first
        (0, 63, [2**31 - 1, 4, 4, 2**31 - 1], 4),
        (1, 0, [2**31 - 1, 2**31 - 1, 0, 0], 2**31 - 1),
    ],
)
def test_an_entry_that_stands_twice(head, query, row, block):
    lists = good(4)
    lists[0, head, query] = row
    with pytest.raises(CheckFailed) as failure:
        check(lists)
    assert failure.value.args[0] == (0, head, query, block)


def test_an_entry_that_another_lane_has():
    lists = good(40)
    lists[0, 1, 2, 39] = lists[0, 1, 2, 3]
    lists[0, 1, 2, 34] = lists[0, 1, 2, 33]
    with pytest.raises(CheckFailed) as failure:
        check(lists)
    assert failure.value.args[0] == (0, 1, 2, lists[0, 1, 2, 33])


def test_the_first_list_is_reported():
    lists = good(4, batch=3)
    for batch, head, query, block in [(2, 0, 0, 1), (1, 1, 3, 8), (1, 1, 2, 9), (2, 1, 69, 0)]:
        lists[batch, head, query] = block
    with pytest.raises(CheckFailed) as failure:
        check(lists)
    assert failure.value.args[0] == (1, 1, 2, 9)
