"""As PyTorch's users meet it."""

import copy
import subprocess
import sys

import numpy as np
import pytest
from oracle import attend, tolerance

torch = pytest.importorskip("torch")

import pisa  # noqa: E402

ARGUMENTS = (
    None,
    None,
    4,
    16,
    None,
    None,
    4,
    2,
    1,
    1,
    2,
    None,
    True,
    None,
    "bshd",
    True,
    True,
    False,
)


def qkv(length=100, dtype=torch.float32, seed=0, heads=(4, 2), depth=32):
    made = torch.Generator().manual_seed(seed)
    return tuple(
        torch.randn(2, length, h, depth, generator=made).to(dtype)
        for h in (heads[0], *heads[1:] * 2)
    )


def call(q, k, v, **options):
    return pisa.attention(
        q, k, v, topk=4, block_size=16, return_lse=True, return_indices=True, **options
    )


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dtypes_against_float64(dtype):
    q, k, v = qkv(300, dtype)
    out, lse, indices = call(q, k, v)
    assert out.dtype == dtype and lse.dtype == torch.float32 and indices.dtype == torch.int32
    wide = [x.transpose(1, 2).double().numpy() for x in (q, k, v)]
    want, want_lse = attend(*wide, indices.numpy(), block_size=16, scale=32**-0.5)
    error = np.abs(out.double().transpose(1, 2).numpy() - want).max()
    assert error <= tolerance(wide[2], str(dtype).removeprefix("torch."))
    assert np.abs(lse.numpy() - want_lse).max() < 1e-4
    # And no worse than twice what PyTorch makes of the same dtype, over all blocks.
    dense = pisa.attention(q, k, v, topk=3, dense_below=301, layout="bshd")
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *(x.transpose(1, 2) for x in (q, k.repeat_interleave(2, 2), v.repeat_interleave(2, 2))),
        is_causal=True,
    )
    every = np.broadcast_to(np.arange(19), (2, 2, 300, 19))
    exact, _ = attend(*wide, every, block_size=16, scale=32**-0.5)
    ours_error = np.abs(dense.double().transpose(1, 2).numpy() - exact).max()
    assert ours_error <= 2 * np.abs(theirs.double().numpy() - exact).max() + 1e-5


def test_same_bits_as_with_numpy():
    q, k, v = qkv()
    got, want = call(q, k, v), call(q.numpy(), k.numpy(), v.numpy())
    assert all((x.numpy() == y).all() for x, y in zip(got, want, strict=True))


def test_repeated_calls_take_the_short_way_to_the_same_bits():
    q, k, v = qkv()
    first = call(q, k, v)
    for _ in range(3):
        assert same(call(q, k, v), first)
    assert same(
        call(*(x[:1, :60] for x in (q, k, v))), call(*(x[:1, :60].clone() for x in (q, k, v)))
    )
    # Another option is another call.
    assert not torch.equal(call(q, k, v, softmax_scale=1.0)[0], first[0])
    assert torch.equal(pisa.attention(q, k, v, topk=4, block_size=16), first[0])


def test_the_short_way_checks_too():
    q, k, v = qkv()
    call(q, k, v)
    with pytest.raises(TypeError, match="'v' to be float32, but got float16"):
        call(q, k, v.half())
    with pytest.raises(ValueError, match="stride 1"):
        call(q, torch.empty(2, 100, 2, 64)[..., ::2], v)
    with pytest.raises(TypeError, match="numpy|ndarray"):
        call(q, k.numpy(), v)


def test_strided_inputs_without_a_copy():
    q, k, v = qkv()
    want = call(q, k, v)
    fused = torch.cat([x.flatten(2) for x in (q, k, v)], 2)
    parts = [x.unflatten(2, (-1, 32)) for x in fused.split([128, 64, 64], 2)]
    assert same(call(*parts), want)
    expanded = call(q, k[:1].expand(2, -1, -1, -1), v[:1].expand(2, -1, -1, -1))
    assert same(expanded, call(q, k[:1].repeat(2, 1, 1, 1), v[:1].repeat(2, 1, 1, 1)))


