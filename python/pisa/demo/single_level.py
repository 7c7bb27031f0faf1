"""The selection that PISA is compared with: one level, and a block's score is that of its mean key.

The same blocks are forced, the heads of a group share a selection, and the attention over what was
selected is PISA's own, so that only the search differs.
"""

from typing import Any

import torch

import pisa

from ..integrations.transformers import (
    dense_step,
    read_call,
    register_function,
    resolve_parameters,
)

NAME = "mean_scored"

# The defaults of `pisa.attention`.
SINK_BLOCKS, LOCAL_BLOCKS, BLOCK_SIZE = 1, 2, 64


def select(q: torch.Tensor, k: torch.Tensor, topk: int, block_size: int) -> torch.Tensor:
    """Indices [B, Hkv, Tq, K] int32, ascending, padded with -1; the last query is at the last key.

    q [B, Hq, Tq, D], k [B, Hkv, Tk, D]. The score of a block is the sum over the group's heads of
    q . mean(keys); blocks in the future are no candidates.
    """
    batch, heads, queries, depth = q.shape
    _, kv_heads, keys, _ = k.shape
    blocks = -(-keys // block_size)
    whole = keys // block_size
    means = k.new_zeros((batch, kv_heads, blocks, depth))
    # The mean of an incomplete last block is never needed: who sees it has it as its own.
    complete = k[:, :, : whole * block_size]
    means[:, :, :whole] = complete.unflatten(2, (whole, block_size)).mean(3)
    summed = q.unflatten(1, (kv_heads, heads // kv_heads)).sum(2)
    current = (torch.arange(queries, device=q.device) + keys - queries) // block_size
    block = torch.arange(blocks, device=q.device)
    visible = block <= current[:, None]
    forced = visible & ((block < SINK_BLOCKS) | (block > current[:, None] - LOCAL_BLOCKS))
    scores = (summed @ means.transpose(2, 3)).float()
    scores = scores.masked_fill(forced, torch.inf).masked_fill(~visible, -torch.inf)
    chosen = scores.topk(min(topk, blocks)).indices
    # What is not visible becomes the largest number, so that it is last.
    chosen = chosen.masked_fill(chosen > current[:, None], blocks).sort().values
    indices = chosen.masked_fill(chosen == blocks, -1).int()
    return torch.nn.functional.pad(indices, (0, topk - indices.shape[3]), value=-1)


def mean_scored_attention(
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
    """An attention function of transformers: query [B, Hq, Tq, D], key and value [B, Hkv, Tk, D]
    -> [B, Tq, Hq, D]. Its parameters are topk and block_size, from where PISA's come from."""
    request = read_call(module, query, attention_mask, scaling, dropout, is_causal, extra)
    if not request.causal or request.k_len is not None:
        raise NotImplementedError(f"{NAME}: only causal attention without padding")
    chosen = resolve_parameters(module, {})
    topk, block_size = chosen.pop("topk"), chosen.pop("block_size", BLOCK_SIZE)
    if chosen:
        raise NotImplementedError(f"{NAME}: {', '.join(chosen)}: only topk and block_size")
    if query.shape[2] == 1:
        out = dense_step(query, key, value, request)
    else:
        indices = select(query, key, topk, block_size)
        out = pisa.block_sparse_attention(
            query, key, value, indices, block_size=block_size, **request.keywords
        )
    return out.transpose(1, 2).contiguous(), None


def register() -> None:
    """Adds it to transformers as the attention implementation `NAME`."""
    register_function(NAME, mean_scored_attention)
