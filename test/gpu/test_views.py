"""Views without a copy, offsets beyond 32 bits, and index tensors that are wrong."""

import math

import pytest

torch = pytest.importorskip("torch")

import pisa  # noqa: E402
from common import (  # noqa: E402
    SMALL,
    attend,
    attention,
    check_attention,
    check_selection,
    make,
    normal,
    poison,
    same,
)


@pytest.fixture
def qkv(device, dtype):
    """[2, 150, H, 64], contiguous."""
    return tuple(x.contiguous() for x in make(150, batch=2, device=device, dtype=dtype))


@pytest.fixture
def want(qkv):
    return attention(*qkv, **SMALL)


def test_transposed(qkv, want):
    heads_first = [x.transpose(1, 2).contiguous() for x in qkv]
    out, lse, indices = attention(*heads_first, layout="bhsd", **SMALL)
    assert same((out.transpose(1, 2), lse, indices), want)
    assert same(attention(*(x.transpose(1, 2) for x in heads_first), **SMALL), want)


def test_fused_projection(qkv, want):
    fused = torch.cat([x.flatten(2) for x in qkv], 2)
    parts = [x.unflatten(2, (-1, 64)) for x in fused.split([256, 128, 128], 2)]
    assert all(x.untyped_storage().data_ptr() == fused.data_ptr() for x in parts)
    assert same(attention(*parts, **SMALL), want)


def test_all_but_the_last_keys(qkv, want):
    """k[:, :, :-128], heads first."""
    q, k, v = (x.transpose(1, 2) for x in qkv)
    longer = [torch.nn.functional.pad(x, (0, 0, 0, 128), value=math.nan) for x in (k, v)]
    k, v = (x[:, :, :-128] for x in longer)
    out, lse, indices = attention(q, k, v, layout="bhsd", **SMALL)
    assert same((out.transpose(1, 2), lse, indices), want)


def test_slack_on_all_sides(qkv, want, device, dtype):
    assert same(attention(*make(150, batch=2, device=device, dtype=dtype), **SMALL), want)


@pytest.mark.parametrize("more", [1, 3, 4, 8])
def test_rows_of_any_alignment(qkv, want, more):
    """Rows that begin 2, 6, 8 or 16 bytes after where a row of vectors would."""
    views = []
    for x in qkv:
        outer = x.new_full((*x.shape[:3], 64 + 2 * more), math.nan)
        outer[..., more : more + 64] = x
        views.append(outer[..., more : more + 64])
    assert same(attention(*views, **SMALL), want)


@pytest.mark.parametrize("offset", [1, 4])
def test_storage_of_any_alignment(qkv, want, offset):
    views = []
    for x in qkv:
        store = x.new_full((x.numel() + 8,), math.nan)
        views.append(store[offset : offset + x.numel()].view(x.shape))
        views[-1].copy_(x)
    assert same(attention(*views, **SMALL), want)


def test_expanded_batch(qkv):
    q, k, v = qkv
    got = attention(q, k[:1].expand(2, -1, -1, -1), v[:1].expand(2, -1, -1, -1), **SMALL)
    assert same(got, attention(q, k[:1].repeat(2, 1, 1, 1), v[:1].repeat(2, 1, 1, 1), **SMALL))


def test_expanded_heads_and_tokens(qkv):
    q, k, v = qkv
    one = k[:, :, :1].expand(-1, -1, 2, -1)
    row = v[:, :1].expand(-1, 150, -1, -1)
    got = attention(q, one, row, **SMALL)
    assert same(got, attention(q, one.contiguous(), row.contiguous(), **SMALL))


