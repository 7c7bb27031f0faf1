"""What a query selects, on every device."""

import pytest

torch = pytest.importorskip("torch")

import pisa  # noqa: E402
from common import (  # noqa: E402
    LARGE,
    SMALL,
    attention,
    check_attention,
    check_selection,
    make,
    normal,
    poison,
    same,
)
from oracle import check_selection as check_forced  # noqa: E402

PRESCORE = SMALL | dict(rerank=0, beam=8)
RERANK = SMALL | dict(rerank=8, beam=8)
WIDE = SMALL | dict(fanout=4)
SHARED = SMALL | dict(query_block=8)
EVERY = SMALL | dict(topk=40)


@pytest.mark.parametrize(
    "options", [SMALL, WIDE, PRESCORE, RERANK, SHARED],
    ids=["paper", "fanout 4", "pre-score", "re-rank", "query blocks"],
)  # fmt: skip
def test_selection_and_output_agree_with_float64(device, dtype, options):
    q, k, v = make(600, batch=2, device=device, dtype=dtype)
    out, lse, indices = attention(q, k, v, **options)
    rows = [*range(0, indices.shape[2] - 1, 3), indices.shape[2] - 1]
    check_selection(indices, q, k, rows=rows, **options)
    shared = options.get("query_block", 1)
    check_attention(out, lse, q, k, v, indices, block_size=16, query_block=shared)


@pytest.mark.parametrize(
    "heads, kv_heads, dim, value_dim",
    [(8, 2, 128, 128), (7, 1, 80, 80), (4, 4, 40, 24), (6, 2, 192, 128), (2, 1, 256, 256)],
)
def test_heads_and_head_dimensions(device, dtype, heads, kv_heads, dim, value_dim):
    sizes = dict(heads=heads, kv_heads=kv_heads, dim=dim, value_dim=value_dim)
    q, k, v = make(500, **sizes, device=device, dtype=dtype)
    options = dict(topk=7, block_size=32)
    out, lse, indices = attention(q, k, v, **options)
    check_selection(indices, q, k, rows=[*range(0, 499, 3), 499], **options)
    check_attention(out, lse, q, k, v, indices, block_size=32)


def test_without_causality_nothing_is_forced_and_short_nodes_count(device, dtype):
    q, k, v = make(603, queries=90, batch=2, device=device, dtype=dtype)
    options = SMALL | dict(causal=False)
    # The last block, which is short, is what every other query looks for.
    q[:, ::2] += 1
    k[:, 592:] += 1
    out, lse, indices = attention(q, k, v, **options)
    found = (indices == 37).any(-1)
    assert found[:, :, ::2].all() and not found[:, :, 1::2].any()
    assert not (indices == 0).any(-1).all()
    check_selection(indices, q, k, most_tied=8, **options)
    check_attention(out, lse, q, k, v, indices, block_size=16, causal=False)


