"""The command line: captures, runs PISA on them, measures, and reports."""

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from . import ArgumentError, EvaluationError

# Always selected in the default setting: the first block, the current one, the one before it.
FORCED = 3
LEAF_ATOMS = 4
DEFAULT_TOKENS, DEFAULT_SYNTHETIC_TOKENS = 8192, 4096


def parse(argv: list[str]) -> argparse.Namespace:
    """The checked arguments with all defaults; raises ArgumentError, or exits as argparse does."""
    parser = argparse.ArgumentParser(
        prog="python -m pisa.evaluation",
        description="Runs PISA on the attention of SmolLM2-135M reading source code"
        " and compares it with dense attention.",
    )
    add = parser.add_argument
    add(
        "--synthetic",
        action="store_true",
        help="seeded made-up tensors instead of the model's; a layer is then a seed",
    )
    add(
        "--model",
        type=Path,
        metavar="FILE",
        help="another GGUF file of the same architecture and tokeniser",
    )
    add(
        "--tokens",
        type=int,
        help=f"length of the text (default {DEFAULT_TOKENS}; made up: {DEFAULT_SYNTHETIC_TOKENS})",
    )
    add(
        "--layers",
        default="2,15,28",
        help="layers to capture, from 0, with commas (default %(default)s)",
    )
    add("--topk", type=int, default=16, help="blocks that a query attends to (default %(default)s)")
    add("--block-size", type=int, default=64, help="keys a block (default %(default)s)")
    add(
        "--fanout", type=int, default=2, help="children a node of the pyramid (default %(default)s)"
    )
    add(
        "--beam",
        type=int,
        help="nodes kept a level in the second setting (default 4 topk; in the first, topk)",
    )
    add(
        "--rerank",
        type=int,
        help="blocks scored exactly in the second setting (default 2 topk; in the first, all)",
    )
    add(
        "--threads",
        type=int,
        default=os.cpu_count() or 1,
        help="threads of everything (default %(default)s)",
    )
    add("--repeat", type=int, default=5, help="timed runs (default %(default)s)")
    add(
        "--runner",
        type=Path,
        metavar="FILE",
        help="pisa-runner (default: build/bin of the checkout, or on PATH)",
    )
    add(
        "--cache-dir",
        type=Path,
        metavar="DIR",
        help="where captures are kept (default $XDG_CACHE_HOME/pisa or ~/.cache/pisa)",
    )
    add("--capture-only", action="store_true", help="stop when the captures are in the cache")
    add("--json-out", type=Path, metavar="FILE", help="write all numbers here")
    add(
        "--picture",
        type=Path,
        metavar="FILE",
        default=Path("pisa-selection.png"),
        help="(default %(default)s)",
    )
    add("--no-picture", action="store_true", help="draw none")
    add(
        "--picture-layer",
        type=int,
        metavar="LAYER",
        help="layer of the picture (default: the middle one)",
    )
    add(
        "--picture-head",
        type=int,
        metavar="HEAD",
        default=0,
        help="kv head of the picture (default %(default)s)",
    )
    arguments = parser.parse_args(argv)
    check(arguments)
    return arguments


