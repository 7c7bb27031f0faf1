"""Queries, keys and values of some layers, from a model or made up, kept in a cache folder.

A cache entry is a folder of .npy files and a manifest.json with their SHA-256 and what else is
known of the run. Files are written beside their final name and renamed, the manifest last, so that
an interrupted run leaves no entry that looks whole; whatever does not match the manifest is
computed again.
"""

import hashlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import ArgumentError, EvaluationError
from .model import (
    Capture,
    Model,
    find_model,
    forward,
    load_model,
    perplexity,
    stderr_progress,
)
from .text import source_text, tokenise

# Part of every key: raise it when a change of the code changes the captures.
FORMAT = 1

PERPLEXITY_TOKENS = 1024

# Shape of the made-up tensors: that of SmolLM2-135M.
SYNTHETIC_HEADS, SYNTHETIC_KV_HEADS, SYNTHETIC_DEPTH = 9, 3, 64

Paths = tuple[Path, Path, Path]


@dataclass(frozen=True)
class Captures:
    """Where the tensors are and what they come from.

    paths: layer -> (q.npy [1, Hq, T, D], k.npy [1, Hkv, T, D], v.npy [1, Hkv, T, Dv]), float32.
    facts: for the report, such as the perplexity and the hashes. reused: nothing had to be
    computed.
    """

    paths: dict[int, Paths]
    facts: dict[str, object]
    reused: bool


def default_cache_dir() -> Path:
    """`$XDG_CACHE_HOME/pisa`, or ~/.cache/pisa where that variable is unset or empty."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pisa"


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Writes `data` so that `path` holds all of it or is left as it was."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


class Entry:
    """A folder of the cache. Raises EvaluationError where it cannot be made or written."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.manifest: dict = {"facts": {}, "files": {}}
        try:
            # Only the folder around it: an entry is made when there is something to store.
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EvaluationError(
                f"--cache-dir: cannot make the folder {folder.parent}: {error.strerror}"
            ) from error
        try:
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            if isinstance(manifest["facts"], dict) and isinstance(manifest["files"], dict):
                self.manifest = manifest
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError):
            print(f"{folder}: the manifest is damaged; computing again", file=sys.stderr)

    def paths(self, layer: int) -> Paths:
        """The three files of a layer, present or not."""
        q, k, v = (self.folder / f"layer{layer:02}-{name}.npy" for name in "qkv")
        return q, k, v

    def is_whole(self, layer: int) -> bool:
        """Whether the files of `layer` match the manifest; says on stderr if they do not."""
        for path in self.paths(layer):
            known = self.manifest["files"].get(path.name)
            if known is None:
                return False
            if not path.is_file() or file_hash(path) != known:
                print(f"{path}: missing or damaged; computing again", file=sys.stderr)
                return False
        return True

    def store(self, layer: int, tensors: Capture) -> None:
        """Writes q, k, v [heads, T, D] with a batch dimension of 1 in front."""
        for path, tensor in zip(self.paths(layer), tensors, strict=True):
            buffer = io.BytesIO()
            np.save(buffer, tensor[None])
            data = buffer.getvalue()
            self._write(path, data)
            self.manifest["files"][path.name] = hashlib.sha256(data).hexdigest()

    def commit(self, facts: dict[str, object]) -> None:
        """Writes the manifest, which makes what was stored count."""
        self.manifest["facts"] = facts
        text = json.dumps(self.manifest, indent=1) + "\n"
        self._write(self.folder / "manifest.json", text.encode())

    def _write(self, path: Path, data: bytes) -> None:
        try:
            self.folder.mkdir(exist_ok=True)
            write_atomically(path, data)
        except OSError as error:
            raise EvaluationError(f"cannot write {path}: {error.strerror}") from error


def cached(
    folder: Path,
    layers: list[int],
    compute: Callable[[list[int], Callable[[int, Capture], None]], dict[str, object]],
) -> Captures:
    """The layers from the cache entry `folder`, computing those that it lacks.

    `compute(missing, store)` calls `store(layer, (q, k, v))` for each missing layer and returns the
    facts.
    """
    entry = Entry(folder)
    missing = [layer for layer in layers if not entry.is_whole(layer)]
    if missing:
        entry.commit(compute(missing, entry.store))
    paths = {layer: entry.paths(layer) for layer in layers}
    return Captures(paths, entry.manifest["facts"], not missing)


