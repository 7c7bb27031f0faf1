"""PISA as an attention implementation of Hugging Face transformers, 4.56 or newer.

    from pisa.integrations.transformers import register
    register(topk=16)
    model.set_attn_implementation("pisa")

Prefill, whole or in chunks over a cache, is `pisa.attention`, with the model's key/value heads as
they are. A step of one token is dense, through torch's scaled_dot_product_attention, until PISA has
a kernel for decoding: `generate` thus reads its prompt sparsely and writes densely.

A call that cannot be computed exactly as asked raises NotImplementedError. Padding has to be on the
right; of a padded row only the tokens mean anything.

Shapes in this module: B rows of a batch, Tq queries, Tk keys (of a static cache: its capacity), Hq
query heads, Hkv key/value heads, D the head dimension, Dv that of the values.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, masking_utils
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import pisa

# How a model says what it wants masked; before 5.0 none asks for a bidirectional mask.
CAUSAL: Callable[..., Any] = masking_utils.causal_mask_function
BIDIRECTIONAL: Callable[..., Any] | None = getattr(
    masking_utils, "bidirectional_mask_function", None
)

# The keywords of `pisa.attention` that a model does not decide.
PARAMETERS = (
    "topk",
    "block_size",
    "beam",
    "rerank",
    "leaf_atoms",
    "fanout",
    "query_block",
    "sink_blocks",
    "local_blocks",
    "summary_dtype",
    "deterministic",
    "dense_below",
    "union_hint",
    "check",
    "backend",
)

# What models pass to attention functions and does not change the result.
HARMLESS = frozenset(
    (
        "cache",
        "cache_position",
        "logits_to_keep",
        "max_length_k",
        "max_length_q",
        "num_items_in_batch",
        "output_hidden_states",
        "output_router_logits",
        "past_key_value",
        "past_key_values",
        "position_embeddings",
        "return_dict",
        "use_cache",
    )
)

_overrides: ContextVar[Mapping[str, Any]] = ContextVar(
    "pisa_parameters", default=MappingProxyType({})
)
_registered: set[str] = set()


def check_names(names: Mapping[str, Any], where: str) -> None:
    """Raises ValueError for a name that is no parameter; `where` says who gave it."""
    for name, value in names.items():
        if name not in PARAMETERS:
            raise ValueError(f"{where}: {name}={value!r}: allowed are {', '.join(PARAMETERS)}")


@contextmanager
def parameters(**values: Any) -> Iterator[None]:
    """Parameters of `pisa.attention` for the calls inside, in this thread or task.

    They go before those of `model.config.pisa` and of `register`; an inner block goes before an
    outer one.
    """
    check_names(values, "parameters")
    token = _overrides.set({**_overrides.get(), **values})
    try:
        yield
    finally:
        _overrides.reset(token)


def resolve_parameters(module: torch.nn.Module, registered: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords for `pisa.attention`: those of `parameters`, then of the `pisa` of the module's
    config, then `registered`."""
    of_config = getattr(getattr(module, "config", None), "pisa", None)
    if of_config is None:
        of_config = {}
    if not isinstance(of_config, Mapping):
        raise TypeError(
            f"config.pisa={of_config!r}: must be a dict of parameters, not"
            f" {type(of_config).__name__}"
        )
    check_names(of_config, "config.pisa")
    return {**registered, **of_config, **_overrides.get()}


# Models hand what a mask function returns to the attention function unread, a tensor of four
# dimensions also through `generate`. So the lengths travel as int32 [B, 1, 1, 2], (q_start, k_len),
# where attention is causal and as [B, 1, 1, 1], k_len, where it is not; masks of transformers
# itself are bool or floating.


def _padded_lengths(mask: torch.Tensor, end: int | torch.Tensor) -> torch.Tensor:
    """[B] int64: how many of the keys below `end` are tokens, from a padding mask [B, keys]."""
    place = torch.arange(mask.shape[1], device=mask.device)
    mask = mask.bool() & (place < end)
    lengths = mask.sum(1)
    wrong = (mask != (place < lengths[:, None])).any(1)
    if wrong.any():
        row = int(wrong.nonzero()[0, 0])
        raise NotImplementedError(
            f"attention_mask, row {row}: zeros before a one (padding on the left or in between) are"
            " not supported, only padding on the right"
        )
    return lengths


