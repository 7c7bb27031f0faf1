"""The operations. Each takes and returns arrays of NumPy, PyTorch, or another library with DLPack;
what comes back is of the library of the first argument. Inputs may have any strides but for the
last dimension, which must be contiguous; nothing is copied. Calls may come from several threads,
and release the GIL.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import _call as call
from ._arrays import empty, give_back, is_torch
from ._cuda import current_stream
from ._kernels import Kernel, Key, chip_of, get_kernel
from ._library import (
    ATTENTION,
    BUILD_PYRAMID,
    CHECK_INPUTS,
    EXPECT_INDICES,
    EXPECT_K_LEN,
    EXPECT_MANY_KEYS,
    EXPECT_Q_START,
    FORWARD,
    MANY_KEYS,
    ROUTE,
    WANT_COUNT,
    WANT_LSE,
    WANT_OPEN_SUMS,
    WANT_SCORES,
    WITHOUT_Q_START,
    library,
)
from ._params import Params, boolean, integer, make_params


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    topk: int = 16,
    block_size: int = 64,
    beam: int | None = None,
    rerank: int | None = None,
    leaf_atoms: int = 4,
    fanout: int = 2,
    query_block: int = 1,
    sink_blocks: int = 1,
    local_blocks: int = 2,
    summary_dtype: Any = None,
    softmax_scale: float | None = None,
    causal: bool = True,
    q_start: Any = None,
    k_len: Any = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    layout: str = "bshd",
    return_lse: bool = False,
    return_indices: bool = False,
    deterministic: bool = True,
    dense_below: int | None = None,
    union_hint: float | None = None,
    check: bool = False,
    backend: str = "auto",
) -> Any:
    """Attention of each query over the `topk` blocks of keys that a pyramid search finds for it.

    Args:
        q: [B, Tq, Hq, D], float32, float16 or bfloat16 (with layout "bhsd": [B, Hq, Tq, D]).
        k: [B, Tk, Hkv, D], v: [B, Tk, Hkv, Dv], of q's dtype. D and Dv: multiples of 8 up to 256.
        topk: K, blocks a query attends to, forced ones included.
        block_size: C, keys in a block.
        beam: W >= K, nodes kept at each level above the blocks; None is K, as in the paper.
        rerank: R, blocks that get an exact score: None is all candidates (the paper), 0 none.
        leaf_atoms: A, sub-blocks of a block in the score that comes before rerank; divides C.
        fanout: g, children of a node.
        query_block: Q, adjacent queries that share one selection.
        sink_blocks, local_blocks: blocks always selected: the first ones, and the query's own with
            those before it.
        summary_dtype: how the pyramid is stored; None is the keys' dtype.
        softmax_scale: factor of q . k; None is 1 / sqrt(D).
        causal: whether a query sees only keys up to its own position.
        q_start: position of query 0, an int or [B] ints; None is k_len - Tq, so that the last query
            stands at the last key. Without causal, None means that no query has a position, and no
            block is forced.
        k_len: keys that exist, an int or [B] ints; None is Tk. Nothing past it is read.
        cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k: packed sequences, not built yet.
        layout: "bshd" or "bhsd", of q, k, v and the output.
        deterministic: results are the same bits in every run, whatever is asked for here.
        dense_below: attend to all keys where Tk is smaller; only ever on request.
        union_hint: mean number of distinct blocks of 8 adjacent queries over K, >= 1; helps to pick
            a GPU strategy, never changes a result.
        check: report a list of blocks that has an entry twice.
        backend: "cpu", "cuda", or "auto": where the tensors are. On CUDA devices float16 and
            bfloat16 only; lengths that are on the device are not checked.

    Returns:
        out, of q's shape with Dv for D, in q's dtype; with return_lse then the natural
        log-sum-exp [B, Hq, Tq] float32; with return_indices then the selected blocks
        [B, Hkv, NQ, K] int32, ascending, padded with -1. A row that sees no key is 0, its lse -inf.

    Raises:
        ValueError, TypeError: an argument is not allowed; the message names it.
        NotImplementedError: it is allowed, but not built.
        RuntimeError: no memory, no compiler, or a check that failed.

    With PyTorch it works under torch.compile, autocast and inference mode. The backward pass is not
    built yet and raises NotImplementedError. Semantics: docs/Spec.md, sections 1 to 3 (after arXiv
    2609.31093).
    """
    options = (
        topk, block_size, beam, rerank, leaf_atoms, fanout,
        query_block, sink_blocks, local_blocks, summary_dtype, causal,
    )  # fmt: skip
    arguments = (
        options, softmax_scale, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, layout,
        return_lse, return_indices, deterministic, dense_below, union_hint, check, backend,
    )  # fmt: skip
    simple = q_start is None and k_len is None
    shortcut = _shortcuts.get(type(q)) if simple else None
    if shortcut is not None:
        done = shortcut[0](q, k, v, arguments)
        if done is not None:
            return done
    call.check_backend(backend, "q", q)
    call.check_choice("layout", layout, call.LAYOUTS)
    for name, packed in (
        ("cu_seqlens_q", cu_seqlens_q),
        ("cu_seqlens_k", cu_seqlens_k),
        ("max_seqlen_q", max_seqlen_q),
        ("max_seqlen_k", max_seqlen_k),
    ):
        if packed is not None:
            raise NotImplementedError(f"{name}: packed sequences are not built yet")
    if deterministic is not True:
        boolean("deterministic", deterministic)
    if union_hint is not None and not float(union_hint) >= 1:
        raise ValueError(f"expected union_hint to be at least 1 or None, but got {union_hint}")
    if dense_below is not None:
        length = k.shape[1 if layout == "bshd" else 2] if hasattr(k, "shape") else 0
        if length < integer("dense_below", dense_below):
            if return_indices:
                raise ValueError(
                    f"expected return_indices=False: with Tk = {length} below dense_below ="
                    f" {dense_below} nothing is selected"
                )
            make_params_of(options)
            return _dense(
                q, k, v, block_size, causal, softmax_scale, q_start, k_len, layout, return_lse
            )
    if is_torch(q):
        from ._torch import attention as forward
    else:
        forward = attention_arrays
    results = forward(
        q, k, v, options, softmax_scale, q_start, k_len, layout, return_lse, return_indices, check
    )
    if simple and dense_below is None and type(q) in _shortcuts:
        _shortcuts[type(q)][1](q, k, v, options, arguments, softmax_scale, layout, check, results)
    out, lse, indices = results
    if not return_lse and not return_indices:
        return out
    return (out, *([lse] if return_lse else []), *([indices] if return_indices else []))


# For types of arrays that have a shorter way for a repeated call: that way, which gives None where
# it does not serve, and what makes it know a call.
_shortcuts: dict[type, tuple[Callable[..., Any], Callable[..., None]]] = {}


def set_shortcut(kind: type, again: Callable[..., Any], remember: Callable[..., None]) -> None:
    """Makes `attention` take a shorter way for repeated calls on arrays of this very type."""
    _shortcuts[kind] = (again, remember)


OPTION_NAMES = (
    "topk", "block_size", "beam", "rerank", "leaf_atoms", "fanout",
    "query_block", "sink_blocks", "local_blocks", "summary_dtype", "causal",
)  # fmt: skip


def make_params_of(options: tuple[Any, ...]) -> Params:
    """Params of values in the order of OPTION_NAMES."""
    return make_params(**dict(zip(OPTION_NAMES, options, strict=True)))


def check_sizes(q: call.Heads, k: call.Heads, v: call.Heads) -> None:
    """Raises if q, k and v do not belong together."""
    for name, other in (("k", k), ("v", v)):
        call.check_same(name, "dtype", other.dtype, "q", q.dtype)
        call.check_device(name, other, "q", q)
        call.check_same(name, "B", other.batch, "q", q.batch)
    call.check_same("k", "D", k.dim, "q", q.dim)
    call.check_same("v", "Tk", v.length, "k", k.length)
    call.check_same("v", "Hkv", v.heads, "k", k.heads)
    call.check_heads(q.heads, k.heads)


def forward_key(q: call.Heads, k: call.Heads, v: call.Heads, params: Params, flags: int) -> Key:
    """The kernel of a whole forward pass; raises if q, k and v do not belong together."""
    check_sizes(q, k, v)
    chip = chip_of(q.device)
    return (FORWARD, flags, q.dtype, q.heads, k.heads, q.dim, v.dim, params.topk, params, chip)


def _output_shape(q: call.Heads, value_dim: int, layout: str) -> tuple[int, ...]:
    if layout == "bshd":
        return (q.batch, q.length, q.heads, value_dim)
    return (q.batch, q.heads, q.length, value_dim)


def query_blocks(length: Any, query_block: int) -> Any:
    """NQ; of a symbolic length too."""
    return (length + query_block - 1) // query_block


def _add_lengths(arrays: dict[str, Any], sizes: call.Heads, k_len: Any, q_start: Any) -> None:
    """Adds those of k_len and q_start that are given to a kernel's arrays. `sizes`: of k."""
    for name, value, limit in (("k_len", k_len, sizes.length), ("q_start", q_start, None)):
        if value is None:
            continue
        if sizes.device < 0:
            arrays[name] = call.lengths(name, value, sizes.batch)
        else:
            arrays[name] = call.device_lengths(name, value, sizes.batch, arrays["k"], limit)


