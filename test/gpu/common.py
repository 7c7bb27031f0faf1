"""Inputs with poison around them, and comparisons with float64."""

import itertools
import math

import numpy as np
import oracle
import pisa
import torch

# Deep trees of small leaves, and the sizes of a model.
SMALL = dict(topk=6, block_size=16)
LARGE = dict(topk=8, block_size=64)


def normal(seed, *shape, dtype, device="cpu"):
    """The same normal numbers on every device."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype).to(device)


def inside(x):
    """`x` as the interior of a larger tensor that is NaN elsewhere; rows stay aligned."""
    tokens, heads, dim = x.shape[1:]
    outer = x.new_full((x.shape[0] + 1, tokens + 5, heads + 1, dim + 16), math.nan)
    view = outer[1:, 2 : 2 + tokens, :heads, 8 : 8 + dim]
    view.copy_(x)
    return view


def make(tokens, *, device, dtype, batch=1, heads=4, kv_heads=2, dim=64, value_dim=None,
         queries=None, seed=0):  # fmt: skip
    """q, k and v, [B, T, H, D], each with NaN on all sides."""
    value_dim = value_dim or dim
    sizes = (queries or tokens, heads, dim), (tokens, kv_heads, dim), (tokens, kv_heads, value_dim)
    return tuple(
        inside(normal(3 * seed + i, batch, *size, dtype=dtype, device=device))
        for i, size in enumerate(sizes)
    )


def poison(device):
    """Leave NaN in the memory that the next outputs will get."""
    for size in (1 << 12, 1 << 16, 1 << 20):
        torch.full((size,), math.nan, device=device)


def attention(q, k, v, **options):
    """(out, lse, indices) in poisoned memory."""
    poison(q.device)
    return pisa.attention(q, k, v, return_lse=True, return_indices=True, **options)


def attend(q, k, v, indices, **options):
    """(out, lse) over given blocks in poisoned memory."""
    poison(q.device)
    return pisa.block_sparse_attention(q, k, v, indices, return_lse=True, **options)


def same(a, b):
    """Whether the bits agree, of tuples too."""
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def wide(x):
    """[B, T, H, D] as float64 [B, H, T, D] in NumPy."""
    return x.detach().double().cpu().transpose(1, 2).numpy()


# ----------------------------------------------------------------------------- attention in float64


def check_attention(
    out, lse, q, k, v, indices, *, block_size, scale=None, query_block=1, slack=0.0, **options
):
    """Every row and head against float64 on the given blocks. `slack`: more relative tolerance."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    values = wide(v)
    want, want_lse = oracle.attend(
        wide(q), wide(k), values, indices.cpu().numpy(), block_size=block_size, scale=scale,
        shared=query_block, **options,
    )  # fmt: skip
    got, got_lse = wide(out), lse.double().cpu().numpy()
    assert np.isfinite(got).all() and not np.isnan(got_lse).any()
    seen = np.isfinite(want_lse)
    assert (got_lse[~seen] == -np.inf).all() and (got[~seen] == 0).all()
    finite = np.where(np.isfinite(values), values, 0)
    allowed = oracle.tolerance(finite, str(q.dtype).removeprefix("torch."))
    allowed += slack * np.abs(finite).max(initial=0)
    error = np.abs(got - want)
    if error.size:
        where = tuple(int(i) for i in np.unravel_index(error.argmax(), error.shape))
        print(f"largest error {error.max():.1e} of {allowed:.1e} at [B, H, T, D] = {where}")
        assert error.max() <= allowed, f"{error.max()} > {allowed} at [B, H, T, D] = {where}"
    error = np.abs(got_lse[seen] - want_lse[seen]) / np.maximum(1, np.abs(want_lse[seen]))
    assert error.max(initial=0) <= 1e-3


# ----------------------------------------------------------------------------- selection in float64


