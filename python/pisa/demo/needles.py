"""Constants that are defined somewhere in a text and asked for at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..evaluation import ArgumentError

if TYPE_CHECKING:
    from .language_model import LanguageModel

# Names in the order of their depth; all needles of a text are asked for in one prefill.
NAMES = ("ALPHA", "BRAVO", "COBALT", "DELTA", "EMBER", "FALCON", "GARNET", "HAZEL", "INDIGO")
DIGITS = 5

QUESTION = "\n\n\n# The constants at the top of the module:\n"


@dataclass(frozen=True)
class Haystack:
    """tokens [T]; answers: for each depth, the position of the first of the DIGITS tokens that are
    the constant's value, each a digit."""

    tokens: np.ndarray
    answers: list[int]


def line_starts(model: LanguageModel, ids: list[int]) -> list[int]:
    """Positions in `ids` where a line without indentation begins, 0 among them."""
    pieces = {i: model.decode([i]) for i in set(ids)}
    starts = [0]
    for i in range(1, len(ids)):
        if pieces[ids[i - 1]].endswith("\n") and not pieces[ids[i]][:1].isspace():
            starts.append(i)
    return starts


def build_haystack(
    model: LanguageModel, tokens: int, depths: list[float], rng: np.random.Generator
) -> Haystack:
    """A text of `tokens` tokens with a constant at each depth (ascending, 0 is the beginning), and
    the questions at the end, in random order, each with its answer.

    The source code around, the values and the order are drawn from `rng`. A constant stands before
    a line without indentation, the one nearest to its depth.
    """
    numbers = [str(rng.integers(10 ** (DIGITS - 1), 10**DIGITS)) for _ in depths]
    end, places = QUESTION, {}
    for i in rng.permutation(len(depths)):
        end += f"assert _MAGIC_{NAMES[i]}_NUMBER == "
        # Digits are tokens of their own, so that no token spans this place.
        places[int(i)] = len(model.encode(end))
        end += f"{numbers[i]}\n"
    tail = model.encode(end)
    needles = [
        model.encode(f"\n_MAGIC_{NAMES[i]}_NUMBER = {number}\n\n")
        for i, number in enumerate(numbers)
    ]
    room = tokens - len(tail) - sum(map(len, needles))
    if room < 2 * len(tail):
        raise ArgumentError(
            f"--lengths={tokens}: too short for {len(depths)} constants and their questions,"
            f" {tokens - room} tokens"
        )
    first = int(rng.integers(0, len(model.text) - room + 1))
    body = model.text[first : first + room].tolist()
    starts = line_starts(model, body)
    ids, done = [], 0
    for depth, needle in zip(depths, needles, strict=True):
        place = min(starts, key=lambda start: abs(start - depth * room))
        place = max(place, done)
        ids += body[done:place] + needle
        done = place
    ids += body[done:] + tail
    answers = [tokens - len(tail) + places[i] for i in range(len(depths))]
    for number, answer in zip(numbers, answers, strict=True):
        read = model.decode(ids[answer : answer + DIGITS])
        if read != number:
            raise RuntimeError(f"the tokens of the constant {number} read {read!r}")
    return Haystack(np.array(ids, np.int64), answers)
