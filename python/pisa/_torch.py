"""The operations as PyTorch's: `torch.ops.pisa.*`, which torch.compile, fake tensors and autograd
know. An eager call without any of those goes to the kernel directly: the dispatcher's path costs
more than the rest of a call."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from . import _call as call
from . import ops
from ._cuda import current_stream
from ._kernels import Kernel, get_kernel
from ._params import boolean

_NAMES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
_UNBUILT = (
    "the backward pass of pisa.{0} is not built yet: call it under torch.no_grad(), or on tensors"
    " that do not require a gradient"
)


def _plain_functions() -> tuple[Any, ...] | None:
    """What tells whether something of PyTorch's listens to calls; None where this version of
    PyTorch has other names for it, and then no call takes the direct way."""
    try:
        from torch.utils._python_dispatch import _len_torch_dispatch_stack

        found = (
            _len_torch_dispatch_stack,
            torch._C._len_torch_function_stack,
            torch._C._functorch.peek_interpreter_stack,
            torch.jit.is_tracing,
            torch._C._is_any_autocast_enabled,
        )
        for function in found:
            function()
    except Exception:
        return None
    return found


_LISTENERS = _plain_functions()


def _is_plain(q: Any, k: Any, v: Any) -> bool:
    """Whether a call on these is an ordinary eager one on one device: nothing traces it, transforms
    it, casts it, or wants its gradient."""
    if torch.compiler.is_compiling() or _LISTENERS is None:
        return False
    if type(q) is not Tensor or type(k) is not Tensor or type(v) is not Tensor:
        return False
    dispatch, function, functorch, tracing, autocast = _LISTENERS
    if dispatch() or function() or functorch() is not None or tracing() or autocast():
        return False
    if (q.requires_grad or k.requires_grad or v.requires_grad) and torch.is_grad_enabled():
        return False
    device = q.device
    return (q.is_cpu or q.is_cuda) and k.device == device and v.device == device


def _check_tensors(q: Tensor, **others: Any) -> None:
    for name, tensor in others.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"expected {name} to be a torch.Tensor like q, but got {type(tensor).__name__}"
            )
        if tensor.device != q.device:
            raise ValueError(
                f"expected {name} to be on {q.device}, as q is, but got {tensor.device}"
            )


def _autocast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in autocast's dtype where that is on, as attention is cast elsewhere too."""
    kind = tensors[0].device.type
    if kind not in ("cpu", "cuda") or not torch.is_autocast_enabled(kind):
        return tensors
    dtype = torch.get_autocast_dtype(kind)
    return tuple(t.to(dtype) if t.dtype in _NAMES else t for t in tensors)


def _positions(name: str, value: Any, like: Tensor) -> Tensor | None:
    """k_len or q_start as an integer tensor [B]; its values are not read here."""
    if value is None:
        return None
    batch = like.shape[0]
    if not isinstance(value, Tensor):
        if isinstance(value, int) and not isinstance(value, bool):
            if abs(value) >= 1 << 31:
                raise ValueError(f"expected {name} to fit in int32, but got {value}")
            return torch.full((batch,), value, dtype=torch.int32, device=like.device)
        return torch.from_numpy(call.lengths(name, value, batch)).to(like.device)
    if value.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"expected {name} to be of int32 or int64, but got {value.dtype}")
    if value.dim() == 0:
        value = value.expand(batch)
    if value.shape != (batch,):
        raise ValueError(
            f"expected {name} to be one number or [B] = [{batch}], but got shape"
            f" {list(value.shape)}"
        )
    return value


# --------------------------------------------------------------------------------------- attention


