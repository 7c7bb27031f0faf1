"""How good a selection is, against dense attention over the same tensors."""

from dataclasses import dataclass

import numpy as np

from .dense import DenseReference

# The forced blocks of the default setting: the first, the one that holds the query and the one
# before it.
SINK_BLOCKS, LOCAL_BLOCKS = 1, 2

UNION_TOKENS = 8


@dataclass(frozen=True)
class Quality:
    """Means over the rows (token and kv head) that see more than K blocks; others select all.

    recall: |selected & best| / K. recall_free: the same without the forced blocks, which no method
    can miss. mass: the dense attention probability that lies in the selected blocks. union:
    distinct blocks that 8 adjacent tokens select together. rows: how many rows counted.
    """

    recall: float
    recall_free: float
    mass: float
    union: float
    rows: int


def attention_mass(reference: DenseReference, kv_heads: int) -> np.ndarray:
    """[Hkv, T, N] float64: the softmax probability in each block, the mean of the group's heads."""
    heads, tokens, blocks = reference.block_lse.shape
    group = heads // kv_heads
    mass = np.empty((kv_heads, tokens, blocks))
    for head in range(kv_heads):
        rows = slice(head * group, (head + 1) * group)
        logarithm = reference.block_lse[rows] - reference.lse[rows, :, None]
        mass[head] = np.exp(logarithm, dtype=np.float64).mean(0)
    return mass


def selected_mask(indices: np.ndarray, blocks: int) -> np.ndarray:
    """[Hkv, T, N] bool from indices [Hkv, T, K]; entries of -1 select nothing."""
    mask = np.zeros((*indices.shape[:2], blocks + 1), bool)
    # -1 becomes the extra column at the end, which is cut off.
    np.put_along_axis(mask, np.where(indices < 0, blocks, indices), True, axis=2)
    return mask[:, :, :blocks]


def forced_mask(tokens: int, blocks: int, block_size: int) -> np.ndarray:
    """[T, N] bool: the forced blocks of every token."""
    current = np.arange(tokens)[:, None] // block_size
    block = np.arange(blocks)
    local = (block <= current) & (block > current - LOCAL_BLOCKS)
    return local | (block < SINK_BLOCKS) & (block <= current)


def best_mask(score: np.ndarray, topk: int, block_size: int) -> np.ndarray:
    """[Hkv, T, N] bool: the forced blocks and the best others, K together, or all visible ones.

    score [Hkv, T, N]. Equal scores: the lower block.
    """
    _, tokens, blocks = score.shape
    forced = forced_mask(tokens, blocks, block_size)
    visible = np.arange(blocks) <= np.arange(tokens)[:, None] // block_size
    ranked = np.where(forced, np.inf, score)
    # Not even a block without any mass may be taken over by one in the future.
    ranked = np.where(visible, ranked, -np.inf)
    order = np.argsort(-ranked, axis=2, kind="stable")[:, :, :topk]
    mask = np.zeros(score.shape, bool)
    np.put_along_axis(mask, order, True, axis=2)
    return mask & visible


