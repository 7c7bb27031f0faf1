"""Dense causal attention in numpy: the model's, the reference of the metrics, and the baseline.

`python -m pisa.evaluation.dense --help` times it in a process of its own, so that settings which
BLAS reads once, when it is loaded, do not leak from the caller.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

Task = TypeVar("Task")

# With a group of three heads a tile of scores is 384 x 1024 floats, 1.5 MiB: it stays in a core's
# second-level cache.
QUERY_TILE = 128
KEY_TILE = 1024


def for_each(function: Callable[[Task], None], tasks: Iterable[Task], threads: int) -> None:
    """Calls `function` on every task from `threads` threads; the first exception is raised again.

    BLAS is held to one thread meanwhile: the elementwise half of the work then runs in parallel
    too, which it would not if only BLAS had the threads.
    """
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(function, tasks):
            pass


def causal_attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Softmax attention of query i over the keys 0..i, scale 1/sqrt(D), in float32.

    q [Hq, T, D], k [Hkv, T, D], v [Hkv, T, Dv]; returns out [Hq, T, Dv] and the natural log-sum-exp
    [Hq, T]. Online softmax over tiles of keys: T x T scores never exist, and tiles wholly in the
    future are skipped.
    """
    heads, tokens, depth = q.shape
    kv_heads, _, value_depth = v.shape
    group = heads // kv_heads
    scale = np.float32(depth**-0.5)
    out = np.empty((heads, tokens, value_depth), np.float32)
    lse = np.empty((heads, tokens), np.float32)

    def task(where: tuple[int, int]) -> None:
        start, head = where
        stop = min(start + QUERY_TILE, tokens)
        rows = slice(head * group, (head + 1) * group), slice(start, stop)
        queries = (q[rows] * scale).reshape(-1, depth)
        top = np.full((len(queries), 1), -np.inf, np.float32)
        total = np.zeros((len(queries), 1), np.float32)
        sums = np.zeros((len(queries), value_depth), np.float32)
        for first in range(0, stop, KEY_TILE):
            last = min(first + KEY_TILE, stop)
            scores = queries @ k[head, first:last].T
            if last > start:
                future = np.arange(first, last) > np.arange(start, stop)[:, None]
                scores.reshape(group, *future.shape)[:, future] = -np.inf
            new_top = np.maximum(top, scores.max(1, keepdims=True))
            scores -= new_top
            np.exp(scores, out=scores)
            shrink = np.exp(top - new_top)
            total = total * shrink + scores.sum(1, keepdims=True)
            sums = sums * shrink + scores @ v[head, first:last]
            top = new_top
        out[rows] = (sums / total).reshape(out[rows].shape)
        lse[rows] = (top + np.log(total)).reshape(lse[rows].shape)

    # The longest rows first, so that no thread is left alone with one at the end.
    starts = reversed(range(0, tokens, QUERY_TILE))
    for_each(task, [(start, head) for start in starts for head in range(kv_heads)], threads)
    return out, lse


@dataclass(frozen=True)
class DenseReference:
    """What dense attention does to each block; float32.

    out [Hq, T, Dv]; lse [Hq, T]; block_lse [Hq, T, N], the log-sum-exp over the visible keys of
    each block, -inf for a block wholly in the future: exp(block_lse - lse) is the attention mass of
    the block.
    """

    out: np.ndarray
    lse: np.ndarray
    block_lse: np.ndarray


def dense_reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, block_size: int, threads: int
) -> DenseReference:
    """Dense causal attention with its log-sum-exp block by block.

    q [Hq, T, D], k [Hkv, T, D], v [Hkv, T, Dv]. Apart from the result (Hq * T * N floats) memory
    stays at a few tiles of 128 queries.
    """
    heads, tokens, depth = q.shape
    kv_heads, _, value_depth = v.shape
    group = heads // kv_heads
    blocks = -(-tokens // block_size)
    scale = np.float32(depth**-0.5)
    out = np.empty((heads, tokens, value_depth), np.float32)
    lse = np.empty((heads, tokens), np.float32)
    block_lse = np.full((heads, tokens, blocks), -np.inf, np.float32)

    def task(where: tuple[int, int]) -> None:
        start, head = where
        stop = min(start + QUERY_TILE, tokens)
        rows = slice(head * group, (head + 1) * group), slice(start, stop)
        visible = (stop - 1) // block_size + 1
        keys = min(visible * block_size, tokens)
        queries = (q[rows] * scale).reshape(-1, depth)
        # Whole blocks, so that one reshape gives [rows, blocks, keys]; what the last one lacks is
        # masked like the future.
        scores = np.full((len(queries), visible * block_size), -np.inf, np.float32)
        np.matmul(queries, k[head, :keys].T, out=scores[:, :keys])
        future = np.arange(start, keys) > np.arange(start, stop)[:, None]
        scores.reshape(group, stop - start, -1)[:, :, start:keys][:, future] = -np.inf
        scores = scores.reshape(len(queries), visible, block_size)
        top = scores.max(2, keepdims=True)
        # A block without a visible key has top -inf; zero instead keeps exp(-inf - top) at zero.
        scores -= np.where(np.isfinite(top), top, np.float32(0))
        np.exp(scores, out=scores)
        total = scores.sum(2, keepdims=True)
        with np.errstate(divide="ignore"):
            per_block = top + np.log(total)
        whole_top = per_block.max(1, keepdims=True)
        whole = whole_top + np.log(np.exp(per_block - whole_top).sum(1, keepdims=True))
        scores *= np.exp(top - whole)
        probabilities = scores.reshape(len(queries), -1)[:, :keys]
        out[rows] = (probabilities @ v[head, :keys]).reshape(out[rows].shape)
        lse[rows] = whole.reshape(lse[rows].shape)
        block_lse[rows][:, :, :visible] = per_block.reshape(group, stop - start, visible)

    starts = reversed(range(0, tokens, QUERY_TILE))
    for_each(task, [(start, head) for start in starts for head in range(kv_heads)], threads)
    return DenseReference(out, lse, block_lse)


def main(argv: list[str]) -> int:
    """Times `causal_attention`; prints {"ms": the median}."""
    parser = argparse.ArgumentParser(prog="pisa.evaluation.dense", description=main.__doc__)
    for name in ("q", "k", "v"):
        parser.add_argument(name, help=f"{name}.npy, [1, heads, T, D] float32")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument(
        "--repeat", type=int, required=True, help="timed runs, after one that is not"
    )
    arguments = parser.parse_args(argv)
    q, k, v = (np.load(path)[0] for path in (arguments.q, arguments.k, arguments.v))
    times = []
    for _ in range(arguments.repeat + 1):
        begin = time.perf_counter()
        causal_attention(q, k, v, arguments.threads)
        times.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps({"ms": statistics.median(times[1:])}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
