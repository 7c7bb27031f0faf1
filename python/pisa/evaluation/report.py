"""The numbers of a run as a table, one line and JSON."""

from dataclasses import asdict, dataclass, field

from .metrics import Check, Quality
from .runner import Setting


@dataclass(frozen=True)
class Row:
    """One setting on one layer; what does not apply is None.

    error_l2, error_max: output against dense attention. phases: milliseconds. scratch, peak_rss:
    bytes.
    """

    name: str
    quality: Quality | None = None
    setting: Setting | None = None
    error_l2: float | None = None
    error_max: float | None = None
    phases: dict[str, float] | None = None
    scratch: int | None = None
    peak_rss: int | None = None
    check: Check | None = None

    @property
    def total_ms(self) -> float | None:
        """The sum of the phases."""
        return None if self.phases is None else sum(self.phases.values())


@dataclass(frozen=True)
class LayerReport:
    """One layer: what ran (pisa), what bounds it (reference), and dense attention in two ways
    (dense)."""

    layer: int
    pisa: list[Row]
    reference: list[Row]
    dense: list[Row]

    @property
    def fastest_dense(self) -> Row:
        """The baseline: the faster of the dense rows."""
        return min(self.dense, key=lambda row: row.total_ms)

    def speedup(self, row: Row) -> float:
        """How many times faster than the baseline a row is, its pyramid and routing included."""
        return self.fastest_dense.total_ms / row.total_ms


@dataclass(frozen=True)
class Report:
    """A whole run. facts: where the tensors come from, the machine and the versions."""

    topk: int
    facts: dict[str, object]
    layers: list[LayerReport] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every output agreed with float64 on the same blocks."""
        return all(row.check.passed for layer in self.layers for row in layer.pisa)


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


# Title, unit, width.
COLUMNS = (
    ("layer", "", 5),
    ("setting", "", 13),
    ("recall", "", 6),
    ("free", "", 5),
    ("mass", "", 6),
    ("union", "blks", 5),
    ("/K", "", 4),
    ("err L2", "rel", 7),
    ("err max", "abs", 7),
    ("pyramid", "ms", 7),
    ("route", "ms", 6),
    ("attn", "ms", 6),
    ("sum", "ms", 6),
    ("speed", "", 5),
    ("scratch", "MiB", 7),
    ("peak", "MiB", 6),
)


def _line(cells: list[str]) -> str:
    aligned = (
        cell.ljust(width) if title == "setting" else cell.rjust(width)
        for cell, (title, _, width) in zip(cells, COLUMNS, strict=True)
    )
    return " ".join(aligned).rstrip()


def table(report: Report) -> str:
    """The rows of every layer, at most 120 columns wide, and what the columns mean."""
    lines = [_line([title for title, _, _ in COLUMNS]), _line([unit for _, unit, _ in COLUMNS])]
    for layer in report.layers:
        for row in (*layer.pisa, *layer.reference, *layer.dense):
            quality, phases = row.quality, row.phases or {}
            mebi = [None if n is None else n / 2**20 for n in (row.scratch, row.peak_rss)]
            lines.append(
                _line(
                    [
                        str(layer.layer),
                        row.name,
                        _number(quality and quality.recall, ".3f"),
                        _number(quality and quality.recall_free, ".3f"),
                        _number(quality and quality.mass, ".4f"),
                        _number(quality and quality.union, ".1f"),
                        _number(quality and quality.union / report.topk, ".2f"),
                        _number(row.error_l2, ".1e"),
                        _number(row.error_max, ".1e"),
                        _number(phases.get("build_pyramid"), ".1f"),
                        _number(phases.get("route"), ".0f"),
                        _number(phases.get("attention"), ".0f"),
                        _number(row.total_ms, ".0f"),
                        _number(row.total_ms and layer.speedup(row), ".2f"),
                        _number(mebi[0], ".1f"),
                        _number(mebi[1], ".0f"),
                    ]
                )
            )
    rows, topk = report.layers[0].pisa[0].quality.rows, report.topk
    lines += [
        "",
        f"recall: share of the {topk} blocks with the most attention mass that were selected;",
        "free: without the forced ones; mass: attention probability in the selected blocks;",
        f"means over the {rows} rows (token x kv head) a layer that see more than {topk} blocks.",
        "union: distinct blocks that 8 adjacent tokens select; err: output against dense.",
        "exact: every block scored exactly, what no search can beat; best: the most mass.",
        "speed: the faster dense row over the sum; dense in the JIT is its attention alone,",
        "with every block listed.",
    ]
    return "\n".join(lines)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def summary(report: Report) -> str:
    """One line: the means over the layers."""
    parts = []
    for i, row in enumerate(report.layers[0].pisa):
        rows = [layer.pisa[i] for layer in report.layers]
        speedup = _mean([layer.speedup(layer.pisa[i]) for layer in report.layers])
        parts.append(
            f"{row.name}: recall@{report.topk} {_mean([r.quality.recall for r in rows]):.3f},"
            f" mass {_mean([r.quality.mass for r in rows]):.4f}, {speedup:.2f}x the speed of dense"
        )
    count = len(report.layers)
    verdict = "agree" if report.passed else "DO NOT AGREE"
    plural = "s" if count > 1 else ""
    return f"mean of {count} layer{plural}: {'; '.join(parts)}; outputs {verdict} with float64"


def as_json(report: Report) -> dict:
    """Everything, for `json.dump`: milliseconds, bytes, and fractions."""
    layers = []
    for layer in report.layers:
        entry: dict = {"layer": layer.layer, "fastest_dense": layer.fastest_dense.name}
        for kind in ("pisa", "reference", "dense"):
            entry[kind] = []
            for row in getattr(layer, kind):
                record = {key: value for key, value in asdict(row).items() if value is not None}
                if row.phases is not None:
                    record |= {"total_ms": row.total_ms, "speedup": layer.speedup(row)}
                if row.check is not None:
                    record["check"]["passed"] = row.check.passed
                entry[kind].append(record)
        layers.append(entry)
    return {"topk": report.topk, "facts": report.facts, "layers": layers, "passed": report.passed}
