"""A picture of one head: where the attention is, and what was selected."""

from pathlib import Path

import numpy as np

from . import ArgumentError

# Tokens in a row of the picture: fewer cannot be told apart at the size of a page.
ROW_TOKENS = 16

# The colours span this much mass a block; what is below is drawn in the darkest one.
LEAST_MASS = 1e-5


def by_rows(values: np.ndarray, row_tokens: int) -> np.ndarray:
    """[ceil(T / row_tokens), N]: the means of values [T, N] over groups of adjacent tokens; the
    last may be shorter."""
    starts = np.arange(0, len(values), row_tokens)
    sums = np.add.reduceat(values.astype(np.float64), starts, axis=0)
    counts = np.minimum(starts + row_tokens, len(values)) - starts
    return sums / counts[:, None]


def draw(
    path: Path, mass: np.ndarray, selected: np.ndarray, block_size: int, topk: int, title: str
) -> None:
    """Writes a PNG. mass [T, N]: softmax probability a block; selected [T, N] bool; title: what
    this is.

    Left, the attention mass of all blocks; right, the same seen through the selection. Raises
    ArgumentError if `path` cannot be written.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.patches import Patch

    tokens, blocks = mass.shape
    share = by_rows(selected, ROW_TOKENS)
    visible = (
        np.arange(blocks)
        <= np.minimum(np.arange(len(share))[:, None] * ROW_TOKENS + ROW_TOKENS - 1, tokens - 1)
        // block_size
    )
    shown = np.ma.array(np.maximum(by_rows(mass, ROW_TOKENS), LEAST_MASS), mask=~visible)
    norm = LogNorm(LEAST_MASS, 1)
    place = {
        "extent": (0, blocks, tokens, 0),
        "aspect": "auto",
        "interpolation": "nearest",
    }
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(15, 7.6), sharex=True, sharey=True, layout="constrained"
    )
    figure.suptitle(title)
    image = left.imshow(shown, norm=norm, cmap="viridis", **place)
    left.set_title("Dense attention: all blocks")
    left.set_ylabel("query (token)")
    right.imshow(shown, norm=norm, cmap="viridis", **place)
    # A veil over what was not selected: as dense as the share of the row's tokens that did not
    # select the block.
    veil = LinearSegmentedColormap.from_list("veil", [(1, 1, 1, 0), (0.9, 0.9, 0.9, 1)])
    right.imshow(np.ma.array(1 - share, mask=~visible), vmin=0, vmax=1, cmap=veil, **place)
    right.set_title(
        f"PISA: the selected blocks (paler: selected by some of a row's {ROW_TOKENS} queries)"
    )
    right.legend(
        handles=[
            Patch(facecolor="#e6e6e6", edgecolor="#999999", label="not selected"),
            Patch(facecolor="white", edgecolor="#999999", label="in the future"),
        ],
        loc="upper right",
    )
    everything = topk * block_size
    for axes in (left, right):
        axes.axhline(everything, color="#444444", linewidth=0.8, linestyle="--")
        axes.set_xlabel(f"key block ({block_size} keys each)")
    right.text(
        blocks * 0.99,
        everything + tokens * 0.01,
        f"queries above the line see at most K = {topk} blocks, all selected",
        horizontalalignment="right",
        verticalalignment="top",
        color="#444444",
    )
    bar = figure.colorbar(image, ax=(left, right), extend="min", pad=0.01)
    bar.set_label(
        f"softmax mass of the block, mean over the group's heads and {ROW_TOKENS} adjacent queries"
    )
    try:
        figure.savefig(path, dpi=110, format="png")
    except OSError as error:
        raise ArgumentError(f"--picture={path}: cannot be written: {error.strerror}") from error
    finally:
        pyplot.close(figure)
