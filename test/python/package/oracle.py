"""Float64 attention over given blocks, and what every selection must fulfil; NumPy, plain."""

import numpy as np


def attend(q, k, v, indices, *, block_size, scale, causal=True, q_start=None, k_len=None, shared=1):
    """(out [B, Hq, Tq, Dv], lse [B, Hq, Tq]) in float64 of q [B, Hq, Tq, D], k, v [B, Hkv, Tk, *]
    over indices [B, Hkv, NQ, K]; -1 and whatever is out of range is masked, never clamped."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    batch, heads, queries, _ = q.shape
    kv_heads, keys = k.shape[1], k.shape[2]
    group = heads // kv_heads
    out = np.zeros((batch, heads, queries, v.shape[3]))
    lse = np.full((batch, heads, queries), -np.inf)
    block = np.arange(keys) // block_size
    for b in range(batch):
        length = keys if k_len is None else k_len[b]
        start = length - queries if q_start is None else q_start[b]
        position = start + np.arange(queries)
        for h in range(heads):
            lists = indices[b, h // group].repeat(shared, 0)[:queries]
            seen = (lists[:, :, None] == block).any(1) & (np.arange(keys) < length)
            if causal:
                seen &= np.arange(keys) <= position[:, None]
            # Rows that nothing selects may hold anything: they are taken out, not multiplied by 0.
            used = seen.any(0)
            logits = np.where(seen[:, used], scale * q[b, h] @ k[b, h // group][used].T, -np.inf)
            some = seen.any(1)
            top = logits[some].max(1, keepdims=True) if used.any() else None
            if top is None:
                continue
            weights = np.exp(logits[some] - top)
            total = weights.sum(1, keepdims=True)
            out[b, h, some] = weights / total @ v[b, h // group][used]
            lse[b, h, some] = (top + np.log(total))[:, 0]
    return out, lse


def check_selection(indices, *, topk, keys, block_size, sink=1, local=2):
    """Causal selections of queries that end with the keys: ascending, distinct, forced blocks
    there, min(K, visible) of them, -1 after."""
    queries = indices.shape[2]
    own = (keys - queries + np.arange(queries)) // block_size
    used = np.arange(topk) < np.minimum(topk, own + 1)[:, None]
    assert ((indices >= 0) == used).all()
    assert (
        np.diff(indices, axis=3)[np.broadcast_to(used[:, 1:], indices[..., 1:].shape)] > 0
    ).all()
    assert (indices <= own[:, None]).all()
    for back in range(local):
        want = own - back
        assert ((indices == want[:, None]).any(3) | (want < 0)).all()
    for first in range(sink):
        assert ((indices == first).any(3) | (own < first)).all()


def tolerance(v, dtype):
    """docs/Spec.md "Attention tolerance", with the largest value of all for that of a row."""
    keys = v.shape[2]
    eps = {"float32": 2.0**-23 * np.sqrt(max(keys, 1)), "float16": 2.0**-11, "bfloat16": 2.0**-8}
    return 2 * eps[dtype] * float(np.abs(np.asarray(v, np.float64)).max(initial=0)) + 1e-5


def normal(seed, *shape, dtype=np.float32):
    """Normal numbers of a dtype."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)