def test_lengths_from_tensors():
    q, k, v = qkv()
    want = call(q, k, v, k_len=[100, 61], q_start=[0, -39])
    for kind in (torch.int32, torch.int64):
        lengths = torch.tensor([100, 61], dtype=kind), torch.tensor([0, -39], dtype=kind)
        assert same(call(q, k, v, k_len=lengths[0], q_start=lengths[1]), want)
        both = torch.stack(lengths, 1)  # not contiguous
        assert same(call(q, k, v, k_len=both[:, 0], q_start=both[:, 1]), want)
    with pytest.raises(TypeError, match="k_len"):
        call(q, k, v, k_len=torch.tensor([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"k_len\[1\]"):
        call(q, k, v, k_len=torch.tensor([1, 101]))


def test_opcheck():
    q, k, v = qkv(70)
    torch.library.opcheck(torch.ops.pisa.attention.default, (q, k, v, *ARGUMENTS))
    indices = call(q, k, v)[2]
    arguments = (q, k, v, indices, None, None, 16, 1, None, True, "bshd", True, False)
    torch.library.opcheck(torch.ops.pisa.block_sparse_attention.default, arguments)


def test_whole_graph_with_at_most_one_recompile():
    torch._dynamo.reset()
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()

    @torch.compile(fullgraph=True, backend=counter)
    def model(q, k, v):
        out, lse, indices = call(q * 1.0, k, v)
        return out * 2, lse, indices

    for length in (64, 100, 130, 33, 517):
        q, k, v = qkv(length)
        out, lse, indices = call(q, k, v)
        assert same(model(q, k, v), (out * 2, lse, indices))
    assert counter.frame_count <= 2


def test_lengths_in_a_graph():
    torch._dynamo.reset()
    q, k, v = qkv(90)
    lengths = torch.tensor([90, 61])
    want = call(q, k, v, k_len=lengths, q_start=0)

    @torch.compile(fullgraph=True, backend="eager")
    def model(q, k, v, lengths):
        return call(q, k, v, k_len=lengths, q_start=0)

    assert same(model(q, k, v, lengths), want)
    assert same(model(q, k, v, lengths - 30), call(q, k, v, k_len=[60, 31], q_start=0))


def test_inductor():
    torch._dynamo.reset()
    model = torch.compile(lambda q, k, v: call(q, k, v, layout="bhsd")[0] + 1, fullgraph=True)
    q, k, v = (x.transpose(1, 2) for x in qkv(90))
    assert torch.equal(model(q, k, v), call(q, k, v, layout="bhsd")[0] + 1)


def test_block_sparse_attention_in_a_graph():
    torch._dynamo.reset()
    q, k, v = qkv(90)
    indices = call(q, k, v)[2]
    want = pisa.block_sparse_attention(q, k, v, indices, block_size=16)
    model = torch.compile(
        lambda *x: pisa.block_sparse_attention(*x, block_size=16), fullgraph=True, backend="eager"
    )
    assert torch.equal(model(q, k, v, indices), want)


def test_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        q, k, v = (mode.from_tensor(x) for x in qkv(100, torch.bfloat16))
        out, lse, indices = call(q, k, v[..., :16], query_block=8)
    assert out.shape == (2, 100, 4, 16) and out.dtype == torch.bfloat16
    assert lse.shape == (2, 4, 100) and indices.shape == (2, 2, 13, 4)


def test_autocast():
    q, k, v = qkv()
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype=dtype):
            got = call(q, k, v)
        assert got[0].dtype == dtype
        assert same(got, call(*(x.to(dtype) for x in (q, k, v))))


@pytest.mark.parametrize("which", range(1, 8))
def test_backward_is_refused(which):
    """Whichever tensors want a gradient, forward works and backward says what is missing."""
    tensors = [x.requires_grad_(bool(which >> i & 1)) for i, x in enumerate(qkv())]
    out, lse, indices = call(*tensors)
    assert out.requires_grad and not indices.requires_grad
    with pytest.raises(NotImplementedError, match="backward pass of pisa.attention is not built"):
        out.sum().backward()
    with torch.no_grad():
        assert same(call(*tensors), (out, lse, indices))
    fresh = pisa.block_sparse_attention(*tensors, indices, block_size=16)
    assert torch.equal(fresh, out)
    with pytest.raises(NotImplementedError, match="block_sparse_attention"):
        fresh.sum().backward()


def test_inference_mode():
    with torch.inference_mode():
        q, k, v = qkv()
        out = call(q, k, v)[0]
        assert torch.is_inference(out)
    assert torch.equal(out, call(*qkv())[0])


def test_empty_batch():
    q, k, v = (x[:0] for x in qkv())
    out, lse, indices = call(q, k, v)
    assert out.shape == (0, 100, 4, 32) and lse.shape == (0, 4, 100) and indices.shape[0] == 0


def test_parameters_and_subclasses():
    q, k, v = qkv()
    want = call(q, k, v)
    assert same(call(torch.nn.Parameter(q, requires_grad=False), k, v), want)

    class Tagged(torch.Tensor):
        pass

    got = call(q.as_subclass(Tagged), k, v)
    assert same(got, want)


def test_vmap_is_refused_or_right():
    q, k, v = (x[:, None] for x in qkv())
    try:
        out = torch.vmap(lambda q, k, v: pisa.attention(q, k, v, topk=4, block_size=16))(q, k, v)
    except (RuntimeError, NotImplementedError):
        return
    assert torch.equal(out[:, 0], pisa.attention(*qkv(), topk=4, block_size=16))


def test_pyramid_and_route():
    q, k, v = qkv(200, torch.bfloat16)
    pyramid = pisa.build_pyramid(k, block_size=16)
    assert pyramid.summaries.dtype == torch.bfloat16
    assert torch.equal(pisa.route(q, k, pyramid, topk=4), call(q, k, v)[2])


def test_other_devices_are_refused():
    q, k, v = (x.to("meta") for x in qkv())
    with pytest.raises((TypeError, NotImplementedError)):
        pisa.build_pyramid(k)
    a, b, c = qkv()
    with pytest.raises(ValueError, match="k to be on cpu, as q is, but got meta"):
        call(a, k, c)
    with pytest.raises((RuntimeError, TypeError), match="CUDA"):
        call(a, b, c, backend="cuda")


def test_modules_that_use_it_can_be_copied_and_exported():
    class Attention(torch.nn.Module):
        def forward(self, q, k, v):
            return pisa.attention(q, k, v, topk=4, block_size=16)

    module = copy.deepcopy(Attention())
    q, k, v = qkv()
    exported = torch.export.export(module, (q, k, v))
    assert torch.equal(exported.module()(q, k, v), module(q, k, v))


def test_saved_programs_load_in_another_process(tmp_path):
    class Attend(torch.nn.Module):
        def forward(self, q, k, v):
            return pisa.attention(q, k, v, topk=4, block_size=16)

    path = str(tmp_path / "attend.pt2")
    torch.export.save(torch.export.export(Attend(), qkv()), path)
    code = f"import torch, pisa; print(torch.export.load({path!r}).graph)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert loaded.returncode == 0, loaded.stderr
    assert "torch.ops.pisa.attention" in loaded.stdout


def test_no_gradient_reaches_the_selection():
    """Indices are integers: nothing to differentiate, by their dtype."""
    q, k, v = qkv()
    assert not call(q.requires_grad_(), k, v)[2].requires_grad