def capture_model(
    cache_dir: Path, model_file: Path | None, tokens: int, layers: list[int], threads: int
) -> Captures:
    """q, k and v of a model that reads `tokens` tokens of source code.

    model_file None is that of the model package. Raises ArgumentError for a layer or a length that
    the model lacks.
    """
    path = model_file or find_model()
    if not path.is_file():
        raise ArgumentError(f"--model={path}: no such file")
    text = source_text()
    model_hash = file_hash(path)
    text_hash = hashlib.sha256(text.encode()).hexdigest()
    key = hashlib.sha256(f"{FORMAT} {model_hash} {text_hash} {tokens}".encode()).hexdigest()

    def compute(missing: list[int], store: Callable[[int, Capture], None]) -> dict[str, object]:
        print(f"reading {path.name}", file=sys.stderr)
        model = load_model(path)
        check_sizes(model, tokens, missing)
        ids = tokenise(text, model.vocabulary, model.merges, tokens)
        hidden = forward(model, ids, missing, store, threads, stderr_progress)
        if sys.stderr.isatty():
            print(file=sys.stderr)
        return {
            "source": path.name,
            "model_sha256": model_hash,
            "text_sha256": text_hash,
            "tokens_sha256": hashlib.sha256(ids.astype("<i4").tobytes()).hexdigest(),
            "tokens": tokens,
            "perplexity": perplexity(model, hidden, ids, PERPLEXITY_TOKENS),
            "perplexity_tokens": min(PERPLEXITY_TOKENS, tokens - 1),
        }

    return cached(cache_dir / f"model-{key[:16]}", layers, compute)


def check_sizes(model: Model, tokens: int, layers: list[int]) -> None:
    """Raises ArgumentError unless the model has the layers and a context of `tokens`."""
    if tokens > model.config.context:
        raise ArgumentError(
            f"--tokens={tokens}: the model's context is {model.config.context} tokens"
        )
    for layer in layers:
        if layer >= model.config.layers:
            raise ArgumentError(
                f"--layers: there is no layer {layer}; the model has 0 to {model.config.layers - 1}"
            )


def synthetic(tokens: int, seed: int) -> Capture:
    """Seeded q [9, T, 64], k and v [3, T, 64] with the structure that real attention has; float32.

    Each kv head follows a subject, a unit vector in 8 dimensions that walks smoothly (an
    Ornstein-Uhlenbeck process with a memory of 256 tokens) and so drifts away and comes back: the
    key of a token is its subject plus noise, and a query asks for its own, so that near keys and
    earlier visits to the same place have the mass. Key 0 is a sink, which every query likes a
    little. Values are noise. All of it is then turned by a random rotation of the 64 dimensions, as
    no model keeps its subjects on the axes.
    """
    rng = np.random.default_rng([seed, tokens])
    group = SYNTHETIC_HEADS // SYNTHETIC_KV_HEADS
    depth, subject_depth, memory = SYNTHETIC_DEPTH, 8, 256
    keep = np.exp(-1 / memory)
    q = np.empty((SYNTHETIC_HEADS, tokens, depth))
    k = np.empty((SYNTHETIC_KV_HEADS, tokens, depth))

    def spread(subject: np.ndarray, strength: float, sink: float) -> np.ndarray:
        """[T, D]: the subject in the first dimensions, the sink's in the next, noise in all."""
        x = 0.5 * rng.standard_normal((tokens, depth))
        x[:, :subject_depth] += strength * subject
        x[:, subject_depth] += sink
        return x

    for head in range(SYNTHETIC_KV_HEADS):
        steps = rng.standard_normal((tokens, subject_depth)) * np.sqrt(1 - keep * keep)
        walk = np.empty_like(steps)
        walk[0] = rng.standard_normal(subject_depth)
        for i in range(1, tokens):
            walk[i] = keep * walk[i - 1] + steps[i]
        subject = walk / np.linalg.norm(walk, axis=1, keepdims=True)
        rotation = np.linalg.qr(rng.standard_normal((depth, depth)))[0]
        keys = spread(subject, 8.0, 0.0)
        keys[0, subject_depth] += 16.0
        k[head] = keys @ rotation
        for member in range(group):
            q[head * group + member] = spread(subject, 6.0 + 2.0 * member, 4.0) @ rotation
    v = rng.standard_normal((SYNTHETIC_KV_HEADS, tokens, depth))
    return q.astype(np.float32), k.astype(np.float32), v.astype(np.float32)


def capture_synthetic(cache_dir: Path, tokens: int, layers: list[int]) -> Captures:
    """Made-up tensors instead of a model's; the number of a layer is its seed."""

    def compute(missing: list[int], store: Callable[[int, Capture], None]) -> dict[str, object]:
        for layer in missing:
            store(layer, synthetic(tokens, layer))
        return {"source": "synthetic", "tokens": tokens}

    return cached(cache_dir / f"synthetic-{FORMAT}-{tokens}", layers, compute)