@torch.library.custom_op("pisa::attention", mutates_args=(), device_types=("cpu", "cuda"))
def attention_op(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    q_start: Tensor | None,
    k_len: Tensor | None,
    topk: int,
    block_size: int,
    beam: int | None,
    rerank: int | None,
    leaf_atoms: int,
    fanout: int,
    query_block: int,
    sink_blocks: int,
    local_blocks: int,
    summary_dtype: str | None,
    causal: bool,
    softmax_scale: float | None,
    layout: str,
    return_lse: bool,
    return_indices: bool,
    check: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """(out, lse, indices) of `pisa.attention`; empty tensors for what is not asked for."""
    options = (
        topk, block_size, beam, rerank, leaf_atoms, fanout,
        query_block, sink_blocks, local_blocks, summary_dtype, causal,
    )  # fmt: skip
    q, k, v = q.detach(), k.detach(), v.detach()
    out, lse, indices = ops.attention_arrays(
        q, k, v, options, softmax_scale, q_start, k_len, layout, return_lse, return_indices, check
    )
    if lse is None:
        lse = q.new_empty(0, dtype=torch.float32)
    if indices is None:
        indices = q.new_empty(0, dtype=torch.int32)
    return out, lse, indices


@attention_op.register_fake
def _attention_fake(  # type: ignore[no-untyped-def]
    q, k, v, q_start, k_len, topk, block_size, beam, rerank, leaf_atoms, fanout, query_block,
    sink_blocks, local_blocks, summary_dtype, causal, softmax_scale, layout, return_lse,
    return_indices, check,
):  # fmt: skip
    heads, length = (2, 1) if layout == "bshd" else (1, 2)
    lse = (q.shape[0], q.shape[heads], q.shape[length]) if return_lse else (0,)
    blocks = ops.query_blocks(q.shape[length], query_block)
    indices = (q.shape[0], k.shape[heads], blocks, topk) if return_indices else (0,)
    return (
        q.new_empty((*q.shape[:3], v.shape[3])),
        q.new_empty(lse, dtype=torch.float32),
        q.new_empty(indices, dtype=torch.int32),
    )


def _no_setup(ctx: Any, inputs: Any, output: Any) -> None:
    pass


def _attention_backward(ctx: Any, *gradients: Any) -> Any:
    raise NotImplementedError(_UNBUILT.format("attention"))


attention_op.register_autograd(_attention_backward, setup_context=_no_setup)


@dataclass(slots=True)
class _Plan:
    """What a repeated call needs: its kernel, and the shapes of what it allocates."""

    kernel: Kernel
    scale: float
    inside: bool
    device: torch.device
    ordinal: int  # -1 on the CPU
    out: tuple[int, ...]
    lse: tuple[int, ...] | None
    indices: tuple[int, ...] | None


# Calls that were made, by all that they depend on but the numbers in the tensors. Bounded, because
# every length is an entry of its own.
_plans: dict[Any, _Plan] = {}
_MOST_PLANS = 4096


def attention_again(q: Tensor, k: Tensor, v: Tensor, arguments: tuple[Any, ...]) -> Any:
    """The result of a call whose like was made before; None if there was none, or if something
    listens to it. This is the way of nearly all calls, hence short."""
    if not _is_plain(q, k, v):
        return None
    try:
        plan = _plans.get((q.dtype, q.device, q.shape, k.shape, v.shape, arguments))
    except TypeError:  # an argument that cannot be a key is none that was right before
        return None
    if plan is None:
        return None
    device = plan.device
    stream = current_stream(q, plan.ordinal) if plan.ordinal >= 0 else None
    out = torch.empty(plan.out, dtype=q.dtype, device=device)
    if plan.lse is None and plan.indices is None:
        plan.kernel.run(
            ("q", "k", "v", "out"), (q, k, v, out), plan.scale, plan.inside, False, stream
        )
        return out
    names: tuple[str, ...] = ("q", "k", "v", "out")
    results: tuple[Tensor, ...] = (out,)
    if plan.lse is not None:
        names += ("lse",)
        results += (torch.empty(plan.lse, dtype=torch.float32, device=device),)
    if plan.indices is not None:
        names += ("indices",)
        results += (torch.empty(plan.indices, dtype=torch.int32, device=device),)
    plan.kernel.run(names, (q, k, v, *results), plan.scale, plan.inside, False, stream)
    return results


def remember_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    options: tuple[Any, ...],
    arguments: tuple[Any, ...],
    softmax_scale: float | None,
    layout: str,
    check: bool,
    results: tuple[Any, Any, Any],
) -> None:
    """Makes `attention_again` know a call without lengths that has just succeeded."""
    if not _is_plain(q, k, v):
        return
    q_sizes = call.heads_of("q", q, layout)
    k_sizes = call.heads_of("k", k, layout)
    v_sizes = call.heads_of("v", v, layout)
    params = ops.make_params_of(options)
    out, lse, indices = results
    flags = ops.forward_flags(params.causal, None, lse is not None, check)
    if len(_plans) >= _MOST_PLANS:
        _plans.clear()
    _plans[(q.dtype, q.device, q.shape, k.shape, v.shape, arguments)] = _Plan(
        get_kernel(ops.forward_key(q_sizes, k_sizes, v_sizes, params, flags)),
        call.softmax_scale(softmax_scale, q_sizes.dim),
        layout == "bshd",
        q.device,
        q_sizes.device,
        tuple(out.shape),
        None if lse is None else tuple(lse.shape),
        None if indices is None else tuple(indices.shape),
    )


