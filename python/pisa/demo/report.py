"""The numbers of a run, as tables and as JSON."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from math import exp
from statistics import fmean, median

from .methods import Setting


@dataclass(frozen=True)
class Reading:
    """A text of `tokens` tokens read once. loss: mean negative log-likelihood (nats) of the tokens
    that count; seconds of the prefill without the head, and of its attention alone."""

    setting: Setting
    tokens: int
    loss: float
    seconds: float
    attention_seconds: float


@dataclass(frozen=True)
class Recall:
    """A constant at `depth` (0 to 1) asked for after `tokens` tokens. found: each digit was the
    most probable token; log_probability: of a digit, the mean, in nats."""

    setting: Setting
    tokens: int
    depth: float
    text: int
    found: bool
    log_probability: float


@dataclass
class Results:
    """A whole run. facts: the machine, the versions, and the settings; counted: how many tokens at
    the end of a text count in the perplexity."""

    facts: dict[str, object]
    counted: int
    readings: list[Reading] = field(default_factory=list)
    recalls: list[Recall] = field(default_factory=list)


@dataclass(frozen=True)
class Cell:
    """The readings of a setting at a length: perplexity over all of them, medians of seconds."""

    perplexity: float
    seconds: float
    attention_seconds: float


def ordered(settings: Iterable[Setting]) -> list[Setting]:
    """Each once, in the order of their first use."""
    return list(dict.fromkeys(settings))


def cell(results: Results, tokens: int, setting: Setting) -> Cell:
    """What was read at a length with a setting."""
    found = [r for r in results.readings if (r.tokens, r.setting) == (tokens, setting)]
    return Cell(
        exp(fmean(r.loss for r in found)),
        median(r.seconds for r in found),
        median(r.attention_seconds for r in found),
    )


def share_found(
    results: Results, tokens: int, setting: Setting, depth: float | None = None
) -> float:
    """The share of constants that were found, at one depth or at all."""
    return fmean(
        r.found
        for r in results.recalls
        if (r.tokens, r.setting) == (tokens, setting) and depth in (None, r.depth)
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def reading_table(results: Results) -> list[str]:
    """Perplexity and time, a row for each length and setting."""
    lines = [
        _line(
            (
                "tokens",
                "attention",
                "perplexity",
                "against dense",
                "prefill s",
                "attention s",
                "prefill speed",
                "attention speed",
            )
        ),
        _line(["--:", ":--", *["--:"] * 6]),
    ]
    settings = ordered(r.setting for r in results.readings)
    for tokens in sorted({r.tokens for r in results.readings}):
        dense = cell(results, tokens, Setting("dense"))
        for setting in settings:
            here = cell(results, tokens, setting)
            lines.append(
                _line(
                    (
                        str(tokens),
                        setting.title,
                        f"{here.perplexity:.3f}",
                        f"{here.perplexity / dense.perplexity - 1:+.2%}",
                        f"{here.seconds:.2f}",
                        f"{here.attention_seconds:.2f}",
                        f"{dense.seconds / here.seconds:.2f}",
                        f"{dense.attention_seconds / here.attention_seconds:.2f}",
                    )
                )
            )
    return lines


def recall_table(results: Results) -> list[str]:
    """Constants found, a row for each length and setting, a column for each depth."""
    depths = sorted({r.depth for r in results.recalls})
    titles = ["tokens", "attention", "found", "log-probability"]
    lines = [
        _line([*titles, *(f"depth {depth:g}" for depth in depths)]),
        _line(["--:", ":--", *["--:"] * (2 + len(depths))]),
    ]
    settings = ordered(r.setting for r in results.recalls)
    for tokens in sorted({r.tokens for r in results.recalls}):
        for setting in settings:
            here = [r for r in results.recalls if (r.tokens, r.setting) == (tokens, setting)]
            lines.append(
                _line(
                    (
                        str(tokens),
                        setting.title,
                        f"{sum(r.found for r in here)} of {len(here)}",
                        f"{fmean(r.log_probability for r in here):.2f}",
                        *(f"{share_found(results, tokens, setting, d):.0%}" for d in depths),
                    )
                )
            )
    return lines


def markdown(results: Results) -> str:
    """Both tables and what they mean."""
    facts = results.facts
    machine = (
        f"{facts['processor']}, {facts['threads']} threads, float32; torch {facts['torch']},"
        f" transformers {facts['transformers']}, Python {facts['python']}."
    )
    of_readings = (
        f"Perplexity of the last {results.counted} tokens of a text, each given all before it;"
        f" {facts['windows']} text(s) for each length, source code. K blocks of"
        f" {facts['block_size']} keys for each query, the first one and the last two always among"
        " them; with K or fewer blocks in a text everything is selected. Prefill: the whole text in"
        " one go, all layers, without the head; attention: its part of that, the pyramid and the"
        " search included. Speed: dense over this. Compilation does not count: each kernel ran"
        " once before, on made-up tensors."
    )
    of_recalls = (
        f"Constants of {facts['digits']} digits, defined at the depths (0 is the beginning of"
        " the text, 1 its end) and asked for at the end, all in one prefill;"
        f" {facts['texts']} text(s) for each length. Found: each digit was the most probable"
        " token, given the right ones before it; log-probability: of a digit, mean, nats."
    )
    lines = [f"# PISA in {facts['model']}", "", machine, "", "## Perplexity and time", ""]
    lines += [*reading_table(results), "", of_readings]
    if results.recalls:
        lines += ["", "## Constants recalled", "", *recall_table(results), "", of_recalls]
    return "\n".join(lines) + "\n"


def as_json(results: Results) -> dict[str, object]:
    """Everything, for `json.dump`."""
    return asdict(results)
