"""Calls on CUDA tensors; skipped where there is no GPU."""

import math

import pytest

torch = pytest.importorskip("torch")
import pisa  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def make(batch, tokens, heads, kv_heads, dim, dtype=torch.bfloat16, seed=0):
    generator = torch.Generator(device="cuda").manual_seed(seed)

    def normal(h):
        x = torch.randn(batch, tokens, h, dim, device="cuda", generator=generator)
        return x.to(dtype)

    return normal(heads), normal(kv_heads), normal(kv_heads)


def attend(q, k, v, indices, block=64):
    """Float64 attention over given blocks: (out, lse)."""
    batch, tokens, heads, dim = q.shape
    keys = k.shape[1]
    group = heads // k.shape[2]
    out = torch.empty(batch, tokens, heads, v.shape[-1], dtype=torch.double, device="cuda")
    lse = torch.empty(batch, heads, tokens, dtype=torch.double, device="cuda")
    position = torch.arange(keys, device="cuda")
    for b in range(batch):
        for h in range(heads):
            kv = h // group
            lists = indices[b, kv].long()
            chosen = torch.zeros(tokens, -(-keys // block) + 1, dtype=torch.bool, device="cuda")
            chosen.scatter_(1, torch.where(lists < 0, chosen.shape[1] - 1, lists), True)
            mask = chosen[:, :-1].repeat_interleave(block, 1)[:, :keys]
            mask &= position[None] <= position[:tokens, None] + keys - tokens
            scores = q[b, :, h].double() @ k[b, :, kv].double().T / math.sqrt(dim)
            scores.masked_fill_(~mask, -math.inf)
            lse[b, h] = torch.logsumexp(scores, -1)
            out[b, :, h] = torch.softmax(scores, -1) @ v[b, :, kv].double()
    return out, lse


@pytest.mark.parametrize("heads, kv_heads, dim", [(8, 2, 128), (6, 2, 64), (4, 4, 40)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_attention_agrees_with_float64_on_its_own_indices(heads, kv_heads, dim, dtype):
    q, k, v = make(2, 1500, heads, kv_heads, dim, dtype)
    out, lse, indices = pisa.attention(q, k, v, topk=8, return_lse=True, return_indices=True)
    expected, expected_lse = attend(q, k, v, indices)
    torch.testing.assert_close(out.double(), expected, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(lse.double(), expected_lse, rtol=1e-4, atol=1e-3)


def test_the_gpu_chooses_what_the_cpu_chooses():
    q, k, v = make(1, 2048, 4, 2, 64)
    indices = pisa.attention(q, k, v, topk=8, return_indices=True)[-1].cpu()
    expected = pisa.attention(q.cpu(), k.cpu(), v.cpu(), topk=8, return_indices=True)[-1]
    differs = (indices != expected).any(-1).float().mean()
    # Rows where two scores are within rounding of each other.
    assert differs <= 0.001


def test_repeated_calls_give_the_same_bits():
    q, k, v = make(1, 4096, 8, 2, 128)
    first = pisa.attention(q, k, v)
    for _ in range(20):
        assert torch.equal(pisa.attention(q, k, v), first)


def test_a_stream_and_a_graph():
    q, k, v = make(1, 1024, 8, 2, 64)
    expected = pisa.attention(q, k, v)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        assert torch.equal(pisa.attention(q, k, v), expected)
        torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = pisa.attention(q, k, v)
    q2, k2, v2 = make(1, 1024, 8, 2, 64, seed=1)
    for target, source in ((q, q2), (k, k2), (v, v2)):
        target.copy_(source)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, pisa.attention(q2, k2, v2))


def test_torch_compile():
    q, k, v = make(1, 1024, 8, 2, 64)
    compiled = torch.compile(lambda q, k, v: pisa.attention(q, k, v) * 2, fullgraph=True)
    assert torch.equal(compiled(q, k, v), pisa.attention(q, k, v) * 2)


def test_lengths_on_the_device():
    q, k, v = make(2, 512, 4, 2, 64)
    lengths = torch.tensor([300, 512], dtype=torch.int32, device="cuda")
    out = pisa.attention(q[:, :64], k, v, k_len=lengths)
    for b, length in enumerate([300, 512]):
        alone = pisa.attention(q[b : b + 1, :64], k[b : b + 1, :length], v[b : b + 1, :length])
        assert torch.equal(out[b : b + 1], alone)


def test_float32_is_refused():
    q, k, v = make(1, 256, 4, 2, 64, torch.float32)
    with pytest.raises(NotImplementedError, match="f16 or bf16"):
        pisa.attention(q, k, v)


def test_mixed_devices_are_refused():
    q, k, v = make(1, 256, 4, 2, 64)
    with pytest.raises((TypeError, ValueError)):
        pisa.attention(q, k.cpu(), v)


def test_duplicates_are_reported_on_request():
    q, k, v = make(2, 256, 4, 2, 64)
    lists = torch.full((2, 2, 256, 4), -1, dtype=torch.int32, device="cuda")
    lists[..., 0] = 1
    pisa.block_sparse_attention(q, k, v, lists, check=True)
    lists[1, 1, 200] = torch.tensor([2, -1, 3, 2], dtype=torch.int32)
    lists[1, 0, 57] = torch.tensor([2, -1, 2, 0], dtype=torch.int32)
    assert pisa.block_sparse_attention(q, k, v, lists).isfinite().all()
    where = "block 2 stands twice in the list of batch 1, kv head 0, query block 57"
    with pytest.raises(RuntimeError, match=where):
        pisa.block_sparse_attention(q, k, v, lists, check=True)


def test_checks_are_not_captured():
    q, k, v = make(1, 256, 4, 2, 64)
    expected = pisa.attention(q, k, v, check=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = pisa.attention(q, k, v)
        with pytest.raises(RuntimeError, match="the stream is being captured"):
            pisa.attention(q, k, v, check=True)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, expected)


def test_explain():
    q, k, v = make(1, 1000, 8, 2, 64)
    found = pisa.explain(q, k, v, topk=5, measure=True)
    assert found.backend == "cuda" and found.chip.startswith("sm_") and found.device
    assert found.compiled and found.scratch_bytes >= found.intermediate_bytes
    assert found.reasons[0] == "backend: the tensors are on CUDA device 0"


def test_a_compiled_module():
    text = """
func.func @layer(%q: tensor<?x2x?x16xf16>, %k: tensor<?x1x?x16xf16>, %idx: tensor<?x1x?x3xi32>,
                 %len: tensor<?xi32>, %scale: f32, %out: tensor<?x2x?x16xf16>)
                 -> tensor<?x2x?x16xf16> {
  %o = pisa.attention #pisa.params<block_size = 16, topk = 3>
         ins(%q, %k, %k, %idx : tensor<?x2x?x16xf16>, tensor<?x1x?x16xf16>,
             tensor<?x1x?x16xf16>, tensor<?x1x?x3xi32>)
         k_len(%len : tensor<?xi32>) scale(%scale)
         outs(%out : tensor<?x2x?x16xf16>) -> tensor<?x2x?x16xf16>
  return %o : tensor<?x2x?x16xf16>
}
"""
    module = pisa.compile(text, target="nvptx")
    q, k, _ = (x.transpose(1, 2) for x in make(1, 50, 2, 1, 16, torch.float16))
    idx = torch.tensor([0, 1, -1], dtype=torch.int32, device="cuda").expand(1, 1, 50, 3)
    idx = idx.contiguous()
    length = torch.tensor([50], dtype=torch.int32, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        out = module["layer"](q, k, idx, length, 0.25, torch.full_like(q, math.nan))
    stream.synchronize()
    want = pisa.block_sparse_attention(q, k, k, idx, block_size=16, layout="bhsd")
    assert torch.equal(out, want)
