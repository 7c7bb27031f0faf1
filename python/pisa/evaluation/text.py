"""The text that the model reads, source code of Python's standard library, and the model's
tokeniser."""

import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from . import EvaluationError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Short modules first, so that the default length covers several; the order is fixed and the
# versions of Python differ little in these files. Longer texts go on into the larger ones.
MODULES = (
    "abc.py",
    "asyncio/queues.py",
    "asyncio/timeouts.py",
    "bisect.py",
    "copy.py",
    "fnmatch.py",
    "glob.py",
    "graphlib.py",
    "heapq.py",
    "json/decoder.py",
    "json/encoder.py",
    "numbers.py",
    "queue.py",
    "reprlib.py",
    "sched.py",
    "shlex.py",
    "string.py",
    "textwrap.py",
    "types.py",
    "weakref.py",
    "argparse.py",
    "ast.py",
    "collections/__init__.py",
    "contextlib.py",
    "dataclasses.py",
    "functools.py",
)


def source_text() -> str:
    """The modules of `MODULES`, one after the other; EvaluationError if one cannot be read."""
    root = Path(sysconfig.get_path("stdlib"))
    parts = []
    for module in MODULES:
        try:
            parts.append((root / module).read_text(encoding="utf-8"))
        except OSError as error:
            raise EvaluationError(
                "the text is the source of Python's standard library, but"
                f" {root / module} cannot be read ({error.strerror});"
                " use a Python that has its sources"
            ) from error
    return "".join(parts)


def build_tokeniser(vocabulary: list[str], merges: list[str]) -> "Tokenizer":
    """Byte-level BPE with each digit a token of its own.

    That is the pre-tokeniser "smollm" of GGUF: single digits, then the regular expression of GPT-2.
    `vocabulary` and `merges` are as GGUF stores them.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE({word: i for i, word in enumerate(vocabulary)}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def tokenise(text: str, vocabulary: list[str], merges: list[str], count: int) -> np.ndarray:
    """The first `count` token ids of `text` as int64, by `build_tokeniser`. No special token is
    added. Raises EvaluationError if the text is too short.
    """
    tokenizer = build_tokeniser(vocabulary, merges)
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    if tokenizer.decode(ids, skip_special_tokens=False) != text:
        raise EvaluationError(
            "the model's vocabulary does not reproduce the text; is it another tokeniser?"
        )
    if len(ids) < count:
        raise EvaluationError(f"--tokens={count}: the text has only {len(ids)} tokens")
    return np.array(ids[:count], np.int64)
