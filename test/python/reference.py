"""PISA selection as a plain numpy loop: the semantics of docs/Spec.md, for one kv head, written to be read.

`select(q, t, k, build(k))` is the paper; `select(..., W=4*K, R=2*K)` adds the beam and the re-rank; R=0 ranks the leaves by
the pre-score alone. Causal, query_block 1, float64 summaries.
"""
import numpy as np
def _lse(x):                       # empty -> -inf, +inf stays +inf, any NaN -> NaN
    m = np.max(x) if len(x) else -np.inf
    return m if not np.isfinite(m) else m + np.log(np.sum(np.exp(x - m)))
def build(k, C=64, g=2, sub=4):    # k [Tk,D]; fp32 sums; level 1 = leaves; (sum, count) so ragged tails are count-weighted
    Tk, D = k.shape; n = -(-Tk // C); S = [None]; cnt = [None]
    S.append(np.stack([k[i*C:(i+1)*C].sum(0) for i in range(n)])); cnt.append(np.array([min(C, Tk-i*C) for i in range(n)]))
    while len(S[-1]) > 1:
        n = -(-len(S[-1]) // g)
        S.append(np.stack([S[-1][i*g:(i+1)*g].sum(0) for i in range(n)])); cnt.append(np.array([cnt[-1][i*g:(i+1)*g].sum() for i in range(n)]))
    pre = []                       # leaf pre-score atoms: sub-block means without the outlier key, and the outlier key
    for i in range(len(S[1])):
        b = k[i*C:(i+1)*C]; j = int(np.argmax(((b - b.mean(0))**2).sum(1)))      # ties: lowest index
        at = []
        for r in range(0, len(b), C//sub):
            idx = [t for t in range(r, min(r+C//sub, len(b))) if t != j]
            if idx: at.append((b[idx].mean(0), len(idx)))
        pre.append(at + [(b[j], 1)])
    return [None] + [s / c[:, None] for s, c in zip(S[1:], cnt[1:])], cnt, pre
def select(q, t, k, pyr, K=16, C=64, g=2, W=None, R=None, scale=None):
    """q [G,D] heads of one group at absolute position t (causal). W=None, R=None: the paper. Returns sorted block ids."""
    mean, cnt, pre = pyr; L = len(mean) - 1; cur = t // C; W = K if W is None else W; scale = q.shape[1]**-.5 if scale is None else scale
    forced_leaves = sorted({0, max(cur-1, 0), cur}); assert K >= 3 and W >= K and g >= 2 and (R in (None, 0) or K <= R <= g*W)
    top = lambda c, s, m: [i for *_, i in sorted((bool(np.isnan(x)), 0.0 if np.isnan(x) else -x, i) for x, i in zip(s, c))][:max(m, 0)]  # (is NaN, -score, index)
    ex = lambda i: sum(_lse(scale * (k[i*C:(i+1)*C] @ h)) for h in q)
    keep = [0]
    for l in range(L, 0, -1):
        span = g**(l-1); n = len(mean[l])
        cand = list(range(n)) if l == L else [c for p in keep for c in range(p*g, min(p*g+g, n))]
        cand = [c for c in cand if c*span <= cur]                               # wholly-future nodes masked
        forced = sorted({f // span for f in forced_leaves}); free = [c for c in cand if c not in forced]
        m = (K if l == 1 else W) - len(forced)
        if l > 1:
            if len(free) > m:
                free = top(free, [sum(_lse(np.array([scale*(mean[l-1][c] @ h) + np.log(cnt[l-1][c]) for c in range(i*g, min(i*g+g, len(mean[l-1])))])) for h in q) for i in free], m)
        elif R is not None and len(free) > m:
            free = top(free, [sum(_lse(np.array([scale*(v @ h) + np.log(w) for v, w in pre[i]])) for h in q) for i in free], (R - len(forced)) if R else m)
            if R: free = top(free, [ex(i) for i in free], m)
        elif len(free) > m: free = top(free, [ex(i) for i in free], m)
        keep = sorted(forced + free)
    return keep
