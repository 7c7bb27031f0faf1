"""PISA in a whole language model: `python -m pisa.demo --help`.

SmolLM2-135M reads the source code of Python's standard library with dense attention, with PISA, and
with a search of one level that scores a block by the mean of its keys. Measured are the perplexity,
the time of the prefill, and whether constants that were defined early are known at the end.

Shapes in this package: T tokens of a text, D the head dimension, Hq query heads, Hkv key/value
heads, G = Hq // Hkv heads in a group, C the block size, N blocks, K the blocks a query selects.
"""

import importlib.util

from ..evaluation import EvaluationError


def require_modules(*names: str) -> None:
    """Raises EvaluationError if one of these Python packages is not installed."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise EvaluationError(
            f"not installed: {', '.join(missing)}; run"
            " `pip install -r python/requirements-demo.txt`"
        )


def main(argv: list[str]) -> int:
    """Runs the demo; 0: success, 1: something missing or wrong, 2: an argument, 130: ^C."""
    from .command import main as command  # needs torch and transformers, this module does not

    return command(argv)