def _hints(keys: int, k_len: Any, q_start: Any, return_indices: bool = False) -> int:
    """What a call gives, for get_kernel. `keys`: Tk."""
    return (
        (EXPECT_K_LEN if k_len is not None else 0)
        | (EXPECT_Q_START if q_start is not None else 0)
        | (EXPECT_INDICES if return_indices else 0)
        | (EXPECT_MANY_KEYS if keys >= MANY_KEYS else 0)
    )


def _run(kernel: Kernel, arrays: dict[str, Any], scale: float, layout: str, device: int,
         measure: bool = False) -> None:  # fmt: skip
    stream = current_stream(arrays["k"], device) if device >= 0 else None
    kernel(arrays, scale, layout == "bshd", measure, stream)


def forward_flags(causal: bool, q_start: Any, return_lse: bool, check: bool) -> int:
    """Flags of PisaKernelSpec for a forward pass."""
    return (
        (WANT_LSE if return_lse else 0)
        | (CHECK_INPUTS if check else 0)
        | (WITHOUT_Q_START if q_start is None and not causal else 0)
    )


def attention_arrays(
    q: Any,
    k: Any,
    v: Any,
    options: tuple[Any, ...],
    softmax_scale: float | None,
    q_start: Any,
    k_len: Any,
    layout: str,
    return_lse: bool,
    return_indices: bool,
    check: bool,
    measure: bool = False,
) -> tuple[Any, Any, Any]:
    """(out, lse, indices) of a forward pass; None for what is not asked for. `measure` keeps the
    call's scratch with the kernel."""
    q_sizes = call.heads_of("q", q, layout)
    k_sizes = call.heads_of("k", k, layout)
    v_sizes = call.heads_of("v", v, layout)
    params = make_params_of(options)
    flags = forward_flags(
        params.causal, q_start, boolean("return_lse", return_lse), boolean("check", check)
    )
    hints = _hints(k_sizes.length, k_len, q_start, return_indices)
    kernel = get_kernel(forward_key(q_sizes, k_sizes, v_sizes, params, flags), hints)
    batch = q_sizes.batch
    out = empty(q, _output_shape(q_sizes, v_sizes.dim, layout), q_sizes.dtype)
    arrays = {"q": q, "k": k, "v": v, "out": out}
    lse = indices = None
    if return_lse:
        lse = arrays["lse"] = empty(q, (batch, q_sizes.heads, q_sizes.length), "f32")
    if return_indices:
        blocks = query_blocks(q_sizes.length, params.query_block)
        indices = empty(q, (batch, k_sizes.heads, blocks, params.topk), "i32")
        arrays["indices"] = indices
    _add_lengths(arrays, k_sizes, k_len, q_start)
    scale = call.softmax_scale(softmax_scale, q_sizes.dim)
    _run(kernel, arrays, scale, layout, q_sizes.device, measure)
    return (
        give_back(q, out),
        None if lse is None else give_back(q, lse),
        None if indices is None else give_back(q, indices),
    )


