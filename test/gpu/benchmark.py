"""Times of attention on a GPU, beside dense attention and hand-written kernels of the same method.

    python test/gpu/benchmark.py [--lengths 4,32,128] [--heads 32/8,64/4] [--queries smooth,iid]
                                 [--baseline DIR] [--check] [--json FILE]

bf16, D = 128, K = 16, C = 64, causal, batch 1, random normal keys and values; smooth: runs of 64
queries with cosine about 0.9; iid: independent queries. Milliseconds, medians of 7 runs between
CUDA events after one that does not count, everything included. DIR holds triton_pisa.py and
bench.py. The times of the kernels come from PyTorch's profiler. What fails is a dash and a note.
"""

import argparse
import datetime
import gc
import json
import random
import statistics
import sys
from pathlib import Path

import pisa
import torch

DIM, TOPK, BLOCK, RUNS = 128, 16, 64, 7
COLUMNS = (
    "heads", "N", "queries", "U8", "pisa", "Triton", "dense", "linear selection",
    "Triton / pisa", "dense / pisa",
)  # fmt: skip
# What the baseline's selection by block means is tried with; the best counts.
LINEAR_TILES = ((16, 64), (32, 64), (64, 64), (32, 128))


def make_qkv(tokens, heads, kv_heads, kind, device="cuda", seed=0):
    """q [1, N, Hq, D], k and v [1, N, Hkv, D] in bf16; the baseline's, number for number."""
    generator = torch.Generator(device=device).manual_seed(seed)

    def normal(*sizes):
        return torch.randn(*sizes, device=device, generator=generator)

    k, v = (normal(1, tokens, kv_heads, DIM).bfloat16() for _ in range(2))
    q = normal(1, tokens, heads, DIM)
    if kind == "smooth":
        shared = 0.95 * normal(1, tokens // 64, 1, heads, DIM)
        q = (shared + 0.31 * q.view(1, tokens // 64, 64, heads, DIM)).view(1, tokens, heads, DIM)
    return q.bfloat16(), k, v


def mean_union(indices, queries=8):
    """Mean number of distinct blocks in lists of adjacent queries, of indices [1, Hkv, N, K]."""
    total = count = 0
    for head in indices[0]:
        tiles = head[: head.shape[0] // queries * queries].reshape(-1, queries * head.shape[1])
        tiles = tiles.sort(-1).values
        first = tiles >= 0
        first[:, 1:] &= tiles[:, 1:] != tiles[:, :-1]
        total, count = total + int(first.sum()), count + len(tiles)
    return total / max(count, 1)


def largest_error(q, k, v, out, indices, tokens=32):
    """The largest difference from float64 over the chosen blocks, at random tokens and the last."""
    length, heads, kv_heads = q.shape[1], q.shape[2], k.shape[2]
    group = heads // kv_heads
    chosen = [*random.Random(0).sample(range(length - 1), min(tokens, length) - 1), length - 1]
    worst = torch.zeros((), dtype=torch.float64, device=q.device)
    for token in chosen:
        for kv in range(kv_heads):
            blocks = indices[0, kv, token].long()
            offsets = torch.arange(BLOCK, device=q.device)
            position = (blocks[blocks >= 0][:, None] * BLOCK + offsets).flatten()
            position = position[position <= token]
            of_group = slice(kv * group, (kv + 1) * group)
            scores = q[0, token, of_group].double() @ k[0, position, kv].double().T / DIM**0.5
            expected = torch.softmax(scores, -1) @ v[0, position, kv].double()
            # Unlike max of Python, this keeps a NaN.
            worst = torch.maximum(worst, (out[0, token, of_group].double() - expected).abs().max())
    return float(worst)


def time_ms(function):
    """Median milliseconds of RUNS runs between CUDA events, after one that does not count."""
    function()
    torch.cuda.synchronize()
    pairs = []
    for _ in range(RUNS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in pairs)


def group_events(events, runs):
    """[(name, milliseconds of a run)] in order of first launch, of (name, start, microseconds)."""
    totals = {}
    for name, _, microseconds in sorted(events, key=lambda event: event[1]):
        totals[name] = totals.get(name, 0.0) + microseconds
    return [(name, total / runs / 1e3) for name, total in totals.items()]


def kernel_times(function, runs=3):
    """As group_events, of what the profiler sees on the device; empty where it sees nothing."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    function()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(runs):
            function()
        torch.cuda.synchronize()
    return group_events(
        [
            (event.name, event.time_range.start, event.time_range.elapsed_us())
            for event in profiler.events()
            if event.device_type == DeviceType.CUDA
        ],
        runs,
    )


class Notes:
    """What went wrong where a table has a dash."""

    def __init__(self):
        self.lines = []

    def attempt(self, what, function):
        """The result of the function, or None and a note. Other libraries' idle memory is freed
        first: they do not share one allocator."""
        try:
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            return function()
        except Exception as error:  # one column must not hide the others
            text = " ".join(str(error).split())[:200]
            self.lines.append(f"{what}: {type(error).__name__}: {text}")
            print(self.lines[-1], file=sys.stderr, flush=True)
            return None

    def best(self, what, functions):
        """The least of the results that there are."""
        found = [self.attempt(f"{what} {name}", function) for name, function in functions]
        return min((x for x in found if x is not None), default=None)


def time_dense(notes, where, bench, q, k, v):
    return notes.attempt(f"{where}: dense", lambda: time_ms(lambda: bench.dense(q, k, v)))


def time_linear(notes, where, triton_pisa, q, k):
    """Selection at one level by the dot product of the summed queries and the means of blocks."""

    def means():
        pyramid = triton_pisa.pyramid(k)[0]
        return pyramid[0, :, : k.shape[1] // BLOCK].contiguous()

    blocks = notes.attempt(f"{where}: block means", means)
    if blocks is None:
        return None

    def with_tile(rows, columns):
        return lambda: time_ms(
            lambda: triton_pisa.bsa_fused(q, blocks, TOPK, 0, BM=rows, BN=columns)
        )

    return notes.best(f"{where}: linear", [(f"{t}", with_tile(*t)) for t in LINEAR_TILES])


def time_triton(notes, where, triton_pisa, q, k, v):
    """{pyramid, route, attention}: the best that there is for each."""
    made = notes.attempt(f"{where}: Triton pyramid", lambda: triton_pisa.pyramid(k))
    if made is None:
        return {}
    pyramid, levels, _ = made

    def by_token():
        return triton_pisa.route_v1(q, k, pyramid, levels, TOPK, rank=True, warps=2)

    def by_tile():
        return triton_pisa.route_v2(q, k, pyramid, levels, TOPK)

    times = {
        "pyramid": notes.attempt(
            f"{where}: Triton pyramid", lambda: time_ms(lambda: triton_pisa.pyramid(k))
        ),
        "route": notes.best(
            f"{where}: Triton route",
            [("by token", lambda: time_ms(by_token)), ("by tile", lambda: time_ms(by_tile))],
        ),
    }
    indices = notes.attempt(f"{where}: Triton route", by_token)
    if indices is not None:
        times["attention"] = notes.best(
            f"{where}: Triton attention",
            [
                ("by token", lambda: time_ms(
                    lambda: triton_pisa.attn_tok(q, k, v, indices, warps=1, stages=2))),
                ("by tile", lambda: time_ms(lambda: triton_pisa.attn_tile(q, k, v, indices))),
            ],
        )  # fmt: skip
    return times


def measure(tokens, heads, kv_heads, kind, arguments, baseline, notes, known):
    """The numbers of one row. `known` keeps what does not depend on the queries."""
    where = f"{heads}/{kv_heads} {length_name(tokens)} {kind}"
    row = dict(heads=f"{heads}/{kv_heads}", tokens=tokens, queries=kind)
    inputs = notes.attempt(f"{where}: inputs", lambda: make_qkv(tokens, heads, kv_heads, kind))
    if inputs is None:
        return row
    q, k, v = inputs

    def chosen():
        out, indices = pisa.attention(q, k, v, topk=TOPK, block_size=BLOCK, return_indices=True)
        error = largest_error(q, k, v, out, indices) if arguments.check else None
        return mean_union(indices), error

    row["union"], row["error"] = notes.attempt(f"{where}: indices", chosen) or (None, None)
    row["pisa"] = notes.attempt(
        f"{where}: pisa",
        lambda: time_ms(lambda: pisa.attention(q, k, v, topk=TOPK, block_size=BLOCK)),
    )
    if baseline:
        bench, triton_pisa = baseline
        shape = (tokens, heads, kv_heads)
        if shape not in known:
            known[shape] = (
                time_dense(notes, where, bench, q, k, v),
                time_linear(notes, where, triton_pisa, q, k),
            )
        row["dense"], row["linear"] = known[shape]
        row["triton_parts"] = time_triton(notes, where, triton_pisa, q, k, v)
        parts = [row["triton_parts"].get(part) for part in ("pyramid", "route", "attention")]
        row["triton"] = None if None in parts else sum(parts)
    return row


def measure_kernels(row, notes):
    """The times of a row's kernels. Not before all rows are timed: the profiler, once used, may
    slow launches down."""
    where = f"{row['heads']} {length_name(row['tokens'])} {row['queries']}: kernels"

    def kernels():
        heads, kv_heads = map(int, row["heads"].split("/"))
        q, k, v = make_qkv(row["tokens"], heads, kv_heads, row["queries"])
        return kernel_times(lambda: pisa.attention(q, k, v, topk=TOPK, block_size=BLOCK))

    found = notes.attempt(where, kernels)
    if found == []:
        notes.lines.append(f"{where}: the profiler saw none")
    row["kernels"] = found or []


def milliseconds(x):
    return "-" if x is None else f"{x:.1f}" if x >= 9.995 else f"{x:.2f}"


def ratio(x, y):
    return "-" if x is None or y is None else f"{x / y:.2f}"


def length_name(tokens):
    return f"{tokens // 1024}K" if tokens % 1024 == 0 else str(tokens)


def line(cells):
    return "| " + " | ".join(cells) + " |"


def header(names):
    return line(names) + "\n" + "|---" * len(names) + "|"


def times_line(row):
    """A row of the first table."""
    union, pisa_ms, triton, dense = (row.get(n) for n in ("union", "pisa", "triton", "dense"))
    return line(
        [
            row["heads"], length_name(row["tokens"]), row["queries"],
            "-" if union is None else f"{union:.0f}",
            *map(milliseconds, (pisa_ms, triton, dense, row.get("linear"))),
            ratio(triton, pisa_ms), ratio(dense, pisa_ms),
        ]
    )  # fmt: skip


def kernel_tables(rows):
    """The times of kernels, a table for all rows with the same kernels."""
    tables = {}
    for row in rows:
        if row.get("kernels"):
            tables.setdefault(tuple(name for name, _ in row["kernels"]), []).append(row)
    texts = []
    for names, of_table in tables.items():
        text = [header(["heads", "N", "queries", *names, "sum"])]
        for row in of_table:
            times = [time for _, time in row["kernels"]]
            text.append(
                line([row["heads"], length_name(row["tokens"]), row["queries"],
                      *map(milliseconds, times), milliseconds(sum(times))])
            )  # fmt: skip
        texts.append("\n".join(text))
    return "\n\n".join(texts)


def lengths(text):
    try:
        return [int(float(part) * 1024) // BLOCK * BLOCK for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: expected numbers with commas") from error


def head_pairs(text):
    try:
        pairs = [tuple(map(int, part.split("/"))) for part in text.split(",")]
        if all(len(pair) == 2 and pair[0] % pair[1] == 0 for pair in pairs):
            return pairs
    except (ValueError, ZeroDivisionError):
        pass
    raise argparse.ArgumentTypeError(f"{text!r}: expected query heads/kv heads with commas")


def kinds(text):
    parts = text.split(",")
    if not set(parts) <= {"smooth", "iid"}:
        raise argparse.ArgumentTypeError(f"{text!r}: expected smooth or iid with commas")
    return parts


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--lengths", type=lengths, default=lengths("4,8,16,32,64,128,256"), metavar="N,..",
        help="tokens / 1024 (4,8,16,32,64,128,256)")  # fmt: skip
    add("--heads", type=head_pairs, default=head_pairs("32/8,64/4,16/16,64/8"), metavar="Q/KV,..",
        help="query heads/kv heads (32/8,64/4,16/16,64/8)")  # fmt: skip
    add("--queries", type=kinds, default=["smooth", "iid"], help="smooth, iid or both (both)")
    add("--baseline", type=Path, metavar="DIR", help="folder of triton_pisa.py and bench.py")
    add("--check", action="store_true", help="compare outputs with float64 at 32 tokens")
    add("--json", type=Path, metavar="FILE", help="also write all numbers there")
    return parser.parse_args(arguments)


def main():
    arguments = parse()
    if not torch.cuda.is_available():
        print("expected a CUDA device", file=sys.stderr)
        return 2
    machine = dict(
        device=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda,
        date=datetime.date.today().isoformat(), command=" ".join(sys.argv),
    )  # fmt: skip
    print(", ".join(f"{name} {value}" for name, value in machine.items()), end="\n\n")
    baseline = None
    if arguments.baseline:
        sys.path.insert(0, str(arguments.baseline.resolve()))
        import bench
        import triton_pisa

        baseline = bench, triton_pisa
    notes, known, rows = Notes(), {}, []

    def save():  # after every row: a run may be cut short
        if arguments.json:
            whole = dict(machine=machine, rows=rows, notes=notes.lines)
            arguments.json.write_text(json.dumps(whole, indent=1) + "\n")

    print(header(COLUMNS), flush=True)
    for heads, kv_heads in arguments.heads:
        for tokens in arguments.lengths:
            for kind in arguments.queries:
                row = measure(tokens, heads, kv_heads, kind, arguments, baseline, notes, known)
                rows.append(row)
                print(times_line(row), flush=True)
                save()
    for row in rows:
        if row.get("pisa") is not None:
            measure_kernels(row, notes)
            save()
    tables = kernel_tables(rows)
    if tables:
        print("\nMilliseconds of each kernel, in order of launch:\n\n" + tables)
    if notes.lines:
        print("\n" + "\n".join(f"- {note}" for note in notes.lines))
    good = all(row.get("pisa") is not None for row in rows)
    if arguments.check:
        errors = [row.get("error") for row in rows]
        known_errors = [x for x in errors if x is not None]
        worst = next((x for x in known_errors if x != x), max(known_errors, default=float("nan")))
        print(f"\nlargest error at 32 tokens of each row: {worst:.1e}")
        good &= None not in errors and worst < 0.02
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