def test_odd_strides_of_size_one(qkv):
    q, k, v = (x[:1] for x in qkv)
    odd = [x.as_strided(x.shape, (12345, *x.stride()[1:])) for x in (q, k, v)]
    assert same(attention(*odd, **SMALL), attention(q, k, v, **SMALL))
    one = [x[:, :1] for x in (q, k, v)]
    odd = [x.as_strided(x.shape, (x.stride(0), 77, *x.stride()[2:])) for x in one]
    assert same(attention(*odd, **SMALL), attention(*(x.clone() for x in one), **SMALL))


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_last_dimension_with_gaps_is_refused(qkv, which):
    tensors = list(qkv)
    tensors[which] = tensors[which].repeat_interleave(2, 3)[..., ::2]
    with pytest.raises(ValueError, match=f"'{'qkv'[which]}'.*stride 1 in its last dimension"):
        pisa.attention(*tensors, **SMALL)


def test_lists_of_any_strides(qkv, want):
    out, lse, indices = want
    outer = indices.new_full((150, 2, 2, 9), -1)
    view = outer.permute(2, 1, 0, 3)[..., 2:8]
    view.copy_(indices)
    assert same(attend(*qkv, view, block_size=16), (out, lse))


@pytest.mark.parametrize("far", ["batch", "token", "head"])
def test_offsets_beyond_32_bits(qkv, want, far):
    """Tensors of few elements, the last of which stand 2^31 elements after the first ones."""
    dimension = {"batch": 0, "token": 1, "head": 2}[far]
    views, offset = [], 0
    store = torch.empty((1 << 31) + (1 << 22), dtype=qkv[0].dtype, device=qkv[0].device)
    for x in qkv:
        steps = x.shape[dimension] - 1
        strides = list(x.stride())
        strides[dimension] = -(-(1 << 31) // steps // 8) * 8
        if far == "token":
            strides[0] = x.shape[2] * 64  # batches side by side
        elif far == "head":
            strides[0], strides[1] = 150 * 64, 64
        assert sum((n - 1) * s for n, s in zip(x.shape, strides, strict=True)) >= 1 << 31
        views.append(store.as_strided(x.shape, strides, offset))
        views[-1].copy_(x)
        offset += 1 << 18
    assert same(attention(*views, **SMALL), want)


def check_window(first, last, out, lse, indices, q, k, v, **options):
    """Rows first .. last - 1 against float64."""
    rows = slice(first, last)
    check_attention(
        out[:, rows], lse[:, :, rows], q[:, rows], k[:, :last], v[:, :last], indices[:, :, rows],
        q_start=[first] * q.shape[0], **options,
    )  # fmt: skip


def test_more_than_65535_tokens(device, dtype):
    tokens = 70000
    q, k, v = make(tokens, heads=2, kv_heads=1, dim=16, device=device, dtype=dtype)
    out, lse, indices = attention(q, k, v, topk=4)
    assert out.isfinite().all() and lse.isfinite().all()
    rows = [0, 63, 64, 65535, 65536, 65537, tokens - 1]
    check_selection(indices, q, k, rows=rows, topk=4, block_size=64)
    for first, last in ((0, 16), (65530, 65546), (tokens - 16, tokens)):
        check_window(first, last, out, lse, indices, q, k, v, block_size=64)


def test_more_than_65535_heads_of_a_batch(device, dtype):
    batch = 16400
    q, k, v = (normal(i, batch, 20, h, 64, dtype=dtype) for i, h in enumerate((4, 2, 2)))
    q, k, v = q[:, :3].to(device), k.to(device), v.to(device)
    results = attention(q, k, v, **SMALL)
    assert all(x.isfinite().all() for x in results)
    for first in (0, 16382, batch - 4):
        some = slice(first, first + 4)
        out, lse, indices = (x[some] for x in results)
        check_attention(out, lse, q[some], k[some], v[some], indices, block_size=16)
        assert same((out, lse, indices), attention(q[some], k[some], v[some], **SMALL))


def test_more_than_2_to_the_31_elements(cuda):
    tokens, options = 300_000, dict(dtype=torch.bfloat16, device=cuda)
    generator = torch.Generator(cuda).manual_seed(0)
    q = torch.empty(1, tokens, 64, 128, **options).normal_(generator=generator)
    k, v = (torch.empty(1, tokens, 4, 128, **options).normal_(generator=generator) for _ in "kv")
    poison(cuda)
    out, lse, indices = attention(q, k, v, topk=8)
    assert out.numel() > 1 << 31
    for first in (0, 131064, 262136, tokens - 8):
        check_window(first, first + 8, out, lse, indices, q, k, v, block_size=64)


@pytest.mark.parametrize(
    "change, error, match",
    [
        (lambda x: x[0].transpose(0, 1), ValueError, r"indices to be \[B, Hkv, NQ, K\]"),
        (lambda x: x.transpose(1, 2), ValueError, "Hkv of 'indices'.*2.*got 150"),
        (lambda x: x[:1], ValueError, "B of 'indices'.*2.*got 1"),
        (lambda x: x[:, :1], ValueError, "Hkv of 'indices'.*2.*got 1"),
        (lambda x: x[:, :, 1:], ValueError, "NQ of 'indices'.*150.*got 149"),
        (lambda x: x[..., :0], ValueError, "at least 1 entry"),
        (lambda x: x.long(), TypeError, "'indices' to be int32.*int64"),
        (lambda x: x.float(), TypeError, "'indices' to be int32.*float32"),
        (lambda x: x.to("meta"), ValueError, "indices to be on .* but got meta"),
        (lambda x: x.repeat_interleave(2, 3)[..., ::2], ValueError, "'indices'.*stride 1"),
    ],
    ids=["rank", "order", "batch", "heads", "rows", "width", "int64", "float", "device", "gaps"],
)
def test_wrong_lists_are_refused(device, change, error, match):
    q, k, v = make(150, batch=2, device=device, dtype=torch.bfloat16)
    indices = torch.zeros(2, 2, 150, 3, dtype=torch.int32, device=device)
    with pytest.raises(error, match=match):
        pisa.block_sparse_attention(q, k, v, change(indices), block_size=16)


def test_lists_of_the_other_device_are_refused(cuda):
    q, k, v = make(150, batch=2, device=cuda, dtype=torch.bfloat16)
    indices = torch.zeros(2, 2, 150, 3, dtype=torch.int32)
    with pytest.raises(ValueError, match="indices to be on cuda:0, as q is, but got cpu"):
        pisa.block_sparse_attention(q, k, v, indices, block_size=16)
    with pytest.raises(ValueError, match="indices to be on cpu, as q is, but got cuda:0"):
        pisa.block_sparse_attention(q.cpu(), k.cpu(), v.cpu(), indices.cuda(), block_size=16)


@pytest.mark.parametrize(
    "options, match",
    [
        ({"block_size": 0}, "'block_size' to be in .*got 0"),
        ({"block_size": 5000}, "'block_size' to be in .*got 5000"),
        ({"fanout": 1}, "'fanout' to be in .*got 1"),
        ({"beam": 3}, "'beam' to be at least 'topk' = 16, but got 3"),
        ({"rerank": 5}, "'rerank' to be 0 or in.*got 5"),
        ({"query_block": 0}, "'query_block' to be in .*got 0"),
        ({"local_blocks": 0}, "'local_blocks'.*got 0"),
    ],
    ids=str,
)
def test_options_out_of_range_are_refused(device, options, match):
    q, k, v = make(150, device=device, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match=match):
        pisa.attention(q, k, v, **options)


@pytest.mark.parametrize(
    "options, match",
    [
        ({"block_size": 512}, "'block_size' to be 16, 32, 64, 128 or 256, but got 512"),
        ({"block_size": 48}, "'block_size' .*but got 48"),
        ({"topk": 129}, "'topk' to be at most 128, but got 129"),
        ({"beam": 513}, "'beam' to be at most 512, but got 513"),
        ({"fanout": 9}, "'fanout' to be at most 8, but got 9"),
        ({"leaf_atoms": 32, "rerank": 0}, "'leaf_atoms' to be at most 16, but got 32"),
    ],
    ids=str,
)
def test_limits_of_the_gpu_are_named(cuda, options, match):
    q, k, v = make(150, device=cuda, dtype=torch.bfloat16)
    with pytest.raises(NotImplementedError, match=match):
        pisa.attention(q, k, v, **options)