def _of_one_sequence(function: Callable[..., Any]) -> Callable[..., Any]:
    """CAUSAL for its conjunction with a mask for packed sequences that knows only one sequence;
    any other function as it is.

    Until 4.57 this is how a causal mask comes where there is no cache. Which sequence a token
    belongs to is nowhere else than in the closure.
    """
    parts = getattr(function, "__closure__", None) or ()
    both = [cell.cell_contents for cell in parts]
    if len(both) != 1 or not isinstance(both[0], tuple) or both[0][:1] != (CAUSAL,):
        return function
    inner = [
        cell.cell_contents
        for other in both[0][1:]
        if getattr(other, "__qualname__", "").startswith("packed_sequence_mask_function.")
        for cell in other.__closure__
    ]
    if function.__qualname__ != "and_masks.<locals>.and_mask" or len(inner) != len(both[0]) - 1:
        return function
    return CAUSAL if all(bool((number == number[:, :1]).all()) for number in inner) else function


def pisa_mask(
    batch_size: int,
    cache_position: torch.Tensor | None = None,
    kv_length: int = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = CAUSAL,
    attention_mask: torch.Tensor | None = None,
    *,
    q_length: int | None = None,
    q_offset: int | torch.Tensor = 0,
    local_size: int | None = None,
    device: torch.device | str | None = None,
    **_: Any,
) -> torch.Tensor | None:
    """What transformers calls for the mask of an attention implementation; never Tq x Tk.

    attention_mask [B, keys] is 1 for tokens and 0 for padding. None: query i sees all keys up to
    Tk - Tq + i, or all there are if attention is not causal; otherwise the lengths as above.
    """
    if cache_position is not None:  # until 4.57, instead of q_length and q_offset
        q_length, q_offset = len(cache_position), cache_position[0]
        device = cache_position.device
    if q_length is None:
        raise TypeError("pisa_mask: q_length=None: must be the number of queries")
    if local_size is not None:
        raise NotImplementedError(
            f"sliding_window or chunked attention of {local_size} tokens is not supported by PISA"
        )
    mask_function = _of_one_sequence(mask_function)
    causal = mask_function is CAUSAL
    if not causal and mask_function is not BIDIRECTIONAL:
        raise NotImplementedError(
            f"mask function {getattr(mask_function, '__qualname__', mask_function)!r}: packed"
            " sequences and masks of one's own are not supported by PISA, only causal attention"
            " and attention to everything"
        )
    if kv_offset != 0:
        raise NotImplementedError(
            f"kv_offset={kv_offset}: a cache that drops tokens is not supported by PISA, only 0"
        )
    if isinstance(q_offset, torch.Tensor) and q_offset.device.type == "cpu":
        q_offset = int(q_offset)
    end: int | torch.Tensor = q_offset + q_length if causal else kv_length
    full = isinstance(end, int) and end == kv_length
    if attention_mask is None:
        if full:
            return None
        lengths = torch.as_tensor(end, device=device).expand(batch_size)
    else:
        lengths = _padded_lengths(attention_mask, end)
        if full and (lengths == kv_length).all():
            return None
    columns = [lengths]
    if causal:
        columns.insert(0, torch.as_tensor(q_offset, device=lengths.device).expand(batch_size))
    return torch.stack(columns, 1).int()[:, None, None]


@dataclass(frozen=True)
class Request:
    """A checked call. q_start and k_len: [B] int32, or None as in `pisa.attention`: all keys, and
    the last query at the last key."""

    causal: bool
    q_start: torch.Tensor | None
    k_len: torch.Tensor | None
    scale: float | None

    @property
    def keywords(self) -> dict[str, Any]:
        """For `pisa.attention` and `pisa.block_sparse_attention`."""
        return {
            "causal": self.causal,
            "q_start": self.q_start,
            "k_len": self.k_len,
            "softmax_scale": self.scale,
            "layout": "bhsd",
        }


def _check_positions(position_ids: torch.Tensor, request: Request) -> None:
    """Raises NotImplementedError if the positions of a row do not count up one by one."""
    jumps = position_ids.diff(dim=1) != 1
    if request.k_len is not None and request.q_start is not None:
        # The positions of padding mean nothing.
        place = torch.arange(1, position_ids.shape[1], device=jumps.device)
        jumps = jumps & (request.q_start[:, None] + place < request.k_len[:, None])
    if jumps.any():
        row, column = jumps.nonzero()[0].tolist()
        raise NotImplementedError(
            f"position_ids, row {row}: {position_ids[row % len(position_ids), column + 1]} after"
            f" {position_ids[row % len(position_ids), column]}: several sequences packed into a row"
            " are not supported by PISA"
        )


