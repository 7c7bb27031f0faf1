"""As PyTorch's users meet it, on every device."""

import pytest

torch = pytest.importorskip("torch")

import pisa  # noqa: E402
from common import SMALL, attention, check_attention, make, poison, same  # noqa: E402

# Of torch.ops.pisa.attention, after q, k and v.
ARGUMENTS = (
    None, None, 6, 16, None, None, 4, 2, 1, 1, 2, None, True, None, "bshd", True, True, False,
)  # fmt: skip


@pytest.fixture
def qkv(device, dtype):
    return tuple(x.contiguous() for x in make(100, batch=2, device=device, dtype=dtype))


def call(q, k, v, **options):
    return pisa.attention(q, k, v, return_lse=True, return_indices=True, **SMALL, **options)


def test_opcheck_of_attention(qkv):
    call(*qkv)  # makes the ops known
    torch.library.opcheck(torch.ops.pisa.attention.default, (*qkv, *ARGUMENTS))


def test_opcheck_of_block_sparse_attention(qkv):
    indices = call(*qkv)[2]
    arguments = (*qkv, indices, None, None, 16, 1, None, True, "bshd", True, False)
    torch.library.opcheck(torch.ops.pisa.block_sparse_attention.default, arguments)


def test_one_graph_and_at_most_one_recompile_for_all_lengths(device, dtype):
    torch._dynamo.reset()
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()

    @torch.compile(fullgraph=True, backend=counter)
    def model(q, k, v):
        out, lse, indices = call(q * 1.0, k, v)
        return out * 2, lse, indices

    for tokens in (64, 100, 130, 33, 517):
        q, k, v = make(tokens, device=device, dtype=dtype)
        out, lse, indices = call(q, k, v)
        assert same(model(q, k, v), (out * 2, lse, indices))
    assert counter.frame_count <= 2


def test_one_graph_for_all_numbers_of_keys_in_a_cache(qkv):
    """Lengths are tensors: that they change compiles nothing."""
    torch._dynamo.reset()
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    q, k, v = qkv
    q = q[:, :20]

    @torch.compile(fullgraph=True, backend=counter)
    def model(q, k, v, lengths):
        return call(q, k, v, k_len=lengths, q_start=lengths - 20)

    for lengths in ([100, 61], [80, 20], [33, 99]):
        lengths = torch.tensor(lengths, dtype=torch.int32, device=q.device)
        assert same(model(q, k, v, lengths), call(q, k, v, k_len=lengths))
    assert counter.frame_count == 1


def test_block_sparse_attention_in_one_graph(qkv):
    torch._dynamo.reset()
    out, lse, indices = call(*qkv)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def model(q, k, v, indices):
        return pisa.block_sparse_attention(q, k, v, indices, block_size=16, return_lse=True)

    assert same(model(*qkv, indices), (out, lse))


@pytest.mark.parametrize("with_lengths", [False, True], ids=["no lengths", "lengths"])
def test_calls_do_not_wait_for_the_gpu(cuda, dtype, with_lengths):
    q, k, v = make(100, batch=2, device=cuda, dtype=dtype)
    lengths = torch.tensor([100, 61], dtype=torch.int32, device=cuda)
    options = dict(k_len=lengths) if with_lengths else {}
    want = call(q, k, v, **options)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        got = call(q, k, v, **options)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert same(got, want)


def test_a_call_returns_before_the_gpu_has_finished_what_came_first(cuda, dtype):
    q, k, v = make(100, batch=2, device=cuda, dtype=dtype)
    want = call(q, k, v)
    torch.cuda.synchronize()
    torch.cuda._sleep(1 << 30)
    behind = torch.cuda.Event()
    got = call(q, k, v)
    behind.record()
    assert not behind.query()
    assert same(got, want)


