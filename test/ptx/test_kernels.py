"""The GPU pipeline's kernels, executed lane by lane, against float64 and against the CPU's code."""

import math
import os

import numpy as np
import problems
import pytest
from bundle import Bundle

if "PISA_OPT" not in os.environ:
    pytest.skip("PISA_OPT names no pisa-opt", allow_module_level=True)

CASES = {
    "plain": dict(heads=4, kv_heads=2, dim=16, topk=4, block=16, params="topk = 4"),
    "odd group": dict(heads=3, kv_heads=1, dim=24, topk=5, block=16, params="topk = 5"),
    "one head, wide fanout": dict(
        heads=1, kv_heads=1, dim=16, topk=4, block=16, params="topk = 4, fanout = 3, beam = 5"
    ),
    "values of another width": dict(
        heads=2, kv_heads=1, dim=16, topk=4, block=16, params="topk = 4", value_dim=40
    ),
    "a group of two tiles": dict(heads=20, kv_heads=1, dim=16, topk=4, block=32, params="topk = 4"),
}


def run(case, queries, keys, length, options=""):
    heads, kv_heads, dim, topk = (case[n] for n in ("heads", "kv_heads", "dim", "topk"))
    value_dim = case.get("value_dim", dim)
    params = f"#pisa.params<block_size = {case['block']}, {case['params']}>"
    text = problems.module(heads, kv_heads, dim, topk, params, value_dim=value_dim)
    bundle = Bundle(problems.lower(text, options=options))
    rng = np.random.default_rng(0)

    def normal(h, t, d):
        return problems.to_bf16(rng.standard_normal((1, h, t, d), np.float32))

    q, k, v = (
        normal(heads, queries, dim),
        normal(kv_heads, keys, dim),
        normal(kv_heads, keys, value_dim),
    )
    # Whatever lies past the length reaches nothing.
    k[:, :, length:] = v[:, :, length:] = 0x7FC0
    fanout = 3 if "fanout = 3" in case["params"] else 2
    rows, nodes = 0, -(-keys // case["block"])
    while True:
        rows += nodes
        if nodes == 1:
            break
        nodes = -(-nodes // fanout)
    pyramid = np.full((1, kv_heads, rows, dim), 0x7FC0, np.uint16)
    blocks = -(-queries // case.get("query_block", 1))
    lists = np.full((1, kv_heads, blocks, topk), -7, np.int32)
    out = np.full((1, heads, queries, value_dim), 0x7FC0, np.uint16)
    lse = np.full((1, heads, queries), np.nan, np.float32)
    start = length - queries
    bundle.run(
        "f",
        [q, k, v, pyramid, np.array([length], np.int32), np.array([start], np.int32),
         1 / math.sqrt(dim), lists, out, lse],
    )  # fmt: skip
    return q, k, v, lists, out, lse, start


def check(case, queries, keys, length, options=""):
    q, k, v, lists, out, lse, start = run(case, queries, keys, length, options)
    group = case["heads"] // case["kv_heads"]
    for h in range(case["heads"]):
        expected, expected_lse = problems.attend(
            *(problems.from_bf16(x[0, i]) for x, i in ((q, h), (k, h // group), (v, h // group))),
            lists[0, h // group], case["block"], start, length,
        )  # fmt: skip
        np.testing.assert_allclose(problems.from_bf16(out[0, h]), expected, atol=2e-2)
        np.testing.assert_allclose(lse[0, h], expected_lse, atol=1e-4)
    for row in lists[0].reshape(-1, case["topk"]):
        chosen = row[row >= 0]
        assert (np.diff(chosen) > 0).all() and (row[len(chosen) :] == -1).all()
    return lists


@pytest.mark.parametrize("name", CASES)
def test_attention_over_what_was_chosen(name):
    check(CASES[name], queries=70, keys=200, length=190)


def test_a_block_in_parts():
    """Keys and values of 256 rows of 256 elements exceed the memory of a task."""
    case = dict(heads=2, kv_heads=1, dim=256, topk=3, block=256, params="topk = 3")
    check(case, queries=20, keys=900, length=850)


def test_fewer_warps_where_memory_is_short():
    case = dict(
        heads=3, kv_heads=1, dim=16, topk=4, block=16, params="topk = 4, beam = 512, fanout = 8"
    )
    check(case, queries=5, keys=300, length=290)


# A row of partial outputs has value_dim * 2 + 4 bytes: chunks of one tile, and of all queries.
@pytest.mark.parametrize("partial", ["partial-bytes=1", "partial-bytes=1000000"])
@pytest.mark.parametrize("name", CASES)
def test_attention_by_key_block(name, partial):
    check(CASES[name], queries=70, keys=200, length=190, options=partial)


def test_attention_by_key_block_of_a_lone_query():
    check(CASES["plain"], queries=1, keys=64, length=33, options="partial-bytes=1")


def test_forced_blocks_are_chosen():
    lists = check(CASES["plain"], queries=100, keys=160, length=150)
    for head in lists[0]:
        for i, row in enumerate(head):
            current = (50 + i) // 16
            assert {0, current - 1, current} - {-1} <= set(row.tolist())
            assert (row >= 0).sum() == min(4, current + 1)


def test_a_lone_query():
    check(CASES["plain"], queries=1, keys=64, length=33)


def test_copies_in_a_pipeline():
    check(CASES["plain"], queries=40, keys=120, length=120, options="pipeline-copies=true")


CHOICES = {
    **{name: CASES[name] for name in ("odd group", "a group of two tiles")},
    "query blocks": dict(
        heads=4, kv_heads=2, dim=16, topk=5, block=16, params="topk = 5, query_block = 4",
        query_block=4,
    ),
    "only the current block is forced": dict(
        heads=2, kv_heads=2, dim=16, topk=4, block=16,
        params="topk = 4, sink_blocks = 0, local_blocks = 1", sink_blocks=0, local_blocks=1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_the_gpu_chooses_what_the_cpu_chooses(name):
    torch = pytest.importorskip("torch")
    import pisa

    case = CHOICES[name]
    more = {n: case[n] for n in ("query_block", "sink_blocks", "local_blocks") if n in case}
    q, k, v, lists, _, _, _ = run(case, 150, 150, 150)

    def tensor(x):
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16).transpose(1, 2)

    expected = pisa.attention(
        tensor(q), tensor(k), tensor(v), topk=case["topk"], block_size=case["block"],
        return_indices=True, **more,
    )[-1]  # fmt: skip
    differs = (torch.from_numpy(lists) != expected).any(-1).float().mean()
    assert differs <= 0.01


def test_static_shapes_of_one_task():
    heads, queries, keys, dim, block, topk = 2, 16, 64, 16, 16, 4
    q, k, pyramid, lists, lse, n = (
        f"tensor<1x{heads}x{queries}x{dim}xbf16>",
        f"tensor<1x1x{keys}x{dim}xbf16>",
        f"tensor<1x1x7x{dim}xbf16>",
        f"tensor<1x1x{queries}x{topk}xi32>",
        f"tensor<1x{heads}x{queries}xf32>",
        "tensor<1xi32>",
    )
    params = f"#pisa.params<block_size = {block}, topk = {topk}>"
    bundle = Bundle(problems.lower(f"""
func.func @f(%q: {q}, %k: {k}, %pyramid: {pyramid}, %n: {n}, %scale: f32, %lists: {lists},
             %out: {q}, %lse: {lse}) -> ({pyramid}, {lists}, {q}, {lse}) {{
  %0 = pisa.build_pyramid {params} ins(%k : {k}) k_len(%n : {n}) outs(%pyramid : {pyramid})
         -> {pyramid}
  %1 = pisa.route {params} ins(%q, %k, %0 : {q}, {k}, {pyramid}) k_len(%n : {n}) scale(%scale)
         outs(%lists : {lists}) -> {lists}
  %2:2 = pisa.attention {params} ins(%q, %k, %k, %1 : {q}, {k}, {k}, {lists}) k_len(%n : {n})
           scale(%scale) outs(%out : {q}) lse(%lse : {lse}) -> {q}, {lse}
  return %0, %1, %2#0, %2#1 : {pyramid}, {lists}, {q}, {lse}
}}
"""))  # fmt: skip
    rng = np.random.default_rng(0)
    query, key = (
        problems.to_bf16(rng.standard_normal((1, h, t, dim), np.float32))
        for h, t in ((heads, queries), (1, keys))
    )
    chosen = np.full((1, 1, queries, topk), -7, np.int32)
    out = np.full(query.shape, 0x7FC0, np.uint16)
    logs = np.full((1, heads, queries), np.nan, np.float32)
    bundle.run(
        "f",
        [query, key, np.full((1, 1, 7, dim), 0x7FC0, np.uint16), np.array([keys], np.int32),
         1 / math.sqrt(dim), chosen, out, logs],
    )  # fmt: skip
    assert (chosen == np.arange(4)).all()
    for h in range(heads):
        expected, expected_lse = problems.attend(
            *(problems.from_bf16(x) for x in (query[0, h], key[0, 0], key[0, 0])),
            chosen[0, 0], block, keys - queries, keys,
        )  # fmt: skip
        np.testing.assert_allclose(problems.from_bf16(out[0, h]), expected, atol=2e-2)
        np.testing.assert_allclose(logs[0, h], expected_lse, atol=1e-4)