class Walk:
    """Every selection that the tie rule of docs/Spec.md allows, of one batch and kv head; scores
    are float64 on the summaries that pisa stores. Without causality no query has a position."""

    def __init__(self, q, k, *, topk, block_size, fanout=2, beam=None, rerank=None, leaf_atoms=4,
                 query_block=1, causal=True, start=None, batch=0, kv_head=0,
                 rows=None):  # fmt: skip
        keys, queries, dim = k.shape[1], q.shape[1], q.shape[-1]
        group = q.shape[2] // k.shape[2]
        self.topk, self.fanout, self.rerank = topk, fanout, rerank
        self.beam = topk if beam is None else beam
        self.block_size, self.query_block, self.causal = block_size, query_block, causal
        self.start = keys - queries if start is None else start
        self.queries = queries
        blocks = -(-queries // query_block)
        self.rows = range(blocks) if rows is None else rows
        self.tolerance = 1e-5 * group
        self.tied = 0
        pyramid = pisa.build_pyramid(
            k, block_size=block_size, fanout=fanout, leaf_atoms=leaf_atoms,
            return_atoms=rerank is not None,
        )  # fmt: skip
        # Queries of the rows, padded with rows of no weight: [rows, Q, G, D].
        token = torch.tensor([[r * query_block + i for i in range(query_block)] for r in self.rows])
        self.weight = (token < queries).double()
        heads = slice(kv_head * group, (kv_head + 1) * group)
        self.q = q[batch].cpu().double()[token.clamp(max=queries - 1)][:, :, heads] * dim**-0.5
        leaves = -(-keys // block_size)
        # Scores of the nodes of each level; level 1 is that of the leaves.
        self.sizes, counts = [0, leaves], [None, torch.full((leaves,), float(block_size)).double()]
        counts[1][-1] = keys - (leaves - 1) * block_size
        means, offset = pyramid.summaries[batch, kv_head].cpu().double(), 0
        self.scores = [None, None]
        while self.sizes[-1] > 1:
            n = self.sizes[-1]
            level, offset = means[offset : offset + n], offset + n
            self.scores.append(self.score(level, counts[-1], fanout))
            counts.append(self.grouped(counts[-1][None], fanout, 0.0)[0].sum(-1))
            self.sizes.append(len(counts[-1]))
        key = k[batch, :, kv_head].cpu().double()
        self.exact = self.score(key, torch.ones(keys).double(), block_size)
        self.pre = None
        if rerank is not None:
            atoms = pyramid.atoms[batch, kv_head].cpu().double()
            outlier = pyramid.outlier[batch, kv_head].cpu().long()
            part = block_size // leaf_atoms
            first = torch.arange(leaves * leaf_atoms) * part
            count = (keys - first).clamp(0, part).double().view(leaves, leaf_atoms)
            count[torch.arange(leaves), outlier % block_size // part] -= 1
            atoms = torch.cat([atoms, key[outlier][:, None]], 1).flatten(0, 1)
            count = torch.cat([count, torch.ones(leaves, 1)], 1).flatten()
            self.pre = self.score(atoms, count, leaf_atoms + 1)

    @staticmethod
    def grouped(x, size, fill):
        """[..., n] in groups of `size`, the last one filled up."""
        return torch.nn.functional.pad(x, (0, -x.shape[-1] % size), value=fill).unflatten(
            -1, (-1, size)
        )

    def score(self, vectors, count, size):
        """Sum over queries and heads of log sum count * exp(q . vector), of groups of `size`."""
        logits = torch.einsum("rqgd,nd->rqgn", self.q, vectors) + count.log()
        logits = torch.where(count > 0, logits, -math.inf).nan_to_num(-math.inf)
        sums = self.grouped(logits, size, -math.inf).logsumexp(-1)
        return (sums.sum(2) * self.weight[:, :, None]).sum(1).numpy()

    def cut(self, candidates, forced, keep, scores):
        """All sets of `keep` candidates, forced ones included, that are right within tolerance."""
        free = sorted((c for c in candidates if c not in forced), key=lambda c: (-scores[c], c))
        most = keep - (len(candidates) - len(free))
        if len(free) <= most:
            return [set(candidates)]
        held = set(candidates) - set(free)
        if most <= 0:
            return [held]
        last, dropped = scores[free[most - 1]], scores[free[most]]
        tolerance = self.tolerance * max(1, abs(last))
        if last - dropped > tolerance:
            return [held | set(free[:most])]
        self.tied_row = True
        sure = [c for c in free[:most] if scores[c] > dropped + tolerance]
        open_ = [c for c in free if c not in sure and scores[c] >= last - tolerance]
        return [held | set(sure) | set(c) for c in itertools.combinations(open_, most - len(sure))]

    def selections(self, row):
        """The sets that the row with this position in `rows` may have."""
        block, shared = self.block_size, self.query_block
        first = self.start + self.rows[row] * shared
        last = min(first + shared, self.start + self.queries) - 1
        own = last // block
        # Forced: the sink and, of each query of the row, its own block and the one before.
        leaves = {0, own} | {b for b in range(first // block - 1, own) if b >= 0}
        if not self.causal:
            own, leaves = self.sizes[1] - 1, set()
        walks = [{0}]
        for level in range(len(self.sizes) - 2, 0, -1):
            span = self.fanout ** (level - 1)
            forced = {leaf // span for leaf in leaves}
            found = []
            for kept in walks:
                below = {c for p in kept for c in range(p * self.fanout, (p + 1) * self.fanout)}
                below = {c for c in below if c * span <= own and c < self.sizes[level]}
                found += [(below, forced)]
            walks = []
            for below, forced in found:
                # Nodes of level 2 and up by their summaries, all leaves below what is left.
                if level > 1:
                    walks += self.cut(below, forced, self.beam, self.scores[level][row])
                elif self.rerank is None or len(below) <= self.topk:
                    walks += self.cut(below, forced, self.topk, self.exact[row])
                elif self.rerank == 0:
                    walks += self.cut(below, forced, self.topk, self.pre[row])
                else:
                    for some in self.cut(below, forced, self.rerank, self.pre[row]):
                        walks += self.cut(some, forced, self.topk, self.exact[row])
        return [sorted(w) for w in walks] if len(self.sizes) > 2 else [[0]]

    def check(self, indices):
        """Asserts that indices [rows, K] are right, padded with -1."""
        for row, got in enumerate(indices.tolist()):
            self.tied_row = False
            allowed = self.selections(row)
            self.tied += self.tied_row
            want = [w + [-1] * (self.topk - len(w)) for w in allowed]
            assert got in want, f"row {self.rows[row]}: chose {got}, but expected one of {want[:4]}"


def check_selection(indices, q, k, *, rows=None, most_tied=None, **options):
    """Every row, or those of `rows`, of every batch and kv head against float64. In `most_tied` of
    them, by default one in a thousand and two, scores may be within rounding of each other."""
    tied = total = 0
    for batch, kv_head in itertools.product(range(q.shape[0]), range(k.shape[2])):
        walk = Walk(q, k, batch=batch, kv_head=kv_head, rows=rows, **options)
        got = indices[batch, kv_head].cpu()
        walk.check(got if rows is None else got[rows])
        tied, total = tied + walk.tied, total + len(walk.rows)
    print(f"{tied} of {total} rows are inside the tie band")
    assert tied <= (2 + total // 1000 if most_tied is None else most_tied)
