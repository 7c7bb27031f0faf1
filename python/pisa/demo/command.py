"""The command line of the demo: reads the model, runs every setting, and reports."""

import argparse
import hashlib
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from ..evaluation import ArgumentError, EvaluationError
from . import require_modules

# Always selected: the first block, the query's own and the one before it.
FORCED = 3

# Tokens that count in the perplexity, at the end of a text.
COUNTED = 1024

# The shortest text that has a block to choose with the least K.
LEAST_TOKENS = 512

METHOD_KEYS = ("pisa", "pisa-wide", "mean")

# Sizes of a run; each can be set on its own.
QUICK: dict[str, Any] = {
    "lengths": [2048],
    "topk": [8, 16],
    "methods": ["pisa", "mean"],
    "windows": 1,
    "needle_topk": [8],
    "depths": [0.1, 0.5, 0.9],
    "texts": 2,
}
FULL: dict[str, Any] = {
    "lengths": [2048, 4096, 8192],
    "topk": [4, 8, 16, 32],
    "methods": ["pisa", "pisa-wide", "mean"],
    "windows": 1,
    "needle_topk": [8, 16],
    "depths": [0.1, 0.3, 0.5, 0.7, 0.9],
    "texts": 3,
}


def _list_of(kind: type, text: str) -> list[Any]:
    """`text` at its commas, each part as `kind`."""
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r}: must be {'numbers' if kind is not str else 'words'} with commas between"
        ) from error


def integers(text: str) -> list[int]:
    """Integers with commas between them."""
    return _list_of(int, text)


def fractions(text: str) -> list[float]:
    """Numbers with commas between them."""
    return _list_of(float, text)


def words(text: str) -> list[str]:
    """Words with commas between them."""
    return _list_of(str, text)


def parse(argv: list[str]) -> argparse.Namespace:
    """The checked arguments with all defaults; raises ArgumentError, or exits as argparse does."""

    def joined(name: str) -> str:
        texts = [
            ",".join(map(str, size[name])) if isinstance(size[name], list) else str(size[name])
            for size in (QUICK, FULL)
        ]
        return f"(default {texts[0]}; with --full {texts[1]})"

    parser = argparse.ArgumentParser(
        prog="python -m pisa.demo",
        description="SmolLM2-135M reads source code with dense attention, with PISA, and with a"
        " search of one level: perplexity, time of the prefill, and constants recalled.",
    )
    add = parser.add_argument
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a few minutes on two cores (default)")
    size.add_argument("--full", action="store_true", help="all lengths, K and methods")
    add("--lengths", type=integers, metavar="N,..", help=f"tokens of a text {joined('lengths')}")
    add("--topk", type=integers, metavar="K,..", help=f"blocks a query attends to {joined('topk')}")
    add(
        "--methods",
        type=words,
        metavar="NAME,..",
        help=f"beside dense, of {', '.join(METHOD_KEYS)} {joined('methods')}",
    )
    add("--windows", type=int, help=f"texts a length for the perplexity {joined('windows')}")
    add(
        "--needle-topk",
        type=integers,
        metavar="K,..",
        help=f"K of the needle test {joined('needle_topk')}",
    )
    add(
        "--depths",
        type=fractions,
        metavar="X,..",
        help=f"where constants stand, from 0 to 1 {joined('depths')}",
    )
    add("--texts", type=int, help=f"texts a length for the needle test, 0: none {joined('texts')}")
    add("--seed", type=int, default=0, help="of the needle test (default %(default)s)")
    add(
        "--threads",
        type=int,
        default=os.cpu_count() or 1,
        help="threads of everything (default %(default)s)",
    )
    add("--model", type=Path, metavar="PATH", help="a GGUF file, or a folder that --save wrote")
    add(
        "--save",
        type=Path,
        metavar="DIR",
        help="only write the model, its tokeniser and the text there, for --model elsewhere",
    )
    add(
        "--save-dtype",
        choices=("float32", "bfloat16"),
        default="float32",
        help="type of the weights that --save writes (default %(default)s, the same numbers)",
    )
    add(
        "--output",
        type=Path,
        metavar="DIR",
        default=Path("pisa-demo"),
        help="folder of the table, the numbers and the plots (default %(default)s)",
    )
    arguments = parser.parse_args(argv)
    for name, value in (FULL if arguments.full else QUICK).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    check(arguments)
    return arguments


def check(arguments: argparse.Namespace) -> None:
    """Raises ArgumentError for what is not allowed."""
    from .needles import NAMES

    def require(flag: str, holds: bool, allowed: str) -> None:
        if not holds:
            value = getattr(arguments, flag.replace("-", "_"))
            if isinstance(value, list):
                value = ",".join(map(str, value))
            raise ArgumentError(f"--{flag}={value}: must be {allowed}")

    def distinct(values: list[Any]) -> bool:
        return len(set(values)) == len(values)

    lengths, depths = arguments.lengths, arguments.depths
    require(
        "lengths",
        distinct(lengths) and min(lengths) >= LEAST_TOKENS,
        f"distinct, each at least {LEAST_TOKENS}",
    )
    for flag in ("topk", "needle-topk"):
        values = getattr(arguments, flag.replace("-", "_"))
        require(
            flag,
            distinct(values) and min(values) >= FORCED,
            f"distinct, each at least {FORCED}, the number of forced blocks",
        )
    require(
        "methods",
        distinct(arguments.methods) and set(arguments.methods) <= set(METHOD_KEYS),
        f"distinct, of {', '.join(METHOD_KEYS)}",
    )
    require(
        "depths",
        distinct(depths) and 0 <= min(depths) and max(depths) <= 1 and len(depths) <= len(NAMES),
        f"distinct, each from 0 to 1, at most {len(NAMES)} of them",
    )
    require("windows", arguments.windows >= 1, "at least 1")
    require("texts", arguments.texts >= 0, "at least 0")
    require("seed", arguments.seed >= 0, "at least 0")
    require("threads", arguments.threads >= 1, "at least 1")
    arguments.lengths, arguments.depths = sorted(lengths), sorted(depths)


