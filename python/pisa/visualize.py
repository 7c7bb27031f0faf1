"""Pictures of a selection: `selection`, and the numbers in it: `mass`, `kept_nodes`.

Everything here is plain NumPy in float64, for a few rows of one head; it explains what the kernels
did and shares no code with them. It needs Matplotlib (`pip install pisa[plot]`) for the picture.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _call as call
from . import ops
from ._arrays import is_torch
from ._params import Params, boolean, integer, make_params

# The colours span this much mass; what is below is drawn in the darkest one.
LEAST_MASS = 1e-5


@dataclass(frozen=True)
class Head:
    """One group of heads in float64: q [G, Tq, D], k [Tk, D]; position of query 0, None where no
    query has one; keys that exist."""

    q: np.ndarray
    k: np.ndarray
    start: int | None
    length: int
    scale: float


def _wide(array: Any) -> np.ndarray:
    if is_torch(array):
        array = array.detach().to("cpu").double().numpy()
    return np.asarray(array).astype(np.float64)


def _one(name: str, value: Any, batch: int, size: int) -> int | None:
    lengths = call.lengths(name, value, size)
    return None if lengths is None else int(lengths[batch])


def _take_head(
    q: Any,
    k: Any,
    layout: str,
    causal: bool,
    softmax_scale: float | None,
    q_start: Any,
    k_len: Any,
    batch: int,
    kv_head: int,
) -> Head:
    call.check_choice("layout", layout, call.LAYOUTS)
    sizes, k_sizes = call.heads_of("q", q, layout), call.heads_of("k", k, layout)
    call.check_same("k", "D", k_sizes.dim, "q", sizes.dim)
    call.check_heads(sizes.heads, k_sizes.heads)
    for name, value, size in (("batch", batch, sizes.batch), ("kv_head", kv_head, k_sizes.heads)):
        if not 0 <= integer(name, value) < size:
            raise ValueError(f"expected {name} to be in [0, {size - 1}], but got {value}")
    group = sizes.heads // k_sizes.heads
    heads = slice(kv_head * group, (kv_head + 1) * group)
    if layout == "bshd":
        q_one, k_one = _wide(q[batch, :, heads]).swapaxes(0, 1), _wide(k[batch, :, kv_head])
    else:
        q_one, k_one = _wide(q[batch, heads]), _wide(k[batch, kv_head])
    length = _one("k_len", k_len, batch, sizes.batch)
    if length is None:
        length = k_sizes.length
        if causal and q_start is None and 0 < length < sizes.length:
            raise ValueError(
                f"expected Tq to be at most Tk = {length} in causal attention without q_start,"
                f" but got {sizes.length}"
            )
    if not 0 <= length <= k_sizes.length:
        raise ValueError(
            f"expected k_len[{batch}] to be in [0, {k_sizes.length}], but got {length}"
        )
    start = _one("q_start", q_start, batch, sizes.batch)
    if start is None and causal:
        start = length - sizes.length
    return Head(q_one, k_one, start, length, call.softmax_scale(softmax_scale, sizes.dim))


def _block_mass(head: Head, rows: np.ndarray, block_size: int, causal: bool) -> np.ndarray:
    """[rows, N]: dense softmax probability of each block, mean over the group's heads."""
    blocks = -(-len(head.k) // block_size)
    starts = np.arange(blocks) * block_size
    result = np.zeros((len(rows), blocks))
    keys = np.arange(len(head.k))
    k = np.where(keys[:, None] < head.length, head.k, 0)  # what is past it may be NaN
    for i, row in enumerate(rows):
        seen = keys < head.length
        if causal and head.start is not None:
            seen &= keys <= head.start + row
        if not seen.any():
            continue
        logits = np.where(seen, head.scale * head.q[:, row] @ k.T, -np.inf)
        weights = np.exp(logits - logits.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        result[i] = np.add.reduceat(weights.mean(0), starts)
    return result


def mass(
    q: Any,
    k: Any,
    *,
    block_size: int = 64,
    rows: Any = None,
    layout: str = "bshd",
    softmax_scale: float | None = None,
    causal: bool = True,
    q_start: Any = None,
    k_len: Any = None,
    batch: int = 0,
    kv_head: int = 0,
) -> np.ndarray:
    """How much of the attention of dense softmax falls into each block.

    Args: q, k and the rest as for `pisa.attention`; rows: queries to compute, None for all; batch,
    kv_head: which head.

    Returns [rows, ceil(Tk / block_size)] float64: the softmax probability of each block's keys,
    mean over the query heads of the group; 0 in rows that see no key. Raises as `pisa.attention`
    does.
    """
    if not 1 <= integer("block_size", block_size):
        raise ValueError(f"expected block_size to be at least 1, but got {block_size}")
    boolean("causal", causal)
    head = _take_head(q, k, layout, causal, softmax_scale, q_start, k_len, batch, kv_head)
    queries = head.q.shape[1]
    chosen = np.arange(queries) if rows is None else np.asarray(rows)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise TypeError(f"expected rows to be a list of ints, but got {rows!r}")
    if ((chosen < 0) | (chosen >= queries)).any():
        raise ValueError(f"expected rows to be queries in [0, {queries - 1}], but got {rows!r}")
    chosen = chosen.astype(np.int64)
    return _block_mass(head, chosen, block_size, causal)


def _log_sum_exp(logits: np.ndarray) -> np.ndarray:
    """Over the last axis; infinities and NaN as docs/Spec.md has them."""
    top = logits.max(-1)
    safe = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(np.isinf(top), top, safe + np.log(np.exp(logits - safe[..., None]).sum(-1)))


def _best(nodes: list[int], score: Callable[[int], float], count: int) -> list[int]:
    """The `count` nodes that come first by (is NaN, -score, index)."""

    def order(node: int) -> tuple[bool, float, int]:
        value = score(node)
        return (math.isnan(value), 0.0 if math.isnan(value) else -value, node)

    return sorted(nodes, key=order)[: max(count, 0)]


def kept_nodes(
    head: Head,
    summaries: np.ndarray,
    row: int,
    params: Params,
    atoms: np.ndarray | None = None,
    outlier: np.ndarray | None = None,
) -> dict[int, np.ndarray]:
    """docs/Spec.md section 2 for one query block, in float64: level -> the nodes that are kept
    there, from the root down to the leaves, level 1.

    summaries [rows of the pyramid, D], and for rerank atoms [leaves, A, D] and outlier [leaves]:
    what was stored.
    """
    c, g, shared = params.block_size, params.fanout, params.query_block
    beam = params.topk if params.beam is None else params.beam
    nodes = [-(-len(head.k) // c)]  # by level, leaves first
    while nodes[-1] > 1:
        nodes.append(-(-nodes[-1] // g))
    offsets = np.concatenate([[0], np.cumsum(nodes)])
    queries = np.arange(row * shared, min((row + 1) * shared, head.q.shape[1]))
    last = None if head.start is None else head.start + int(queries[-1])
    q = head.q[:, queries].reshape(-1, head.q.shape[2])

    forced: set[int] = set()
    if last is not None and head.start is not None:
        own = (head.start + queries) // c
        forced.update(range(params.sink_blocks))
        for back in range(params.local_blocks):
            forced.update((own - back).tolist())
    exist = -(-head.length // c)
    forced = {leaf for leaf in forced if 0 <= leaf < exist and (last is None or leaf * c <= last)}

    def of_children(level: int) -> Callable[[int], float]:
        def score(node: int) -> float:
            children = np.arange(node * g, min((node + 1) * g, nodes[level - 2]))
            span = c * g ** (level - 2)
            count = np.clip(head.length - children * span, 0, span)
            children, count = children[count > 0], count[count > 0]
            means = summaries[offsets[level - 2] + children]
            return float(_log_sum_exp(head.scale * q @ means.T + np.log(count)).sum())

        return score

    def exact(leaf: int) -> float:
        keys = head.k[leaf * c : min((leaf + 1) * c, head.length)]
        return float(_log_sum_exp(head.scale * q @ keys.T).sum())

    def before(leaf: int) -> float:
        assert atoms is not None and outlier is not None
        size = c // atoms.shape[1]
        begin = leaf * c + size * np.arange(atoms.shape[1])
        count = np.clip(head.length - begin, 0, size)
        count = count - ((begin <= outlier[leaf]) & (outlier[leaf] < begin + size))
        some = count > 0
        vectors = np.concatenate([atoms[leaf][some], head.k[outlier[leaf]][None]])
        weights = np.log(np.concatenate([count[some], [1]]))
        return float(_log_sum_exp(head.scale * q @ vectors.T + weights).sum())

    def candidates(level: int, above: np.ndarray) -> np.ndarray:
        span = c * g ** (level - 1)
        found = (above[:, None] * g + np.arange(g)).ravel()
        fits = (found < nodes[level - 1]) & (found * span < head.length)
        if params.causal and last is not None:
            fits &= found * span <= last
        return found[fits]

    top = len(nodes)
    kept = {top: np.zeros(1 if exist else 0, np.int64)}
    for level in range(top - 1, 0, -1):
        found = candidates(level, kept[level + 1])
        must_all = {leaf // g ** (level - 1) for leaf in forced}
        must = [int(n) for n in found if n in must_all]
        free = [int(n) for n in found if n not in must_all]
        width = params.topk if level == 1 else beam
        if len(found) > width:
            score = of_children(level) if level > 1 else exact
            if level == 1 and params.rerank is not None:
                if params.rerank == 0:
                    score = before
                else:
                    free = _best(free, before, params.rerank - len(must))
            free = _best(free, score, width - len(must))
        kept[level] = np.array(sorted(must + free), np.int64)
    return kept


def selection(
    q: Any,
    k: Any,
    *,
    layout: str = "bshd",
    softmax_scale: float | None = None,
    q_start: Any = None,
    k_len: Any = None,
    batch: int = 0,
    kv_head: int = 0,
    max_rows: int = 256,
    **parameters: Any,
) -> Any:
    """What each query chose, level by level of the pyramid, over the true attention mass.

    Args: q, k, layout, softmax_scale, q_start, k_len and parameters (topk, block_size, beam, ...)
    as for `pisa.attention`; batch, kv_head: which head; max_rows: query blocks that are drawn,
    evenly spread.

    Returns a matplotlib Figure, one panel a level, the leaves last. Colour is the softmax mass of a
    node's keys (mean over the group's heads, of dense attention), veiled where the search did not
    keep it. The leaves are what `pisa.route` gives; the levels above are replayed in float64 from
    the stored summaries, and the title says in how many rows the replay ends in other leaves,
    which rounding may cause where scores are as good as equal.

    Raises RuntimeError without Matplotlib, otherwise as `pisa.attention` does.
    """
    unknown = set(parameters) - set(ops.OPTION_NAMES)
    if unknown:
        raise TypeError(
            f"expected parameters to be of {', '.join(ops.OPTION_NAMES)}, but got"
            f" {', '.join(sorted(unknown))}"
        )
    if integer("max_rows", max_rows) < 1:
        raise ValueError(f"expected max_rows to be at least 1, but got {max_rows}")
    params = make_params(**parameters)
    _require_matplotlib()
    head = _take_head(q, k, layout, params.causal, softmax_scale, q_start, k_len, batch, kv_head)
    pyramid = ops.build_pyramid(
        k, block_size=params.block_size, fanout=params.fanout, leaf_atoms=params.leaf_atoms,
        summary_dtype=params.summary_dtype, k_len=k_len, layout=layout,
        return_atoms=params.rerank is not None,
    )  # fmt: skip
    indices = ops.route(
        q, k, pyramid, topk=params.topk, beam=params.beam, rerank=params.rerank,
        query_block=params.query_block, sink_blocks=params.sink_blocks,
        local_blocks=params.local_blocks, softmax_scale=softmax_scale, causal=params.causal,
        q_start=q_start, k_len=k_len, layout=layout,
    )  # fmt: skip
    lists = np.asarray(indices[batch, kv_head])
    summaries = _wide(pyramid.summaries[batch, kv_head])
    atoms = None if pyramid.atoms is None else _wide(pyramid.atoms[batch, kv_head])
    outlier = None if pyramid.outlier is None else np.asarray(pyramid.outlier[batch, kv_head])
    rows = np.unique(np.linspace(0, len(lists) - 1, min(max_rows, len(lists))).astype(np.int64))
    if len(rows) == 0 or len(head.k) == 0:
        raise ValueError("expected at least one query and one key to draw")
    last_query = np.minimum((rows + 1) * params.query_block, head.q.shape[1]) - 1
    leaf_mass = _block_mass(head, last_query, params.block_size, params.causal)
    kept = [kept_nodes(head, summaries, int(row), params, atoms, outlier) for row in rows]
    apart = sum(
        not np.array_equal(lists[row][lists[row] >= 0], kept[i][1]) for i, row in enumerate(rows)
    )
    return _draw(rows * params.query_block, leaf_mass, kept, lists[rows], params, apart)


def _require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise RuntimeError("a picture needs Matplotlib: pip install 'pisa[plot]'") from error


def _draw(
    queries: np.ndarray,
    leaf_mass: np.ndarray,
    kept: list[dict[int, np.ndarray]],
    lists: np.ndarray,
    params: Params,
    apart: int,
) -> Any:
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.figure import Figure

    top = max(kept[0])
    shown = list(range(top - 1, 0, -1)) or [1]  # the root is always kept
    columns = min(4, len(shown))
    lines = -(-len(shown) // columns)
    figure = Figure(figsize=(4.2 * columns + 1, 3.6 * lines + 0.8), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    veil = LinearSegmentedColormap.from_list(
        "veil", [(0.92, 0.92, 0.92, 0), (0.92, 0.92, 0.92, 0.93)]
    )
    norm = LogNorm(LEAST_MASS, 1)
    image: Any = None
    for panel, level in zip(panels, shown, strict=False):
        span = params.fanout ** (level - 1)
        starts = np.arange(0, leaf_mass.shape[1], span)
        masses = np.add.reduceat(leaf_mass, starts, axis=1)
        chosen = np.zeros(masses.shape)
        for i, row in enumerate(kept):
            nodes = lists[i][lists[i] >= 0] if level == 1 else row[level]
            chosen[i, nodes] = 1
        extent = (0, len(starts) * span * params.block_size, len(queries), 0)
        place: dict[str, Any] = {"extent": extent, "aspect": "auto", "interpolation": "nearest"}
        seen = np.ma.array(np.maximum(masses, LEAST_MASS), mask=masses <= 0)
        image = panel.imshow(seen, norm=norm, cmap="viridis", **place)
        panel.imshow(np.ma.array(1 - chosen, mask=masses <= 0), vmin=0, vmax=1, cmap=veil, **place)
        name = "leaves" if level == 1 else f"level {level}"
        width = params.topk if level == 1 else params.topk if params.beam is None else params.beam
        total = masses.sum(1)
        known = np.isfinite(total) & (total > 0)
        captured = (masses * chosen)[known].sum(1) / total[known]
        share = f"{captured.mean():.3f}" if len(captured) else "unknown"
        if not known.all():
            share += f" ({known.sum()} of {len(known)} rows)"
        panel.set_title(
            f"{name}: {masses.shape[1]} nodes, {'K' if level == 1 else 'W'} = {width},"
            f" mass {share}",
            fontsize=9,
        )
        ticks = np.linspace(0, len(queries) - 1, min(5, len(queries))).astype(int)
        panel.set_yticks(ticks + 0.5, [str(queries[t]) for t in ticks])
        panel.set_xlabel("key")
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    for panel in panels[::columns]:
        panel.set_ylabel("query")
    figure.colorbar(image, ax=list(panels), extend="min", label="softmax mass of a node's keys")
    title = "Nodes that each query kept, over the attention mass (pale: not kept)"
    if apart:
        title += f"\nin {apart} of {len(queries)} rows the replay ends in other leaves"
    figure.suptitle(title, fontsize=11)
    return figure