def read_call(
    module: torch.nn.Module,
    query: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None,
    dropout: float,
    is_causal: bool | None,
    extra: Mapping[str, Any],
) -> Request:
    """Checks what a model asks of an attention function; NotImplementedError for what PISA cannot
    do.

    query [B, Hq, Tq, D]; attention_mask from `pisa_mask`; `extra` are the keywords that are left.
    """
    if dropout != 0:
        raise NotImplementedError(f"dropout={dropout}: not supported by PISA, only 0")
    position_ids = None
    for name, value in extra.items():
        if name == "position_ids":
            position_ids = value
        elif name not in HARMLESS and value is not None and value is not False:
            shown = f"tensor {list(value.shape)}" if isinstance(value, torch.Tensor) else value
            raise NotImplementedError(f"{name}={shown}: not supported by PISA, only None")
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    batch, queries = query.shape[0], query.shape[2]
    if attention_mask is None:
        request = Request(bool(is_causal), None, None, scaling)
    elif (
        isinstance(attention_mask, torch.Tensor)
        and attention_mask.dtype == torch.int32
        and tuple(attention_mask.shape) in ((batch, 1, 1, 1), (batch, 1, 1, 2))
    ):
        lengths = attention_mask[:, 0, 0].unbind(1)
        if is_causal != (len(lengths) == 2):
            raise NotImplementedError(
                f"is_causal={is_causal}, but the mask is for"
                f" {'causal' if len(lengths) == 2 else 'bidirectional'} attention"
            )
        request = Request(
            bool(is_causal),
            lengths[0].contiguous() if is_causal else None,
            lengths[-1].contiguous(),
            scaling,
        )
    else:
        kind = type(attention_mask).__name__
        if isinstance(attention_mask, torch.Tensor):
            kind = f"{attention_mask.dtype} {list(attention_mask.shape)}"
        raise NotImplementedError(
            f"attention_mask of {kind}: masks of one's own are not supported by PISA, only padding"
            " on the right, as [batch, tokens] of 1 and 0 to the model"
        )
    if position_ids is not None and position_ids.ndim == 2 and position_ids.shape[1] == queries:
        _check_positions(position_ids, request)
    return request


def dense_step(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, request: Request
) -> torch.Tensor:
    """Dense attention [B, Hq, 1, Dv] of one query a row.

    query [B, Hq, 1, D], key [B, Hkv, Tk, D], value [B, Hkv, Tk, Dv].
    """
    visible = None
    if request.k_len is not None:
        end = request.k_len
        if request.q_start is not None:
            end = torch.minimum(end, request.q_start + 1)
        visible = torch.arange(key.shape[2], device=key.device) < end[:, None, None, None]
    grouped = query.shape[1] != key.shape[1]
    return scaled_dot_product_attention(
        query, key, value, attn_mask=visible, scale=request.scale, enable_gqa=grouped
    )


def attention_function(registered: Mapping[str, Any]) -> Callable[..., tuple[torch.Tensor, None]]:
    """What transformers calls for attention, with `registered` as the parameters of the last
    resort."""

    def pisa_attention(
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        scaling: float | None = None,
        dropout: float = 0.0,
        is_causal: bool | None = None,
        **extra: Any,
    ) -> tuple[torch.Tensor, None]:
        """query [B, Hq, Tq, D], key [B, Hkv, Tk, D], value [B, Hkv, Tk, Dv] -> [B, Tq, Hq, Dv]."""
        request = read_call(module, query, attention_mask, scaling, dropout, is_causal, extra)
        chosen = resolve_parameters(module, registered)
        if query.shape[2] == 1:
            out = dense_step(query, key, value, request)
        else:
            out = pisa.attention(query, key, value, **chosen, **request.keywords)
        return out.transpose(1, 2).contiguous(), None

    return pisa_attention


def register_function(name: str, function: Callable[..., tuple[torch.Tensor, None]]) -> None:
    """Makes `function` and `pisa_mask` the attention implementation `name`."""
    if not isinstance(name, str):
        raise TypeError(f"name={name!r}: must be a str, not {type(name).__name__}")
    # transformers gives a meaning of their own to names with "flash", and with signs in them.
    if not name.isidentifier() or "flash" in name:
        raise ValueError(f"name={name!r}: must be an identifier without 'flash' in it")
    if name == "eager" or (name in ALL_ATTENTION_FUNCTIONS and name not in _registered):
        raise ValueError(
            f"name={name!r}: is another attention implementation of transformers; choose a new name"
        )
    _registered.add(name)
    AttentionInterface.register(name, function)
    AttentionMaskInterface.register(name, pisa_mask)


def register(name: str = "pisa", **parameters: Any) -> None:
    """Adds PISA to transformers as the attention implementation `name`.

    `parameters` are keywords of `pisa.attention` (`PARAMETERS`); the context manager `parameters`
    and a dict `config.pisa` of the model go before them. Registering a name again replaces them.
    """
    check_names(parameters, "register")
    register_function(name, attention_function(dict(parameters)))
