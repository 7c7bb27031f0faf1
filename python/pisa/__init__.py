"""Pyramid Top-K Sparse Attention (PISA, arXiv 2609.31093), compiled for the machine it runs on.

Symbols in all docstrings: B batch; Tq, Tk lengths of queries and keys; Hq query heads, Hkv
key/value heads, G = Hq // Hkv (query head h reads kv head h // G); D head dimension of queries and
keys, Dv that of values; C block_size, g fanout, K topk, W beam, R rerank, A leaf_atoms, Q
query_block; NQ = ceil(Tq / Q). Lengths are in tokens, sizes in elements, times in milliseconds.

    >>> import numpy as np
    >>> import pisa
    >>> rng = np.random.default_rng(0)
    >>> q = rng.standard_normal((1, 1000, 8, 64), np.float32)  # [B, Tq, Hq, D]
    >>> k, v = rng.standard_normal((2, 1, 1000, 2, 64), np.float32)  # [B, Tk, Hkv, D] each
    >>> out, indices = pisa.attention(q, k, v, topk=8, return_indices=True)
    >>> out.shape, indices.shape, indices[0, 1, 999].tolist()[-2:]
    ((1, 1000, 8, 64), (1, 2, 1000, 8), [14, 15])
"""

import sys as _sys

from ._threads import get_num_threads, set_num_threads
from .compiler import Module, compile
from .explanation import Explanation, explain
from .indices import from_block_lists, to_block_lists
from .ops import Pyramid, attention, block_sparse_attention, build_pyramid, route

if "torch" in _sys.modules:
    # Programs that torch.export saved name the operators before anything has called them.
    from . import _torch as _torch

__version__ = "0.1.0"

__all__ = [
    "Explanation",
    "Module",
    "Pyramid",
    "attention",
    "block_sparse_attention",
    "build_pyramid",
    "compile",
    "explain",
    "from_block_lists",
    "get_num_threads",
    "route",
    "set_num_threads",
    "to_block_lists",
]