def check(arguments: argparse.Namespace) -> None:
    """Fills in the defaults that depend on others; raises ArgumentError for what is not allowed."""

    def require(flag: str, holds: bool, allowed: str) -> None:
        if not holds:
            value = getattr(arguments, flag.replace("-", "_"))
            raise ArgumentError(f"--{flag}={value}: must be {allowed}")

    if arguments.tokens is None:
        arguments.tokens = DEFAULT_SYNTHETIC_TOKENS if arguments.synthetic else DEFAULT_TOKENS
    require("topk", arguments.topk >= FORCED, f"at least {FORCED}, the number of forced blocks")
    require("block-size", arguments.block_size >= 1, "at least 1")
    require("fanout", arguments.fanout >= 2, "at least 2")
    if arguments.beam is None:
        arguments.beam = 4 * arguments.topk
    require("beam", arguments.beam >= arguments.topk, f"at least topk, {arguments.topk}")
    if arguments.rerank is None:
        arguments.rerank = 2 * arguments.topk
    most = arguments.fanout * arguments.beam
    require(
        "rerank",
        arguments.rerank == 0 or arguments.topk <= arguments.rerank <= most,
        f"0, or from topk to fanout * beam, {arguments.topk} to {most}",
    )
    require(
        "block-size",
        arguments.block_size % LEAF_ATOMS == 0,
        f"a multiple of {LEAF_ATOMS}, the sub-blocks of the pre-score",
    )
    least = arguments.topk * arguments.block_size
    require(
        "tokens",
        arguments.tokens > least,
        f"more than topk * block-size, {least}; otherwise every query selects every block",
    )
    require("threads", arguments.threads >= 1, "at least 1")
    require("repeat", arguments.repeat >= 1, "at least 1")
    try:
        layers = [int(part) for part in arguments.layers.split(",")]
    except ValueError:
        layers = []
    require(
        "layers",
        bool(layers) and min(layers) >= 0 and len(set(layers)) == len(layers),
        "distinct numbers from 0 with commas between them, such as 2,15,28",
    )
    arguments.layers = layers
    if arguments.picture_layer is None:
        arguments.picture_layer = layers[len(layers) // 2]
    require("picture-layer", arguments.picture_layer in layers, f"one of --layers, {layers}")
    require("picture-head", arguments.picture_head >= 0, "at least 0")
    for flag in ("picture", "json-out"):
        path = getattr(arguments, flag.replace("-", "_"))
        require(flag, path is None or path.resolve().parent.is_dir(), "in a folder that exists")


def require_modules(arguments: argparse.Namespace) -> None:
    """Raises EvaluationError if a Python package that this run needs is not installed."""
    needed = ["numpy", "threadpoolctl"]
    needed += [] if arguments.synthetic else ["gguf", "tokenizers"]
    needed += [] if arguments.no_picture else ["matplotlib"]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise EvaluationError(
            f"not installed: {', '.join(missing)};"
            " run `pip install -r python/requirements-evaluation.txt`"
        )


def time_dense(paths, threads: int, repeat: int) -> float:
    """Milliseconds of dense attention in numpy, in a process of its own."""
    environment = dict(os.environ)
    # These force a BLAS kernel chosen for something else; the baseline shall be as fast as this
    # machine allows.
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        environment.pop(name, None)
    root = str(Path(__file__).resolve().parents[2])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "pisa.evaluation.dense", *map(str, paths)]
    command += [f"--threads={threads}", f"--repeat={repeat}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise EvaluationError(f"timing dense attention in numpy failed:\n{done.stderr.strip()}")
    return json.loads(done.stdout)["ms"]


def evaluate_layer(layer: int, paths, runner: Path, arguments: argparse.Namespace):
    """A layer's LayerReport, and its mass and first selection, [Hkv, T, N] both."""
    import numpy as np

    from . import metrics
    from .dense import dense_reference
    from .report import LayerReport, Row
    from .runner import Setting, run_attention

    def progress(message: str) -> None:
        print(f"layer {layer}: {message}", file=sys.stderr)

    topk, block_size, fanout = arguments.topk, arguments.block_size, arguments.fanout
    threads, repeat = arguments.threads, arguments.repeat
    q, k, v = (np.load(path)[0] for path in paths)
    blocks = -(-arguments.tokens // block_size)
    progress("dense reference")
    reference = dense_reference(q, k, v, block_size, threads)
    mass = metrics.attention_mass(reference, len(k))

    def quality(selected: np.ndarray) -> metrics.Quality:
        return metrics.quality(selected, mass, topk, block_size)

    pisa, masks = [], []
    with tempfile.TemporaryDirectory(prefix="pisa-evaluation-") as name:
        folder = Path(name)
        for title, setting in (
            (f"W={topk}", Setting(topk, block_size, fanout)),
            (
                f"W={arguments.beam} R={arguments.rerank}",
                Setting(topk, block_size, fanout, arguments.beam, arguments.rerank),
            ),
        ):
            progress(f"PISA, {title}")
            result = run_attention(runner, paths, setting, threads, repeat, folder)
            selected = metrics.selected_mask(result.indices, blocks)
            error_l2, error_max = metrics.relative_error(result.out, reference.out)
            checked = metrics.check_rows(
                q, k, v, result.indices, result.out, result.lse, block_size
            )
            masks.append(selected)
            pisa.append(
                Row(
                    title,
                    quality(selected),
                    setting,
                    error_l2,
                    error_max,
                    result.phases,
                    result.scratch,
                    result.peak_rss,
                    checked,
                )
            )
        progress("dense, in the JIT")
        every = Setting(blocks, block_size, fanout)
        result = run_attention(runner, paths, every, threads, repeat, folder)
    error_l2, error_max = metrics.relative_error(result.out, reference.out)
    dense = [
        Row(
            "dense JIT",
            setting=every,
            error_l2=error_l2,
            error_max=error_max,
            phases={"attention": result.phases["attention"]},
            scratch=result.scratch,
            peak_rss=result.peak_rss,
        )
    ]
    progress("dense, in numpy")
    dense.append(Row("dense BLAS", phases={"attention": time_dense(paths, threads, repeat)}))
    exact = metrics.exact_selection(reference, len(k), topk, block_size)
    best = metrics.best_mask(mass, topk, block_size)
    bounds = [Row("exact", quality(exact)), Row("best", quality(best))]
    return LayerReport(layer, pisa, bounds, dense), mass, masks[0]


def run(arguments: argparse.Namespace) -> int:
    """The whole program after the arguments are parsed; returns the exit code."""
    require_modules(arguments)
    import numpy as np

    from .capture import capture_model, capture_synthetic, default_cache_dir
    from .report import Report, as_json, summary, table
    from .runner import find_runner

    # Before the captures, which take minutes.
    runner = None if arguments.capture_only else find_runner(arguments.runner)
    cache = arguments.cache_dir or default_cache_dir()
    if arguments.synthetic:
        captures = capture_synthetic(cache, arguments.tokens, arguments.layers)
    else:
        captures = capture_model(
            cache, arguments.model, arguments.tokens, arguments.layers, arguments.threads
        )
    facts = captures.facts
    if not arguments.synthetic:
        print(
            f"{facts['source']}: {facts['tokens']} tokens of the standard library"
            f" (hash {facts['tokens_sha256'][:12]}),"
            f" perplexity {facts['perplexity']:.2f} on the last {facts['perplexity_tokens']}"
        )
    else:
        print(f"made-up tensors, {facts['tokens']} tokens; a layer is a seed")
    if runner is None:
        return 0
    heads, kv_heads = (
        np.load(path, mmap_mode="r").shape[1] for path in captures.paths[arguments.layers[0]][:2]
    )
    if arguments.picture_head >= kv_heads:
        raise ArgumentError(
            f"--picture-head={arguments.picture_head}: must be less than {kv_heads},"
            " the number of kv heads"
        )
    print(
        f"{heads} query heads, {kv_heads} kv heads; K={arguments.topk},"
        f" C={arguments.block_size}, g={arguments.fanout}; float32, {arguments.threads} threads\n"
    )
    facts = facts | {
        "threads": arguments.threads,
        "repeat": arguments.repeat,
        "processor": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    report = Report(arguments.topk, facts)
    for layer in arguments.layers:
        entry, mass, selected = evaluate_layer(layer, captures.paths[layer], runner, arguments)
        report.layers.append(entry)
        if layer == arguments.picture_layer and not arguments.no_picture:
            draw_picture(arguments, entry, mass, selected)
    print(table(report))
    print()
    print(summary(report))
    if arguments.json_out is not None:
        try:
            arguments.json_out.write_text(json.dumps(as_json(report), indent=1) + "\n")
        except OSError as error:
            raise ArgumentError(
                f"--json-out={arguments.json_out}: cannot be written: {error.strerror}"
            ) from error
    if not report.passed:
        raise EvaluationError(
            "an output of pisa-runner differs from float64 attention over the same blocks"
            " by more than rounding"
        )
    return 0


def draw_picture(arguments: argparse.Namespace, entry, mass, selected) -> None:
    """Draws the chosen head; mass and selected are [Hkv, T, N]."""
    from . import metrics
    from .picture import draw

    head = slice(arguments.picture_head, arguments.picture_head + 1)
    found = metrics.quality(selected[head], mass[head], arguments.topk, arguments.block_size)
    draw(
        arguments.picture,
        mass[head][0],
        selected[head][0],
        arguments.block_size,
        arguments.topk,
        f"{'Made-up tensors, seed' if arguments.synthetic else 'Layer'} {entry.layer},"
        f" kv head {arguments.picture_head}, K = {arguments.topk} blocks ({entry.pisa[0].name}):"
        f" recall {found.recall:.3f}, mass {found.mass:.4f}",
    )
    print(f"picture: {arguments.picture}", file=sys.stderr)


def main(argv: list[str]) -> int:
    """Runs the program; 0: success, 1: something missing or wrong, 2: an argument, 130: ^C."""
    try:
        return run(parse(argv))
    except ArgumentError as error:
        print(f"pisa.evaluation: error: {error}", file=sys.stderr)
        return 2
    except EvaluationError as error:
        print(f"pisa.evaluation: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
