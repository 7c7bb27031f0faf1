"""Plots of the numbers, as PNG files."""

from pathlib import Path
from typing import Any

from ..evaluation import ArgumentError
from .methods import METHODS, Setting
from .report import Results, cell, ordered, share_found

COLOURS = {"dense": "#444444", "pisa": "#1f77b4", "pisa-wide": "#2ca02c", "mean": "#d62728"}
MARKERS = {"dense": "D", "pisa": "o", "pisa-wide": "s", "mean": "^"}


def _subplots(*arguments: Any, **keywords: Any) -> tuple[Any, Any]:
    """A figure and an array [rows, columns] of axes; matplotlib is imported when one is drawn."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(*arguments, squeeze=False, layout="constrained", **keywords)


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    try:
        figure.savefig(path, dpi=110, format="png")
    except OSError as error:
        raise ArgumentError(
            f"--output={path.parent}: {path.name} cannot be written: {error.strerror}"
        ) from error
    finally:
        pyplot.close(figure)


def _topk_axis(axes: Any, topks: list[int], block_size: object) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(topks, [str(topk) for topk in topks])
    axes.minorticks_off()
    axes.set_xlabel(f"K, blocks of {block_size} keys a query attends to")


def draw_perplexity(results: Results, path: Path) -> None:
    """Perplexity against K, a panel for each length; dense is a horizontal line."""
    lengths = sorted({r.tokens for r in results.readings})
    settings = ordered(r.setting for r in results.readings)
    topks = sorted({s.topk for s in settings if s.topk is not None})
    figure, axes = _subplots(1, len(lengths), figsize=(1.5 + 4.5 * len(lengths), 4.5))
    for panel, tokens in zip(axes[0], lengths, strict=True):
        panel.axhline(
            cell(results, tokens, Setting("dense")).perplexity,
            color=COLOURS["dense"],
            linestyle="--",
            label="dense",
        )
        for method in ordered_methods(settings):
            values = [cell(results, tokens, Setting(method, topk)).perplexity for topk in topks]
            panel.plot(
                topks,
                values,
                color=COLOURS[method],
                marker=MARKERS[method],
                label=METHODS[method].title,
            )
        panel.set_title(f"{tokens} tokens")
        _topk_axis(panel, topks, results.facts["block_size"])
    axes[0, 0].set_ylabel(f"perplexity of the last {results.counted} tokens")
    axes[0, -1].legend()
    _save(figure, path)


def ordered_methods(settings: list[Setting]) -> list[str]:
    """The methods that have a K, each once."""
    return list(dict.fromkeys(s.method for s in settings if s.topk is not None))


def draw_time(results: Results, path: Path) -> None:
    """Seconds against the length: the whole prefill on the left, its attention on the right.

    A method with several K is a line for the smallest one and one, dotted and hollow, for the
    largest.
    """
    lengths = sorted({r.tokens for r in results.readings})
    settings = ordered(r.setting for r in results.readings)
    topks = [s.topk for s in settings if s.topk is not None]
    shown = [s for s in settings if s.topk in (None, min(topks), max(topks))]
    figure, axes = _subplots(1, 2, figsize=(12, 4.8))
    for panel, title, attribute in zip(
        axes[0], ("prefill", "its attention"), ("seconds", "attention_seconds"), strict=True
    ):
        for setting in shown:
            hollow = setting.topk == max(topks) > min(topks)
            panel.plot(
                lengths,
                [getattr(cell(results, tokens, setting), attribute) for tokens in lengths],
                color=COLOURS[setting.method],
                marker=MARKERS[setting.method],
                linestyle=":" if hollow else "-",
                fillstyle="none" if hollow else "full",
                label=setting.title,
            )
        panel.set_xticks(lengths, [str(tokens) for tokens in lengths])
        panel.set_ylim(bottom=0)
        panel.set_title(f"{title}, {results.facts['threads']} threads")
        panel.set_xlabel("tokens")
        panel.set_ylabel("seconds")
    axes[0, 0].legend()
    _save(figure, path)


def draw_needles(results: Results, path: Path) -> None:
    """The share of constants that were found, depth by length, a panel for each setting."""
    settings = ordered(r.setting for r in results.recalls)
    lengths = sorted({r.tokens for r in results.recalls})
    depths = sorted({r.depth for r in results.recalls})
    columns = min(4, len(settings))
    rows = -(-len(settings) // columns)
    figure, axes = _subplots(
        rows,
        columns,
        figsize=(2 + columns * (1.4 + 0.8 * len(lengths)), rows * (1.4 + 0.45 * len(depths))),
        sharex=True,
        sharey=True,
    )
    for panel in axes.flat[len(settings) :]:
        panel.set_axis_off()
    for panel, setting in zip(axes.flat, settings, strict=False):
        shares = [[share_found(results, n, setting, d) for n in lengths] for d in depths]
        image = panel.imshow(shares, vmin=0, vmax=1, cmap="RdYlGn", aspect="auto")
        for y, line in enumerate(shares):
            for x, share in enumerate(line):
                panel.text(x, y, f"{share:.0%}", ha="center", va="center", fontsize=9)
        panel.set_title(setting.title, fontsize=10)
        panel.set_xticks(range(len(lengths)), [str(tokens) for tokens in lengths])
        panel.set_yticks(range(len(depths)), [f"{depth:g}" for depth in depths])
    for panel in axes[:, 0]:
        panel.set_ylabel("depth (1: the end)")
    for panel in axes[-1]:
        panel.set_xlabel("tokens")
    figure.colorbar(image, ax=axes, label="constants found")
    _save(figure, path)