def exact_selection(
    reference: DenseReference, kv_heads: int, topk: int, block_size: int
) -> np.ndarray:
    """[Hkv, T, N] bool: what the router would select if it scored every visible block exactly.

    Its score is the sum over the group's heads of the log of a block's mass, so this is not
    `best_mask` of the mean mass: the difference is the share of the loss that no search can win
    back.
    """
    heads, tokens, blocks = reference.block_lse.shape
    scores = reference.block_lse.reshape(kv_heads, heads // kv_heads, tokens, blocks)
    return best_mask(scores.sum(1, dtype=np.float64), topk, block_size)


def quality(selected: np.ndarray, mass: np.ndarray, topk: int, block_size: int) -> Quality:
    """Quality of a selection; at least one row must see more than K blocks.

    selected [Hkv, T, N] bool; mass [Hkv, T, N], from `attention_mass`.
    """
    _, tokens, blocks = mass.shape
    counted = np.arange(tokens) // block_size + 1 > topk
    best = best_mask(mass, topk, block_size)
    forced = forced_mask(tokens, blocks, block_size)
    hit = selected & best
    hits = hit.sum(2)[:, counted]
    free_hits = (hit & ~forced).sum(2)[:, counted]
    free = topk - forced.sum(1)[counted]
    # With nothing but forced blocks there is nothing to miss.
    free_recall = np.where(free > 0, free_hits / np.maximum(free, 1), 1.0)
    return Quality(
        recall=float(hits.mean() / topk),
        recall_free=float(free_recall.mean()),
        mass=float((mass * selected).sum(2)[:, counted].mean()),
        union=union_size(selected, counted),
        rows=int(hits.size),
    )


def union_size(selected: np.ndarray, counted: np.ndarray) -> float:
    """Mean number of blocks that an aligned group of 8 tokens selects together, per kv head.

    selected [Hkv, T, N] bool; counted [T] bool: only groups with all of their tokens in it. NaN if
    there is none.
    """
    kv_heads, tokens, blocks = selected.shape
    groups = tokens // UNION_TOKENS
    whole = counted[: groups * UNION_TOKENS].reshape(groups, UNION_TOKENS).all(1)
    if not whole.any():
        return float("nan")
    by_group = selected[:, : groups * UNION_TOKENS].reshape(kv_heads, groups, UNION_TOKENS, blocks)
    return float(by_group.any(2)[:, whole].sum(2).mean())


def relative_error(out: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Relative L2 error and the largest absolute one."""
    difference = out.astype(np.float64) - reference
    norm = np.linalg.norm(reference.astype(np.float64))
    return float(np.linalg.norm(difference) / norm), float(np.abs(difference).max())


@dataclass(frozen=True)
class Check:
    """The largest errors of output and log-sum-exp, and the largest error over its limit."""

    out_error: float
    lse_error: float
    worst: float

    @property
    def passed(self) -> bool:
        """Whether every sampled row is within its limit (false for NaN)."""
        return self.worst <= 1


def check_rows(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    indices: np.ndarray,
    out: np.ndarray,
    lse: np.ndarray,
    block_size: int,
    samples: int = 128,
) -> Check:
    """Recomputes some rows of sparse attention in float64 on the given indices [Hkv, T, K].

    q [Hq, T, D], k [Hkv, T, D], v [Hkv, T, Dv], out [Hq, T, Dv], lse [Hq, T]. The limit is what
    float32 can promise: with eps = 2^-23 and u = 2 eps (sqrt(keys) + size), the output may be off
    by u max|v| + 1e-5 and the log-sum-exp by u + 1e-5. sqrt(keys) is for the sums; size is the
    largest |q| |k| scale: a rounding error of a logit is a relative error of its probability.
    """
    heads, tokens, depth = q.shape
    group = heads // len(k)
    scale = depth**-0.5
    sampled = np.unique(np.linspace(0, tokens - 1, min(samples, tokens)).astype(int))
    out_error = lse_error = worst = 0.0
    for head in range(len(k)):
        for i in sampled:
            chosen = indices[head, i]
            keys = (chosen[chosen >= 0, None] * block_size + np.arange(block_size)).ravel()
            keys = keys[keys <= i]
            rows = slice(head * group, (head + 1) * group)
            queries = q[rows, i].astype(np.float64)
            near = k[head, keys].astype(np.float64)
            values = v[head, keys].astype(np.float64)
            logits = scale * queries @ near.T
            top = logits.max(1, keepdims=True)
            weight = np.exp(logits - top)
            total = weight.sum(1, keepdims=True)
            out_off = np.abs(weight @ values / total - out[rows, i]).max()
            lse_off = np.abs((top + np.log(total))[:, 0] - lse[rows, i]).max()
            size = (
                scale * np.linalg.norm(queries, axis=1).max() * np.linalg.norm(near, axis=1).max()
            )
            unit = 2 * 2.0**-23 * (np.sqrt(len(keys)) + size)
            out_limit, lse_limit = unit * np.abs(values).max() + 1e-5, unit + 1e-5
            # np.maximum keeps NaN, which must fail; max and np.fmax would hide it.
            over = np.maximum(out_off / out_limit, lse_off / lse_limit)
            out_error = np.maximum(out_error, out_off)
            lse_error = np.maximum(lse_error, lse_off)
            worst = np.maximum(worst, over)
    return Check(float(out_error), float(lse_error), float(worst))
