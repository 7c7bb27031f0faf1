"""The call of the C++ tool `pisa-runner`, which compiles the operation for this machine and runs
it."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import EvaluationError
from .capture import Paths

TOOL = "pisa-runner"


@dataclass(frozen=True)
class Setting:
    """What to run, by the names of the runner's flags; beam None is topk, rerank None is every leaf
    (the paper)."""

    topk: int
    block_size: int
    fanout: int
    beam: int | None = None
    rerank: int | None = None


@dataclass(frozen=True)
class RunResult:
    """What the tool wrote.

    out [Hq, T, Dv] float32; lse [Hq, T] float32, natural; indices [Hkv, T, K] int32, ascending,
    padded with -1. phases: milliseconds of build_pyramid, route and attention; scratch and peak_rss
    in bytes.
    """

    out: np.ndarray
    lse: np.ndarray
    indices: np.ndarray
    phases: dict[str, float]
    scratch: int
    peak_rss: int


def find_runner(given: Path | None) -> Path:
    """The tool: `given`, or that of the build folder of this checkout, or that on PATH."""
    if given is not None:
        if not given.is_file():
            raise EvaluationError(f"--runner={given}: no such file")
        return given
    built = Path(__file__).resolve().parents[3] / "build" / "bin" / TOOL
    if built.is_file():
        return built
    on_path = shutil.which(TOOL)
    if on_path is None:
        raise EvaluationError(
            f"{TOOL} is neither {built} nor on PATH: build it, or say where it is with --runner"
        )
    return Path(on_path)


def wrong_row(indices: np.ndarray, block_size: int) -> tuple[int, int] | None:
    """The first (kv head, token) whose row of indices [Hkv, T, K] is no causal selection, if any.

    A selection is min(K, visible) visible blocks, ascending, then -1.
    """
    _, tokens, topk = indices.shape
    visible = np.arange(tokens)[:, None] // block_size + 1
    used = np.arange(topk) < visible
    good = np.where(used, (indices >= 0) & (indices < visible), indices == -1)
    good[:, :, 1:] &= ~used[:, 1:] | (indices[:, :, 1:] > indices[:, :, :-1])
    bad = np.argwhere(~good.all(2))
    return None if len(bad) == 0 else (int(bad[0, 0]), int(bad[0, 1]))


def run_attention(
    runner: Path, paths: Paths, setting: Setting, threads: int, repeat: int, folder: Path
) -> RunResult:
    """Runs causal PISA attention on the CPU over q, k, v .npy; results go through `folder`, which
    must exist.

    Raises EvaluationError if the tool fails or what it writes has another shape than agreed.
    """
    q, k, v = paths
    report = folder / "report.json"
    command = [
        str(runner),
        "--op=attention",
        "--target=cpu",
        f"--inputs=q={q},k={k},v={v}",
        "--dtype=f32",
        f"--topk={setting.topk}",
        f"--block-size={setting.block_size}",
        f"--fanout={setting.fanout}",
        f"--threads={threads}",
        f"--time={repeat}",
        f"--output-dir={folder}",
        f"--json={report}",
    ]
    if setting.beam is not None:
        command.append(f"--beam={setting.beam}")
    if setting.rerank is not None:
        command.append(f"--rerank={setting.rerank}")
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, errors="replace"
        )
    except OSError as error:
        raise EvaluationError(f"{runner} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-10:])
        raise EvaluationError(
            f"{TOOL} ended with status {done.returncode}:\n{said}\n"
            f"the command was: {' '.join(command)}"
        )
    try:
        numbers = json.loads(report.read_text(encoding="utf-8"))
        times = {phase["name"]: float(phase["ms"]) for phase in numbers["phases"]}
        phases = {name: times[name] for name in ("build_pyramid", "route", "attention")}
        scratch, peak_rss = int(numbers["scratch_bytes"]), int(numbers["peak_rss_bytes"])
        out = np.load(folder / "out.npy")
        lse = np.load(folder / "lse.npy")
        indices = np.load(folder / "indices.npy")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EvaluationError(
            f"{TOOL} wrote something unexpected: {error!r}; is it another version?"
        ) from error
    _, heads, tokens, _ = np.load(q, mmap_mode="r").shape
    _, kv_heads, _, value_depth = np.load(v, mmap_mode="r").shape
    for name, array, shape, kind in (
        ("out", out, (1, heads, tokens, value_depth), np.float32),
        ("lse", lse, (1, heads, tokens), np.float32),
        ("indices", indices, (1, kv_heads, tokens, setting.topk), np.int32),
    ):
        if array.shape != shape or array.dtype != kind:
            raise EvaluationError(
                f"{TOOL} wrote {name}.npy as {array.dtype} {list(array.shape)},"
                f" not {np.dtype(kind)} {list(shape)}"
            )
    wrong = wrong_row(indices[0], setting.block_size)
    if wrong is not None:
        head, token = wrong
        raise EvaluationError(
            f"{TOOL} wrote a wrong row of indices.npy, kv head {head}, token {token}:"
            f" {indices[0, head, token].tolist()}"
        )
    return RunResult(out[0], lse[0], indices[0], phases, scratch, peak_rss)