ops.set_shortcut(Tensor, attention_again, remember_attention)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    options: tuple[Any, ...],
    softmax_scale: float | None,
    q_start: Any,
    k_len: Any,
    layout: str,
    return_lse: bool,
    return_indices: bool,
    check: bool,
) -> tuple[Any, Any, Any]:
    """As `ops.attention_arrays`, for tensors."""
    _check_tensors(q, k=k, v=v)
    q, k, v = _autocast(q, k, v)
    if _is_plain(q, k, v):
        return ops.attention_arrays(
            q, k, v, options, softmax_scale, q_start, k_len, layout,
            return_lse, return_indices, check,
        )  # fmt: skip
    *numbers, summary_dtype, causal = options
    if isinstance(summary_dtype, torch.dtype):
        summary_dtype = _NAMES.get(summary_dtype, str(summary_dtype))
    out, lse, indices = torch.ops.pisa.attention(
        q, k, v, _positions("q_start", q_start, q), _positions("k_len", k_len, q),
        *numbers, summary_dtype, boolean("causal", causal), softmax_scale, layout,
        boolean("return_lse", return_lse), boolean("return_indices", return_indices),
        boolean("check", check),
    )  # fmt: skip
    return out, lse, indices


# -------------------------------------------------------------------------- block-sparse attention


@torch.library.custom_op(
    "pisa::block_sparse_attention", mutates_args=(), device_types=("cpu", "cuda")
)
def block_sparse_op(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    indices: Tensor,
    q_start: Tensor | None,
    k_len: Tensor | None,
    block_size: int,
    query_block: int,
    softmax_scale: float | None,
    causal: bool,
    layout: str,
    return_lse: bool,
    check: bool,
) -> tuple[Tensor, Tensor]:
    """(out, lse) of `pisa.block_sparse_attention`; an empty lse if it is not asked for."""
    q, k, v = q.detach(), k.detach(), v.detach()
    out, lse = ops.block_sparse_arrays(
        q, k, v, indices, block_size, query_block, softmax_scale, causal, q_start, k_len,
        layout, return_lse, check,
    )  # fmt: skip
    return out, q.new_empty(0, dtype=torch.float32) if lse is None else lse


@block_sparse_op.register_fake
def _block_sparse_fake(  # type: ignore[no-untyped-def]
    q, k, v, indices, q_start, k_len, block_size, query_block, softmax_scale, causal, layout,
    return_lse, check,
):  # fmt: skip
    heads, length = (2, 1) if layout == "bshd" else (1, 2)
    lse = (q.shape[0], q.shape[heads], q.shape[length]) if return_lse else (0,)
    return q.new_empty((*q.shape[:3], v.shape[3])), q.new_empty(lse, dtype=torch.float32)


def _block_sparse_backward(ctx: Any, *gradients: Any) -> Any:
    raise NotImplementedError(_UNBUILT.format("block_sparse_attention"))


block_sparse_op.register_autograd(_block_sparse_backward, setup_context=_no_setup)


def block_sparse_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    indices: Tensor,
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
    """As `ops.block_sparse_arrays`, for tensors."""
    _check_tensors(q, k=k, v=v, indices=indices)
    q, k, v = _autocast(q, k, v)
    if _is_plain(q, k, v):
        return ops.block_sparse_arrays(
            q, k, v, indices, block_size, query_block, softmax_scale, causal, q_start, k_len,
            layout, return_lse, check,
        )  # fmt: skip
    out, lse = torch.ops.pisa.block_sparse_attention(
        q, k, v, indices, _positions("q_start", q_start, q), _positions("k_len", k_len, q),
        block_size, query_block, softmax_scale, boolean("causal", causal), layout,
        return_lse, check,
    )  # fmt: skip
    return out, lse