def _dense(
    q: Any,
    k: Any,
    v: Any,
    block_size: int,
    causal: bool,
    scale: float | None,
    q_start: Any,
    k_len: Any,
    layout: str,
    return_lse: bool,
) -> Any:
    """Attention over all keys by the same kernels: every block is listed."""
    import numpy

    q_sizes, k_sizes = call.heads_of("q", q, layout), call.heads_of("k", k, layout)
    blocks = -(-k_sizes.length // block_size)
    # Code is made for a width: the next power of two, so that few are made.
    width = 1 << max(0, blocks - 1).bit_length()
    row = numpy.arange(width, dtype=numpy.int32)
    row[blocks:] = -1
    shape = (q_sizes.batch, k_sizes.heads, q_sizes.length, width)
    if is_torch(q):
        import torch

        lists: Any = torch.from_numpy(row).to(q.device).expand(shape)
    else:
        lists = numpy.broadcast_to(row, shape)
    return block_sparse_attention(
        q, k, v, lists, block_size=block_size, causal=causal, softmax_scale=scale,
        q_start=q_start, k_len=k_len, layout=layout, return_lse=return_lse,
    )  # fmt: skip


@dataclass(frozen=True)
class Pyramid:
    """The pooled keys of `build_pyramid`.

    summaries: [B, Hkv, rows, D], the means of all nodes, level by level, leaves first.
    atoms: [B, Hkv, leaves, A, D] and outlier: [B, Hkv, leaves] int32, for rerank; or None.
    open_sums: [B, Hkv, levels, D] float32, the sums of the last node of each level; or None.
    """

    summaries: Any
    atoms: Any
    outlier: Any
    open_sums: Any
    block_size: int
    fanout: int
    leaf_atoms: int


def build_pyramid(
    k: Any,
    *,
    block_size: int = 64,
    fanout: int = 2,
    leaf_atoms: int = 4,
    summary_dtype: Any = None,
    k_len: Any = None,
    layout: str = "bshd",
    return_atoms: bool = False,
    return_open_sums: bool = False,
    backend: str = "auto",
) -> Pyramid:
    """Pools keys into a pyramid of means (docs/Spec.md section 1).

    Args:
        k: [B, Tk, Hkv, D], float32, float16 or bfloat16 (with layout "bhsd": [B, Hkv, Tk, D]).
        block_size: C, keys in a leaf. fanout: g, children of a node.
        leaf_atoms: A, sub-blocks of a leaf; divides C. Only with return_atoms.
        summary_dtype: how means are stored; None is k's dtype.
        k_len: keys that exist, an int or [B] ints; None is Tk.
        return_atoms: also what `route` with rerank needs.
        return_open_sums: also the sums of the nodes that a next key would extend.

    Raises as `attention` does.
    """
    call.check_backend(backend, "k", k)
    call.check_choice("layout", layout, call.LAYOUTS)
    sizes = call.heads_of("k", k, layout)
    boolean("return_atoms", return_atoms)
    boolean("return_open_sums", return_open_sums)
    params = make_params(
        block_size=block_size,
        fanout=fanout,
        leaf_atoms=leaf_atoms,
        summary_dtype=summary_dtype,
        rerank=0 if return_atoms else None,
    )
    key: Key = (
        BUILD_PYRAMID,
        WANT_OPEN_SUMS if return_open_sums else 0,
        sizes.dtype, sizes.heads, sizes.heads, sizes.dim, sizes.dim, params.topk, params,
        chip_of(sizes.device),
    )  # fmt: skip
    kernel = get_kernel(key, _hints(sizes.length, k_len, None))
    rows = library().pisaGetPyramidRows(sizes.length, params.block_size, params.fanout)
    levels = library().pisaGetPyramidLevels(sizes.length, params.block_size, params.fanout)
    leaves = -(-sizes.length // params.block_size)
    summary = params.summary_dtype or sizes.dtype
    outer = (sizes.batch, sizes.heads)
    arrays = {"k": k, "pyramid": empty(k, (*outer, rows, sizes.dim), summary)}
    if return_atoms:
        arrays["atoms"] = empty(k, (*outer, leaves, params.leaf_atoms, sizes.dim), summary)
        arrays["outlier"] = empty(k, (*outer, leaves), "i32")
    if return_open_sums:
        arrays["open_sums"] = empty(k, (*outer, levels, sizes.dim), "f32")
    _add_lengths(arrays, sizes, k_len, None)
    _run(kernel, arrays, 1.0, layout, sizes.device)

    def result(name: str) -> Any:
        return give_back(k, arrays[name]) if name in arrays else None

    return Pyramid(
        result("pyramid"), result("atoms"), result("outlier"), result("open_sums"),
        params.block_size, params.fanout, params.leaf_atoms,
    )  # fmt: skip


def route(
    q: Any,
    k: Any,
    pyramid: Pyramid,
    *,
    topk: int = 16,
    beam: int | None = None,
    rerank: int | None = None,
    query_block: int = 1,
    sink_blocks: int = 1,
    local_blocks: int = 2,
    softmax_scale: float | None = None,
    causal: bool = True,
    q_start: Any = None,
    k_len: Any = None,
    layout: str = "bshd",
    return_count: bool = False,
    return_scores: bool = False,
    backend: str = "auto",
) -> Any:
    """The blocks that `attention` would attend to (docs/Spec.md section 2).

    Args: as for `attention`; `pyramid` is that of the same k and k_len, with atoms for rerank.

    Returns:
        indices [B, Hkv, NQ, K] int32, ascending, padded with -1; with return_count then how many
        entries are blocks, [B, Hkv, NQ] int32; with return_scores then the score of each entry,
        [B, Hkv, NQ, K] float32 (natural logarithm, summed over the group's heads; -inf at -1).

    Raises as `attention` does.
    """
    call.check_backend(backend, "q", q)
    call.check_choice("layout", layout, call.LAYOUTS)
    if not isinstance(pyramid, Pyramid):
        raise TypeError(
            f"expected pyramid to be what build_pyramid returns, but got {type(pyramid).__name__}"
        )
    boolean("return_count", return_count)
    boolean("return_scores", return_scores)
    q_sizes, k_sizes = call.heads_of("q", q, layout), call.heads_of("k", k, layout)
    call.check_same("k", "dtype", k_sizes.dtype, "q", q_sizes.dtype)
    call.check_same("k", "D", k_sizes.dim, "q", q_sizes.dim)
    call.check_heads(q_sizes.heads, k_sizes.heads)
    if rerank is not None and pyramid.atoms is None:
        raise ValueError(
            f"expected a pyramid with atoms for rerank = {rerank}: build it with return_atoms=True"
        )
    params = make_params(
        topk=topk,
        block_size=pyramid.block_size,
        beam=beam,
        rerank=rerank,
        leaf_atoms=pyramid.leaf_atoms,
        fanout=pyramid.fanout,
        query_block=query_block,
        sink_blocks=sink_blocks,
        local_blocks=local_blocks,
        summary_dtype=pyramid.summaries.dtype,
        causal=causal,
    )
    flags = (
        (WITHOUT_Q_START if q_start is None and not params.causal else 0)
        | (WANT_COUNT if return_count else 0)
        | (WANT_SCORES if return_scores else 0)
    )
    key: Key = (
        ROUTE, flags, q_sizes.dtype, q_sizes.heads, k_sizes.heads,
        q_sizes.dim, q_sizes.dim, params.topk, params, chip_of(q_sizes.device),
    )  # fmt: skip
    kernel = get_kernel(key, _hints(k_sizes.length, k_len, q_start))
    outer = (q_sizes.batch, k_sizes.heads, query_blocks(q_sizes.length, params.query_block))
    arrays = {"q": q, "k": k, "pyramid": pyramid.summaries}
    if rerank is not None:
        arrays |= {"atoms": pyramid.atoms, "outlier": pyramid.outlier}
    outputs = ["indices"]
    arrays["indices"] = empty(q, (*outer, params.topk), "i32")
    if return_count:
        arrays["count"] = empty(q, outer, "i32")
        outputs.append("count")
    if return_scores:
        arrays["scores"] = empty(q, (*outer, params.topk), "f32")
        outputs.append("scores")
    _add_lengths(arrays, k_sizes, k_len, q_start)
    scale = call.softmax_scale(softmax_scale, q_sizes.dim)
    _run(kernel, arrays, scale, layout, q_sizes.device)
    results = tuple(give_back(q, arrays[name]) for name in outputs)
    return results[0] if len(results) == 1 else results


def block_sparse_attention(
    q: Any,
    k: Any,
    v: Any,
    indices: Any,
    *,
    block_size: int = 64,
    query_block: int = 1,
    softmax_scale: float | None = None,
    causal: bool = True,
    q_start: Any = None,
    k_len: Any = None,
    layout: str = "bshd",
    return_lse: bool = False,
    check: bool = False,
    backend: str = "auto",
) -> Any:
    """Attention of each query over given blocks of keys (docs/Spec.md section 3).

    Args:
        q, k, v, block_size, softmax_scale, causal, q_start, k_len, layout: as for `attention`.
        indices: [B, Hkv, NQ, any width] int32, block numbers. Entries that are -1, out of range or
            in the future contribute nothing, wherever they stand; the others must be distinct.
        query_block: Q, adjacent queries that share one list, NQ = ceil(Tq / Q).
        check: report a list that has an entry twice; otherwise its row is unspecified but finite.

    Returns: out, with return_lse then lse, as `attention` does. Raises as that does.
    """
    call.check_backend(backend, "q", q)
    call.check_choice("layout", layout, call.LAYOUTS)
    boolean("return_lse", return_lse)
    boolean("check", check)
    if is_torch(q):
        from ._torch import block_sparse_attention as forward
    else:
        forward = block_sparse_arrays
    out, lse = forward(
        q, k, v, indices, block_size, query_block, softmax_scale, causal, q_start, k_len,
        layout, return_lse, check,
    )  # fmt: skip
    return (out, lse) if return_lse else out


def block_sparse_arrays(
    q: Any,
    k: Any,
    v: Any,
    indices: Any,
    block_size: int,
    query_block: int,
    softmax_scale: float | None,
    causal: bool,
    q_start: Any,
    k_len: Any,
    layout: str,
    return_lse: bool,
    check: bool,
) -> tuple[Any, Any]:
    """(out, lse) over given blocks; lse is None if it is not asked for."""
    q_sizes = call.heads_of("q", q, layout)
    k_sizes = call.heads_of("k", k, layout)
    v_sizes = call.heads_of("v", v, layout)
    shape: tuple[int, ...] = tuple(getattr(indices, "shape", ()))
    if len(shape) != 4:
        raise ValueError(
            f"expected indices to be [B, Hkv, NQ, K], but got shape {list(shape)}; "
            "from_block_lists converts other orders"
        )
    block, shared = integer("block_size", block_size), integer("query_block", query_block)
    width = int(shape[3])
    # The selection is given: what would choose it only has to be in range.
    forced = 1 + -(-max(shared - 1, 0) // max(block, 1))
    params = make_params(
        topk=max(width, forced, 1) if width <= (4096 if q_sizes.device < 0 else 128) else forced,
        block_size=block,
        query_block=shared,
        sink_blocks=0,
        local_blocks=1,
        causal=causal,
    )
    flags = forward_flags(params.causal, q_start, return_lse, check)
    check_sizes(q_sizes, k_sizes, v_sizes)
    key: Key = (
        ATTENTION, flags, q_sizes.dtype, q_sizes.heads, k_sizes.heads,
        q_sizes.dim, v_sizes.dim, width, params, chip_of(q_sizes.device),
    )  # fmt: skip
    kernel = get_kernel(key, _hints(k_sizes.length, k_len, q_start))
    batch = q_sizes.batch
    out = empty(q, _output_shape(q_sizes, v_sizes.dim, layout), q_sizes.dtype)
    arrays = {"q": q, "k": k, "v": v, "indices": indices, "out": out}
    lse = None
    if return_lse:
        lse = arrays["lse"] = empty(q, (batch, q_sizes.heads, q_sizes.length), "f32")
    _add_lengths(arrays, k_sizes, k_len, q_start)
    scale = call.softmax_scale(softmax_scale, q_sizes.dim)
    _run(kernel, arrays, scale, layout, q_sizes.device)
    return give_back(q, out), None if lse is None else give_back(q, lse)