def progress(message: str) -> None:
    """A line on stderr."""
    print(message, file=sys.stderr, flush=True)


def run(arguments: argparse.Namespace) -> int:
    """The whole program after the arguments are parsed; returns the exit code."""
    require_modules("torch", "transformers", "tokenizers", "matplotlib")
    import torch
    import transformers

    import pisa

    from . import methods
    from .language_model import load, save
    from .needles import DIGITS
    from .report import Results, as_json, markdown
    from .single_level import BLOCK_SIZE

    torch.set_num_threads(arguments.threads)
    progress("reading the model")
    model = load(arguments.model)
    if arguments.save is not None:
        save(model, arguments.save, getattr(torch, arguments.save_dtype))
        progress(f"saved: {arguments.save}")
        return 0
    pisa.set_num_threads(arguments.threads)
    most = min(model.context, len(model.text) // arguments.windows)
    if arguments.lengths[-1] > most:
        raise ArgumentError(
            f"--lengths={arguments.lengths[-1]}: must be at most {most}; the model's context is"
            f" {model.context} tokens, and the text has {len(model.text)} for"
            f" {arguments.windows} window(s)"
        )
    try:
        arguments.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(
            f"--output={arguments.output}: cannot be made: {error.strerror}"
        ) from error
    methods.register()
    results = Results(
        facts={
            "model": model.name,
            "text_tokens": len(model.text),
            "text_sha256": hashlib.sha256(model.text.astype("<i4").tobytes()).hexdigest(),
            "block_size": BLOCK_SIZE,
            "windows": arguments.windows,
            "texts": arguments.texts,
            "digits": DIGITS,
            "seed": arguments.seed,
            "threads": arguments.threads,
            "processor": platform.machine(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "pisa": pisa.__version__,
        },
        counted=min(COUNTED, arguments.lengths[0] // 2),
    )
    begin = time.monotonic()
    read_texts(model, arguments, results)
    if arguments.texts:
        recall_constants(model, arguments, results)
    progress(f"measured in {time.monotonic() - begin:.0f} s")
    text = markdown(results)
    print(text)
    try:
        (arguments.output / "demo.md").write_text(text, encoding="utf-8")
        (arguments.output / "demo.json").write_text(json.dumps(as_json(results), indent=1) + "\n")
    except OSError as error:
        raise ArgumentError(
            f"--output={arguments.output}: cannot be written: {error.strerror}"
        ) from error
    draw(results, arguments.output)
    return 0


def read_texts(model: Any, arguments: argparse.Namespace, results: Any) -> None:
    """Adds the readings: every length, window and setting, each in one prefill."""
    import torch

    from .methods import log_likelihood, prefill, settings
    from .report import Reading

    for tokens in arguments.lengths:
        for setting in settings(arguments.methods, arguments.topk):
            for window in range(arguments.windows):
                ids = torch.from_numpy(model.text[window * tokens : (window + 1) * tokens].copy())
                done = prefill(model.network, ids, setting)
                scores, _ = log_likelihood(
                    model.network, done.hidden, ids, tokens - results.counted, tokens
                )
                loss = -float(scores.double().mean())
                results.readings.append(
                    Reading(setting, tokens, loss, done.seconds, done.attention_seconds)
                )
                progress(
                    f"{tokens} tokens, {setting.title}: loss {loss:.4f},"
                    f" {done.seconds:.1f} s, attention {done.attention_seconds:.1f} s"
                )


def recall_constants(model: Any, arguments: argparse.Namespace, results: Any) -> None:
    """Adds the recalls: every length, text and setting, all depths in one prefill."""
    import numpy as np
    import torch

    from .methods import log_likelihood, prefill, settings
    from .needles import DIGITS, build_haystack
    from .report import Recall

    for tokens in arguments.lengths:
        for text in range(arguments.texts):
            rng = np.random.default_rng([arguments.seed, tokens, text])
            haystack = build_haystack(model, tokens, arguments.depths, rng)
            ids = torch.from_numpy(haystack.tokens)
            for setting in settings(arguments.methods, arguments.needle_topk):
                hidden = prefill(model.network, ids, setting).hidden
                count = 0
                for depth, answer in zip(arguments.depths, haystack.answers, strict=True):
                    scores, right = log_likelihood(
                        model.network, hidden, ids, answer, answer + DIGITS
                    )
                    found = bool(right.all())
                    count += found
                    results.recalls.append(
                        Recall(setting, tokens, depth, text, found, float(scores.mean()))
                    )
                progress(
                    f"{tokens} tokens, constants, text {text + 1}, {setting.title}:"
                    f" {count} of {len(haystack.answers)}"
                )


def draw(results: Any, folder: Path) -> None:
    """Writes the plots."""
    from .plots import draw_needles, draw_perplexity, draw_time

    draw_perplexity(results, folder / "perplexity.png")
    draw_time(results, folder / "time.png")
    if results.recalls:
        draw_needles(results, folder / "needles.png")
    progress(f"written: {folder}")


def main(argv: list[str]) -> int:
    """Runs the program; 0: success, 1: something missing or wrong, 2: an argument, 130: ^C."""
    try:
        return run(parse(argv))
    except ArgumentError as error:
        print(f"pisa.demo: error: {error}", file=sys.stderr)
        return 2
    except EvaluationError as error:
        print(f"pisa.demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
