"""`python -m pisa bench`: the time of attention and of its parts against dense attention, and the
host time of a call."""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _call as call
from . import ops
from ._arrays import fill
from ._kernels import _free_frames, get_kernel
from ._params import make_params
from ._threads import get_num_threads, set_num_threads

# Calls of which the mean is taken, five times, for the host time.
HOST_CALLS = 5000

COLUMNS = ("pyramid", "route", "attention", "whole", "dense, ours", "dense, PyTorch")


def numbers(text: str) -> list[int]:
    """Integers with commas between them, for argparse."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r}: must be numbers with commas between"
        ) from error


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("--lengths", type=numbers, default=[1024, 4096], metavar="N,..", help="tokens (1024,4096)")
    add("--heads", type=int, default=8, help="query heads (8)")
    add("--kv-heads", type=int, default=2, help="key/value heads (2)")
    add("--head-dim", type=int, default=64, help="D of queries, keys and values (64)")
    add("--batch", type=int, default=1, help="sequences (1)")
    add("--dtype", default="float32", help="float32, float16 or bfloat16 (float32)")
    add("--topk", type=int, default=16, help="blocks a query attends to (16)")
    add("--beam", type=int, help="nodes kept at each upper level (topk)")
    add("--rerank", type=int, help="blocks that get an exact score (all)")
    add("--block-size", type=int, default=64, help="keys in a block (64)")
    add("--threads", type=int, default=0, help="threads (one a core)")
    add("--runs", type=int, default=5, help="a time is the median of so many runs (5)")
    add("--no-dense", action="store_true", help="leave dense attention out: it is quadratic")
    add("--json", type=Path, metavar="FILE", help="also write the numbers there")


def median_ms(function: Callable[[], Any], runs: int) -> float:
    """The median of `runs` runs after one that does not count."""
    function()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return 1e3 * sorted(times)[runs // 2]


def _normal(library: str, seed: int, shape: tuple[int, ...], dtype: str) -> Any:
    if library == "torch":
        import torch

        made = torch.Generator().manual_seed(seed)
        return torch.randn(shape, generator=made).to(getattr(torch, dtype))
    import numpy

    if dtype == "bfloat16":
        raise ValueError(
            "expected dtype to be float32 or float16 without PyTorch, but got bfloat16"
        )
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


def measure(library: str, length: int, a: argparse.Namespace) -> dict[str, float | None]:
    """Milliseconds of the columns at one length; None for what was not run."""
    q = _normal(library, 1, (a.batch, length, a.heads, a.head_dim), a.dtype)
    k, v = (_normal(library, s, (a.batch, length, a.kv_heads, a.head_dim), a.dtype) for s in (2, 3))
    routing = {"topk": a.topk, "beam": a.beam, "rerank": a.rerank}

    def build() -> Any:
        return ops.build_pyramid(k, block_size=a.block_size, return_atoms=a.rerank is not None)

    pyramid = build()
    indices = ops.route(q, k, pyramid, **routing)
    found: dict[str, float | None] = {
        "pyramid": median_ms(build, a.runs),
        "route": median_ms(lambda: ops.route(q, k, pyramid, **routing), a.runs),
        "attention": median_ms(
            lambda: ops.block_sparse_attention(q, k, v, indices, block_size=a.block_size), a.runs
        ),
        "whole": median_ms(
            lambda: ops.attention(q, k, v, block_size=a.block_size, **routing), a.runs
        ),
        "dense, ours": None,
        "dense, PyTorch": None,
    }
    if a.no_dense:
        return found
    found["dense, ours"] = median_ms(
        lambda: ops.attention(
            q, k, v, topk=a.topk, block_size=a.block_size, dense_below=length + 1
        ),
        a.runs,
    )
    if library == "torch":
        import torch

        heads = [x.transpose(1, 2) for x in (q, k, v)]
        found["dense, PyTorch"] = median_ms(
            lambda: torch.nn.functional.scaled_dot_product_attention(
                *heads, is_causal=True, enable_gqa=True
            ),
            a.runs,
        )
    return found


def host_time(library: str, calls: int = HOST_CALLS) -> tuple[float, float]:
    """Microseconds of a whole `pisa.attention` on one query and one key, and of the C call in it
    with everything prepared: the kernel, its checks, and the way through ctypes. The difference is
    the host time."""
    q, k, v = (_normal(library, s, (1, 1, 1, 8), "float32") for s in range(3))
    out = ops.attention(q, k, v)
    key = ops.forward_key(
        call.heads_of("q", q, "bshd"), call.heads_of("k", k, "bshd"),
        call.heads_of("v", v, "bshd"), make_params(), 0,
    )  # fmt: skip
    kernel = get_kernel(key)
    names = ("q", "k", "v", "out")
    arrays = (q, k, v, out)
    kernel.run(names, arrays, 1.0, True)
    frame = _free_frames[names].pop()
    alive = list(map(fill, names, arrays, frame.views))

    def best(function: Callable[[], Any]) -> float:
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            for _ in range(calls):
                function()
            times.append(time.perf_counter() - begin)
        return 1e6 * min(times) / calls

    prepared = best(lambda: kernel._run(kernel._handle, frame.address, None, None))
    whole = best(lambda: ops.attention(q, k, v))
    del alive
    _free_frames[names].append(frame)
    return whole, prepared


def run(a: argparse.Namespace) -> int:
    """Prints the table. Raises as the operations do."""
    for name in ("heads", "kv_heads", "head_dim", "batch", "runs"):
        if getattr(a, name) < 1:
            raise ValueError(f"expected --{name.replace('_', '-')} to be at least 1")
    if min(a.lengths) < 1:
        raise ValueError(f"expected --lengths to be at least 1, but got {min(a.lengths)}")
    if a.dtype not in ("float32", "float16", "bfloat16"):
        raise ValueError(
            f"expected --dtype to be float32, float16 or bfloat16, but got {a.dtype!r}"
        )
    try:
        import torch

        library = "torch"
    except ImportError:
        library = "numpy"
    if a.threads < 0:
        raise ValueError(f"expected --threads to be at least 0, but got {a.threads}")
    if a.json and not a.json.parent.is_dir():
        raise ValueError(f"expected --json in a folder that exists, but got {str(a.json)!r}")
    before = get_num_threads()
    torch_before = torch.get_num_threads() if library == "torch" else 0
    try:
        return report(library, a)
    finally:
        set_num_threads(before)
        if library == "torch":
            torch.set_num_threads(torch_before)


def report(library: str, a: argparse.Namespace) -> int:
    """Measures and prints; changes the number of threads."""
    set_num_threads(a.threads)
    threads = get_num_threads()
    if library == "torch":
        import torch

        torch.set_num_threads(threads)
    print(
        f"{a.dtype}, batch {a.batch}, {a.heads}/{a.kv_heads} heads, D = {a.head_dim}, K = {a.topk},"
        f" C = {a.block_size}, causal, {threads} threads, {library}; ms, median of {a.runs}\n"
    )
    print("| N | " + " | ".join(COLUMNS) + " | whole / dense |")
    print("|" + " --: |" * (len(COLUMNS) + 2))
    rows = []
    for length in a.lengths:
        found = measure(library, length, a)
        dense = [x for x in (found["dense, ours"], found["dense, PyTorch"]) if x is not None]
        whole = found["whole"]
        assert whole is not None
        ratio = f"{whole / min(dense):.2f}" if dense else "-"
        cells = ["-" if found[c] is None else f"{found[c]:.2f}" for c in COLUMNS]
        print(f"| {length} | " + " | ".join(cells) + f" | {ratio} |", flush=True)
        rows.append({"length": length, **found})
    set_num_threads(1)
    whole_us, prepared_us = host_time(library)
    print(
        f"\nhost time of a call: {whole_us - prepared_us:.1f} us ({whole_us:.1f} us in all,"
        f" {prepared_us:.1f} us of them the C call with everything prepared; one query, one key,"
        f" one thread; best of 5 times {HOST_CALLS} calls; the output's allocation is in it)"
    )
    if a.json:
        record = {"rows": rows, "whole_us": whole_us, "c_call_us": prepared_us}
        a.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0
