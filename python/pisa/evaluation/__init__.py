"""PISA on the attention of a real language model: `python -m pisa.evaluation --help`.

Shapes in this package: T tokens, D the head dimension, Dv that of the values, Hq query heads, Hkv
key/value heads, G = Hq // Hkv heads in a group (query head h reads kv head h // G), C the block
size, N = ceil(T / C) blocks and K the blocks that a query selects. The batch is always 1 and is
dropped inside; position i is token i.
"""


class EvaluationError(Exception):
    """Something outside the program is missing or wrong; the message says what. Exit code 1."""


class ArgumentError(Exception):
    """An argument is not allowed; the message names it, its value and what is. Exit code 2."""
