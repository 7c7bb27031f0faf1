"""The picture shows what the kernels did."""

import sys

import numpy as np
import pisa
import pytest
from oracle import normal
from pisa import visualize


def head(length=400, **options):
    """Keys that drift, so that a search has something to find: q, k [1, T, H, D]."""
    walk = (
        np.cumsum(normal(1, 1, length, 1, 16), 1) / np.sqrt(np.arange(1, length + 1))[:, None, None]
    )
    k = (walk + 0.3 * normal(2, 1, length, 2, 16)).astype(np.float32)
    return (3 * k[:, :, [0, 0, 1, 1]] + normal(3, 1, length, 4, 16)).astype(np.float32), k


def test_mass_is_a_distribution():
    q, k = head()
    mass = visualize.mass(q, k, block_size=16, rows=[0, 15, 16, 399], kv_head=1)
    assert mass.shape == (4, 25)
    assert np.abs(mass.sum(1) - 1).max() < 1e-12
    assert mass[0, 0] == 1 and mass[2, 2:].max() == 0
    logits = 0.25 * q[0, 399, 2:].astype(np.float64) @ k[0, :, 1].astype(np.float64).T
    weights = np.exp(logits - logits.max(1, keepdims=True))
    share = (weights / weights.sum(1, keepdims=True)).mean(0).reshape(25, 16).sum(1)
    assert np.abs(mass[3] - share).max() < 1e-12


def replay(q, k, **options):
    """Rows of which the replay in float64 and the kernel choose other leaves, and all."""
    given = {"topk": 4, "block_size": 16, **options}
    lengths = {n: given.pop(n) for n in ("q_start", "k_len") if n in given}
    params = visualize.make_params(**given)
    one = visualize._take_head(
        q, k, "bshd", params.causal, None, lengths.get("q_start"), lengths.get("k_len"), 0, 1
    )
    pyramid = pisa.build_pyramid(
        k,
        block_size=16,
        fanout=params.fanout,
        k_len=lengths.get("k_len"),
        return_atoms=params.rerank is not None,
    )
    routing = {n: v for n, v in given.items() if n not in ("block_size", "fanout")}
    lists = pisa.route(q, k, pyramid, **routing, **lengths)[0, 1]
    atoms = outlier = None
    if pyramid.atoms is not None:
        atoms, outlier = pyramid.atoms[0, 1].astype(np.float64), pyramid.outlier[0, 1]
    summaries = pyramid.summaries[0, 1].astype(np.float64)
    rows = range(0, len(lists), 5)
    apart = 0
    for row in rows:
        kept = visualize.kept_nodes(one, summaries, row, params, atoms, outlier)
        apart += not np.array_equal(lists[row][lists[row] >= 0], kept[1])
    return apart, len(rows)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beam": 6},
        {"fanout": 3},
        {"rerank": 6, "beam": 6},
        {"rerank": 0},
        {"query_block": 4, "q_start": 0},
        {"causal": False},
        {"causal": False, "k_len": 333},
        {"k_len": 333},
    ],
    ids=str,
)
def test_the_replay_ends_in_the_leaves_of_the_kernel(options):
    """Two programs of one specification, but for ties of rounding."""
    apart, rows = replay(*head(), **options)
    assert rows >= 20 and apart <= 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_replay_with_values_that_are_no_numbers(value):
    q, k = head()
    k[0, 70, :, 3] = value
    with np.errstate(invalid="ignore"):
        apart, _ = replay(q, k)
    assert apart <= 1


def test_a_figure_has_a_panel_for_each_level():
    pytest.importorskip("matplotlib")
    q, k = head()
    figure = visualize.selection(q, k, topk=4, block_size=16, max_rows=50)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    # 25 leaves: 13, 7, 4, 2 nodes above, and the root, which is not drawn.
    assert [t.split(":")[0] for t in titles] == [
        "level 5",
        "level 4",
        "level 3",
        "level 2",
        "leaves",
    ]
    assert "25 nodes, K = 4" in titles[-1] and "2 nodes, W = 4, mass 1.000" in titles[0]


def test_tensors_and_other_layouts():
    pytest.importorskip("matplotlib")
    torch = pytest.importorskip("torch")
    q, k = (torch.from_numpy(x).transpose(1, 2).bfloat16() for x in head(100))
    assert visualize.selection(q, k, topk=3, block_size=16, layout="bhsd", rerank=3).axes


@pytest.mark.parametrize(
    "options,error,match",
    [
        ({"topks": 3}, TypeError, "topks"),
        ({"topk": 1}, ValueError, "'topk'"),
        ({"batch": 1}, ValueError, r"batch to be in \[0, 0\], but got 1"),
        ({"kv_head": -1}, ValueError, "kv_head"),
        ({"max_rows": 0}, ValueError, "max_rows"),
        ({"layout": "x"}, ValueError, "layout"),
    ],
    ids=str,
)
def test_refusals(options, error, match):
    pytest.importorskip("matplotlib")
    q, k = head(40)
    with pytest.raises(error, match=match):
        visualize.selection(q, k, **options)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    q, k = head(40)
    with pytest.raises(RuntimeError, match=r"pip install 'pisa\[plot\]'"):
        visualize.selection(q, k, topk=3)


@pytest.mark.parametrize(
    "options,error,match",
    [
        ({"rows": [40]}, ValueError, r"rows.*\[0, 39\]"),
        ({"rows": [1.7]}, TypeError, "rows"),
        ({"k_len": 41}, ValueError, r"k_len\[0\].*\[0, 40\].*41"),
        ({"k_len": -5}, ValueError, r"k_len\[0\].*-5"),
        ({"causal": 3}, TypeError, "causal"),
        ({"block_size": 0}, ValueError, "block_size"),
    ],
    ids=str,
)
def test_mass_refuses(options, error, match):
    q, k = head(40)
    with pytest.raises(error, match=match):
        visualize.mass(q, k, **options)


def test_mass_of_more_queries_than_keys():
    q, k = head(40)
    with pytest.raises(ValueError, match="Tq to be at most Tk = 30"):
        visualize.mass(q, k[:, :30])