@pytest.mark.parametrize(
    "options, tokens",
    [(SMALL, 530), (RERANK, 530), (SHARED, 528), (EVERY, 300), (LARGE, 600)],
    ids=["paper", "re-rank", "query blocks", "every block", "large blocks"],
)
def test_later_keys_change_nothing(device, dtype, options, tokens):
    """Blocks and output of a query, bit for bit, at every boundary of the tree."""
    block, shared = options["block_size"], options.get("query_block", 1)
    q, k, v = make(tokens, device=device, dtype=dtype)
    first = attention(q, k, v, **options)
    ends = {1, 2} | {(block << level) + i for level in range(6) for i in (-1, 0, 1)}
    for end in sorted(end for end in ends if end < tokens):
        # Rows of a query block see keys up to the block's end.
        seen = -(-end // shared) * shared
        k2, v2 = k.clone(), v.clone()
        k2[:, seen:], v2[:, seen:] = 30 - k[:, seen:], 5 + v[:, seen:]
        out, lse, indices = attention(q, k2, v2, **options)
        assert torch.equal(indices[:, :, : seen // shared], first[2][:, :, : seen // shared])
        assert torch.equal(out[:, :end], first[0][:, :end])
        assert torch.equal(lse[:, :, :end], first[1][:, :, :end])
        if shared == 1:
            assert not torch.equal(out[:, end:], first[0][:, end:])


@pytest.mark.parametrize("tokens", [1, 63, 64, 65, 127, 128, 511, 512, 513])
def test_later_keys_change_nothing_at_the_end_of_a_sequence(device, dtype, tokens):
    """A query alone at the end of its keys, with what follows it past the length."""
    q, k, v = make(tokens + 70, device=device, dtype=dtype)
    q = q[:, tokens - 1 : tokens]
    before = attention(q, k, v, k_len=tokens, q_start=tokens - 1, **LARGE)
    k2, v2 = k.clone(), v.clone()
    k2[:, tokens:], v2[:, tokens:] = 30, -5
    assert same(attention(q, k2, v2, k_len=tokens, q_start=tokens - 1, **LARGE), before)
    assert same(attention(q, k2, v2, q_start=tokens - 1, **LARGE), before)


def test_later_keys_change_nothing_in_dense_attention(device, dtype):
    q, k, v = make(200, device=device, dtype=dtype)
    options = dict(topk=6, dense_below=201, return_lse=True)
    out, lse = pisa.attention(q, k, v, **options)
    for end in (1, 64, 65, 128, 199):
        k2, v2 = k.clone(), v.clone()
        k2[:, end:], v2[:, end:] = 30, -5
        again, again_lse = pisa.attention(q, k2, v2, **options)
        assert torch.equal(again[:, :end], out[:, :end])
        assert torch.equal(again_lse[:, :, :end], lse[:, :, :end])


def lower_blocks(tokens, topk, block):
    """[T, K]: the forced blocks, then the lowest."""
    rows = []
    for token in range(tokens):
        own = token // block
        chosen = {0, own, max(own - 1, 0)}
        chosen |= set([b for b in range(own + 1) if b not in chosen][: topk - len(chosen)])
        rows.append(sorted(chosen) + [-1] * (topk - len(chosen)))
    return torch.tensor(rows, dtype=torch.int32)


@pytest.mark.parametrize("options", [SMALL, PRESCORE, LARGE], ids=["paper", "pre-score", "large"])
@pytest.mark.parametrize("tie", ["constant keys", "zero queries"])
def test_equal_scores_choose_lower_blocks(device, dtype, options, tie):
    tokens = 600 if options["block_size"] == 16 else 1100
    q, k, v = make(tokens, device=device, dtype=dtype)
    if tie == "constant keys":
        k[:] = k[:, :1].clone()
    else:
        q[:] = 0
    out, lse, indices = attention(q, k, v, **options)
    want = lower_blocks(tokens, options["topk"], options["block_size"]).to(device)
    assert torch.equal(indices, want.expand_as(indices))
    check_attention(out, lse, q, k, v, indices, block_size=options["block_size"])


@pytest.mark.parametrize("scores", ["random", "equal"])
def test_a_hundred_runs_give_the_same_bits(device, dtype, scores):
    q, k, v = make(600, batch=2, device=device, dtype=dtype)
    if scores == "equal":
        k[:] = k[:, :1].clone()
    first = attention(q, k, v, **SMALL)
    for _ in range(100):
        assert same(attention(q, k, v, **SMALL), first)


def test_forced_blocks_stay_however_low_they_score(device, dtype):
    """The sink and the block before the query's own, also of the first query of a block."""
    q, k, v = make(600, device=device, dtype=dtype)
    q[:] = q.abs()
    k[:, :16] = -20
    for first in (288, 576):
        # The block before the queries at `first` .. `first` + 15 scores least of all too.
        k2 = k.clone()
        k2[:, first - 16 : first] = -20
        out, lse, indices = attention(q, k2, v, **SMALL)
        check_forced(indices.cpu().numpy(), topk=6, keys=600, block_size=16)
        check_attention(out, lse, q, k2, v, indices, block_size=16)


def test_all_blocks_are_chosen_where_topk_allows(device, dtype):
    """More entries than blocks: what is chosen is dense attention."""
    q, k, v = make(300, batch=2, device=device, dtype=dtype)
    out, lse, indices = attention(q, k, v, **EVERY)
    own = torch.arange(300, device=device)[:, None] // 16
    block = torch.arange(EVERY["topk"], device=device)
    want = torch.where(block <= own, block, -1).int()
    assert torch.equal(indices, want.expand_as(indices))
    check_attention(out, lse, q, k, v, block.expand_as(indices).int(), block_size=16)


@pytest.mark.parametrize("topk", [1, 2])
def test_topk_below_the_forced_blocks_is_refused(device, topk):
    q, k, v = make(100, device=device, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match=f"'topk' to be at least 3.*got {topk}"):
        pisa.attention(q, k, v, topk=topk)


@pytest.mark.parametrize("chunk", [1, 63, 64, 100, 1000])
def test_chunks_choose_as_one_shot(device, dtype, chunk):
    """In a cache whose free part is NaN."""
    tokens = 300
    q, k, v = make(tokens, device=device, dtype=dtype)
    want = attention(q, k, v, **SMALL)[2].cpu()
    cache_k, cache_v = (x.new_full((1, 512, 2, 64), float("nan")) for x in (k, v))
    outs, lses, chosen = [], [], []
    for start in range(0, tokens, chunk):
        stop = min(start + chunk, tokens)
        cache_k[:, start:stop], cache_v[:, start:stop] = k[:, start:stop], v[:, start:stop]
        out, lse, indices = attention(
            q[:, start:stop], cache_k, cache_v, k_len=stop, q_start=start, **SMALL
        )
        outs.append(out), lses.append(lse), chosen.append(indices)
    indices = torch.cat(chosen, 2)
    check_attention(torch.cat(outs, 1), torch.cat(lses, 2), q, k, v, indices, block_size=16)
    other = (indices.cpu() != want).any(-1).any(1)[0].nonzero().flatten().tolist()
    # Other strategies may decide otherwise where scores tie.
    assert len(other) <= 1
    if other:
        check_selection(indices, q, k, rows=other, **SMALL)


@pytest.mark.parametrize("options", [SMALL, RERANK], ids=["paper", "re-rank"])
def test_poison_past_the_length_changes_nothing(device, dtype, options):
    q, k, v = make(500, batch=2, device=device, dtype=dtype)
    lengths = [437, 96]
    clean, poisoned = ([k.clone(), v.clone()] for _ in range(2))
    for b, length in enumerate(lengths):
        for x in clean:
            x[b, length:] = 0
        for x, value in zip(poisoned, (float("nan"), float("inf")), strict=True):
            x[b, length:] = value
    q = q[:, :90]
    starts = [length - 90 for length in lengths]
    want = attention(q, *clean, k_len=lengths, q_start=starts, **options)
    got = attention(q, *poisoned, k_len=lengths, q_start=starts, **options)
    assert same(got, want)
    out, lse, indices = got
    check_attention(out, lse, q, *poisoned, indices, block_size=16, k_len=lengths, q_start=starts)


def test_poison_past_the_length_reaches_no_summary(device, dtype):
    k = make(500, device=device, dtype=dtype)[1]
    length = 437
    alone = pisa.build_pyramid(k[:, :length], block_size=16)
    k[:, length:] = float("nan")
    poison(device)
    pyramid = pisa.build_pyramid(k, block_size=16, k_len=length)
    # Nodes whose keys have all arrived, level by level; the capacity decides where a level begins.
    first = first_alone = 0
    nodes, nodes_alone, span = 32, 28, 16
    while span <= length:
        whole = length // span
        got = pyramid.summaries[:, :, first : first + whole]
        assert torch.equal(got, alone.summaries[:, :, first_alone : first_alone + whole])
        assert got.isfinite().all()
        first, first_alone, span = first + nodes, first_alone + nodes_alone, 2 * span
        nodes, nodes_alone = -(-nodes // 2), -(-nodes_alone // 2)


def test_summaries_are_float32_means_in_the_order_of_the_keys(device, dtype):
    tokens, block = 512, 16
    k = make(tokens, device=device, dtype=dtype)[1]
    poison(device)
    pyramid = pisa.build_pyramid(k, block_size=block, fanout=2)
    parts, count, row = k[0].cpu().float().transpose(0, 1).unflatten(1, (-1, block)), block, 0
    while True:
        sums = torch.zeros_like(parts[:, :, 0])
        for i in range(parts.shape[2]):
            sums += parts[:, :, i]
        n = sums.shape[1]
        want = (sums / count).to(dtype)
        assert torch.equal(pyramid.summaries[0, :, row : row + n].cpu(), want), f"{n} nodes"
        if n == 1:
            break
        parts, count, row = sums.unflatten(1, (-1, 2)), 2 * count, row + n


def test_logits_of_ten_thousand(device, dtype):
    q, k, v = make(600, device=device, dtype=dtype)
    scale = 300.0
    out, lse, indices = attention(q, k, v, softmax_scale=scale, **SMALL)
    assert lse.abs().max() > 1e4
    # A logit's own rounding, in float32.
    slack = 2e4 * 2.0**-22
    check_attention(out, lse, q, k, v, indices, block_size=16, scale=scale, slack=slack)


def test_one_huge_key(device, dtype):
    q, k, v = make(600, device=device, dtype=dtype)
    k[:, 77] *= 1e4
    out, lse, indices = attention(q, k, v, **SMALL)
    check_attention(out, lse, q, k, v, indices, block_size=16, slack=5e4 * 2.0**-22)
    # Queries with a head that is drawn to it find its block.
    drawn = (q[0, :, :2].float() @ k[0, 77, 0].float()).max(-1).values > 1e4
    drawn[:96] = False
    assert drawn.sum() > 100
    assert (indices[0, 0, drawn] == 77 // 16).any(-1).all()


def test_a_common_channel_of_a_hundred(device, dtype):
    q, k, v = make(600, device=device, dtype=dtype)
    k[..., 5] += 100
    k[:, :, 1, 9] -= 100
    out, lse, indices = attention(q, k, v, **SMALL)
    check_selection(indices, q, k, rows=[*range(0, 600, 5), 599], **SMALL)
    check_attention(out, lse, q, k, v, indices, block_size=16)


def test_strong_blocks_are_found_in_a_long_context(device, dtype):
    """Scores of 2^18 keys drown nothing: the selection is not just the latest blocks."""
    tokens, queries = 1 << 18, 16
    q = normal(0, 1, queries, 2, 64, dtype=dtype, device=device)
    k = normal(1, 1, tokens, 1, 64, dtype=dtype, device=device)
    # What the queries have in common, and what some blocks have of it.
    direction = torch.nn.functional.normalize(normal(2, 64, dtype=torch.float32), dim=0).to(device)
    q += (20 * direction).to(dtype)
    planted = [100, 1023, 1024, 2500, 3333, 4000]
    for b in planted:
        k[:, 64 * b : 64 * b + 64] += (20 * direction).to(dtype)
    out, lse, indices = attention(q, k, k, topk=16, block_size=64)
    check_selection(indices, q, k, most_tied=queries, topk=16, block_size=64)
    for b in [0, *planted, 4094, 4095]:
        assert (indices == b).any(-1).all()
    check_attention(out, lse, q, k, k, indices, block_size=64)


def test_a_batch_equals_each_sequence_alone(device, dtype):
    q, k, v = make(600, batch=3, device=device, dtype=dtype)
    together = attention(q, k, v, **SMALL)
    for b in range(3):
        alone = attention(*(x[b : b + 1] for x in (q, k, v)), **SMALL)
        assert same(alone, [x[b : b + 1] for x in together])


def test_sequences_of_different_lengths_equal_each_alone(device, dtype):
    q, k, v = make(500, batch=4, device=device, dtype=dtype)
    q = q[:, :40]
    lengths = [500, 40, 257, 96]
    together = attention(q, k, v, k_len=lengths, **SMALL)
    for b, length in enumerate(lengths):
        one = slice(b, b + 1)
        alone = attention(q[one], k[one, :length], v[one, :length], **SMALL)
        assert same(alone, [x[one] for x in together])


@pytest.mark.parametrize(
    "options", [SMALL, PRESCORE, RERANK, SHARED, LARGE],
    ids=["paper", "pre-score", "re-rank", "query blocks", "large blocks"],
)  # fmt: skip
def test_cpu_and_gpu_choose_the_same(cuda, dtype, options):
    """But where scores tie; and outputs agree where choices do."""
    q, k, v = make(1000, batch=2, queries=600, device=cuda, dtype=dtype)
    options = options | dict(q_start=400)
    out, lse, indices = (x.cpu() for x in attention(q, k, v, **options))
    here = attention(q.cpu(), k.cpu(), v.cpu(), **options)
    other = (indices != here[2]).any(-1).any(0).any(0).nonzero().flatten().tolist()
    print(f"{len(other)} rows chose otherwise")
    assert len(other) <= 2
    start = options.pop("q_start")
    if other:
        check_selection(indices, q.cpu(), k.cpu(), rows=other, start=start, **options)
    same_rows = torch.ones(indices.shape[2], dtype=torch.bool)
    same_rows[other] = False
    same_rows = same_rows.repeat_interleave(options.get("query_block", 1))[:600]
    eps = 2**-8 if dtype == torch.bfloat16 else 2**-11
    error = (out.double() - here[0].double()).abs()[:, same_rows].max()
    assert error <= 2 * eps * v.abs().max() + 1e-5
    assert (lse - here[1]).abs()[:, :, same_rows].max() <= 1e-3


def test_blocks_of_nan_are_chosen_last(device, dtype):
    q, k, v = make(600, batch=2, device=device, dtype=dtype)
    clean = attention(q, k, v, **SMALL)
    k[:, 200] = float("nan")
    out, lse, indices = attention(q, k, v, **SMALL)
    assert same(tuple(x[:, :, :200] for x in (lse, indices)), [x[:, :, :200] for x in clean[1:]])
    assert torch.equal(out[:, :200], clean[0][:, :200])
    # From here on no query is forced to look at block 12.
    rows = slice(14 * 16, None)
    assert not (indices[:, :, rows] == 12).any()
    check_forced(indices[:, :, rows].cpu().numpy(), topk=6, keys=600, block_size=16)
    assert out[:, rows].isfinite().all() and lse[:, :, rows].isfinite().all()
    # Those that are forced to see it show it.
    assert out[:, 200:208].isnan().all() and lse[:, :, 200:208].isnan().all()


def test_a_query_of_nan_spoils_no_other(device, dtype):
    q, k, v = make(600, batch=2, device=device, dtype=dtype)
    clean = attention(q, k, v, **SMALL)
    q[1, 333, 0] = float("nan")
    out, lse, indices = attention(q, k, v, **SMALL)
    others = torch.ones(600, dtype=torch.bool, device=device)
    others[333] = False
    assert torch.equal(out[:, others], clean[0][:, others])
    assert torch.equal(lse[:, :, others], clean[1][:, :, others])
    assert torch.equal(indices[:, :, others], clean[2][:, :, others])
    # All scores of its group are NaN: the lower blocks. The other head of the group is right.
    assert indices[1, 0, 333].tolist() == [0, 1, 2, 3, 19, 20]
    assert out[1, 333, 0].isnan().all() and out[1, 333, 1].isfinite().all()
    assert torch.equal(indices[1, 1, 333], clean[2][1, 1, 333])