def capture(call):
    """A graph of `call`, and its results."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call()
    return graph, results


def test_a_captured_graph_follows_its_inputs(cuda, dtype):
    q, k, v = make(300, batch=2, device=cuda, dtype=dtype)
    graph, results = capture(lambda: call(q, k, v))
    for seed in (1, 2):
        for mine, other in zip((q, k, v), make(300, batch=2, device=cuda, dtype=dtype, seed=seed)):
            mine.copy_(other)
        for x in results:
            x.fill_(-7)
        graph.replay()
        assert same(results, call(q, k, v))


def test_a_captured_graph_follows_its_lengths(cuda, dtype):
    q, k, v = make(300, batch=2, device=cuda, dtype=dtype)
    q = q[:, :20]
    lengths = torch.tensor([300, 300], dtype=torch.int32, device=cuda)
    starts = lengths - 20
    graph, results = capture(lambda: call(q, k, v, k_len=lengths, q_start=starts))
    for new in ([300, 20], [17, 129], [64, 0], [300, 300]):
        lengths.copy_(torch.tensor(new))
        starts.copy_(lengths - 20)
        for x in results:
            x.fill_(-7)
        graph.replay()
        out, lse, indices = results
        check_attention(
            out, lse, q, k, v, indices, block_size=16, k_len=new, q_start=[n - 20 for n in new]
        )
        assert same(results, call(q, k, v, k_len=lengths, q_start=starts))


def test_a_captured_graph_of_given_lists_follows_them(cuda, dtype):
    q, k, v = make(100, batch=2, device=cuda, dtype=dtype)
    indices = call(q, k, v)[2]
    graph, (out, lse) = capture(
        lambda: pisa.block_sparse_attention(q, k, v, indices, block_size=16, return_lse=True)
    )
    indices[:, :, ::2] = -1
    graph.replay()
    assert (out[:, ::2] == 0).all() and (lse[:, :, ::2] == -torch.inf).all()
    check_attention(out, lse, q, k, v, indices, block_size=16)


def test_types_of_results(qkv):
    out, lse, indices = call(*qkv)
    assert out.dtype == qkv[0].dtype and lse.dtype == torch.float32
    assert indices.dtype == torch.int32
    assert all(x.device == qkv[0].device and x.is_contiguous() for x in (out, lse, indices))


def test_float32_is_computed_or_refused(device):
    q, k, v = make(100, device=device, dtype=torch.float32)
    if device == "cuda":
        with pytest.raises(NotImplementedError, match="f16 or bf16"):
            call(q, k, v)
        return
    out, lse, indices = call(q, k, v)
    check_attention(out, lse, q, k, v, indices, block_size=16)


def test_mixed_types_are_refused(qkv):
    q, k, v = qkv
    with pytest.raises(TypeError, match=r"\bv\b.* to be .*but got f"):
        call(q, k, v.float())


def test_autocast_casts_queries_keys_and_values(device, dtype):
    q, k, v = make(100, device=device, dtype=torch.float32)
    with torch.autocast(device, dtype=dtype):
        got = call(q, k, v)
    assert got[0].dtype == dtype
    assert same(got, call(*(x.to(dtype) for x in (q, k, v))))


@pytest.mark.parametrize("which", range(1, 8))
def test_backward_is_refused_whoever_wants_a_gradient(qkv, which):
    tensors = [x.requires_grad_(bool(which >> i & 1)) for i, x in enumerate(qkv)]
    out, lse, indices = call(*tensors)
    assert out.requires_grad and lse.requires_grad and not indices.requires_grad
    with pytest.raises(NotImplementedError, match="backward pass of pisa.attention is not built"):
        out.sum().backward()
    with torch.no_grad():
        assert same(call(*tensors), (out, lse, indices))
    fresh = pisa.block_sparse_attention(*tensors, indices, block_size=16)
    assert torch.equal(fresh, out)
    with pytest.raises(NotImplementedError, match="block_sparse_attention"):
        fresh.sum().backward()


def test_inference_mode(device, dtype):
    q, k, v = make(100, batch=2, device=device, dtype=dtype)
    want = call(q, k, v)
    with torch.inference_mode():
        got = call(q, k, v)
        assert torch.is_inference(got[0])
    assert same(got, want)


@pytest.mark.parametrize("shape", [(0, 5, 5), (1, 0, 5), (2, 0, 0)])
def test_nothing_to_do(device, dtype, shape):
    batch, queries, keys = shape
    q = torch.zeros(batch, queries, 4, 64, dtype=dtype, device=device)
    k = torch.zeros(batch, keys, 2, 64, dtype=dtype, device=device)
    out, lse, indices = call(q, k, k)
    assert out.shape == q.shape and lse.shape == (batch, 4, queries)
    assert indices.shape == (batch, 2, queries, 6)


def test_no_keys_give_zero(qkv):
    q, k, v = qkv
    poison(q.device)
    out, lse, indices = call(q, k[:, :0], v[:, :0])
    assert (out == 0).all() and (lse == -torch.inf).all() and (indices == -1).all()


def test_a_sequence_without_keys_gives_zero(qkv):
    q, k, v = qkv
    out, lse, indices = attention(q, k, v, k_len=[0, 100], **SMALL)
    assert (out[0] == 0).all() and (lse[0] == -torch.inf).all() and (indices[0] == -1).all()
    assert same((out[1], lse[1], indices[1]), [x[1] for x in call(q, k, v)])


def test_the_current_stream_orders_a_call(cuda, dtype):
    """Inputs that are written late on a stream are seen late on that stream."""
    q, k, v = make(100, batch=2, device=cuda, dtype=dtype)
    want = call(q, k, v)
    late = [torch.zeros_like(x) for x in (q, k, v)]
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1 << 27)
        for x, y in zip(late, (q, k, v)):
            x.copy_(y)
        got = call(*late)
    stream.synchronize()
    assert same(got, want)


def test_a_device_that_is_not_the_current_one(cuda, dtype):
    if torch.cuda.device_count() < 2:
        pytest.skip("one CUDA device")
    q, k, v = make(100, batch=2, device=cuda, dtype=dtype)
    want = call(q, k, v)
    got = call(*(x.to("cuda:1") for x in (q, k, v)))
    assert all(x.device == torch.device("cuda:1") for x in got)
    assert torch.cuda.current_device() == 0
    assert same([x.to(cuda) for x in got], want)
    with pytest.raises(ValueError, match="k to be on cuda:0, as q is, but got cuda:1"):
        call(q, k.to("cuda:1"), v)


def test_backends_that_cannot_serve_a_call_are_refused(qkv):
    other = "cpu" if qkv[0].is_cuda else "cuda"
    own = "cuda" if qkv[0].is_cuda else "cpu"
    assert same(call(*qkv, backend=own), call(*qkv))
    with pytest.raises((RuntimeError, TypeError), match="CUDA|backend='cpu'"):
        call(*qkv, backend=other)
    with pytest.raises(ValueError, match="backend.*auto, cpu, cuda.*'tpu'"):
        call(*qkv, backend="tpu")


def test_options_that_a_backend_lacks_never_run_dense(device, dtype):
    q, k, v = make(100, device=device, dtype=dtype)
    if device == "cuda":
        with pytest.raises(NotImplementedError, match="'block_size' to be 16, .* but got 512"):
            pisa.attention(q, k, v, block_size=512)
    with pytest.raises(NotImplementedError, match="cu_seqlens_q"):
        pisa.attention(q, k, v, cu_seqlens_q=[0, 100])
