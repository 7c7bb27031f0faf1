"""What a call would do, and why."""

from dataclasses import dataclass, field
from math import prod
from typing import Any

from . import _call as call
from . import ops
from ._cuda import device
from ._kernels import compiled_kernel, explain_spec
from ._library import library
from ._params import Params
from ._threads import get_num_threads

_BYTES = {"f32": 4, "f16": 2, "bf16": 2}


@dataclass(frozen=True)
class Explanation:
    """How `attention` would serve a call.

    backend: "cpu" or "cuda". cpu: LLVM's name of the processor. vector_bits: width of its
    registers. threads: that would work. These three are None on GPUs. chip: LLVM's name of the GPU;
    device: what it is, where there is one; None on the CPU. dense: whether dense_below applies.
    strategy: of the kernels. tiles: for each function, its tile sizes (#pisa.lowering_config).
    dtype, summary_dtype: of the inputs and of the pyramid. compiled: this process has the code
    already; from_cache: it came from disk. intermediate_bytes: of the pyramid and the lists between
    the functions. scratch_bytes: the peak of all scratch in a call that was measured, None before
    `explain(..., measure=True)`. selected: blocks a query attends to at most, of `blocks`.
    reasons: one sentence a choice.
    """

    backend: str
    cpu: str | None
    vector_bits: int | None
    threads: int | None
    chip: str | None
    device: str | None
    dense: bool
    strategy: str
    tiles: dict[str, dict[str, int]]
    dtype: str
    summary_dtype: str
    compiled: bool
    from_cache: bool
    intermediate_bytes: int
    scratch_bytes: int | None
    blocks: int
    selected: int
    reasons: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        where = (
            f"{self.chip}" + (f", {self.device}" if self.device else "")
            if self.chip
            else f"{self.cpu}, {self.vector_bits}-bit vectors, {self.threads} threads"
        )
        lines = [
            f"backend       {self.backend}: {where}",
            f"strategy      {'dense' if self.dense else self.strategy}",
            f"selects       {self.selected} of {self.blocks} blocks a query",
            f"dtype         {self.dtype}, summaries {self.summary_dtype}",
            f"code          {'compiled' if self.compiled else 'not compiled yet'}"
            + (" (from the cache)" if self.from_cache else ""),
            f"intermediates {self.intermediate_bytes} bytes",
        ]
        if self.scratch_bytes is not None:
            lines.append(f"scratch       {self.scratch_bytes} bytes at the peak")
        for name, tiles in self.tiles.items():
            sizes = ", ".join(f"{key} {value}" for key, value in tiles.items())
            lines.append(f"tiles         {name}: {sizes}")
        lines += [f"- {reason}" for reason in self.reasons]
        return "\n".join(lines)


def _describe(ordinal: int) -> str:
    about = device(ordinal)
    return f"CUDA device {ordinal}, {about.name.decode()}, {about.multiprocessors} multiprocessors"


def explain(
    q: Any,
    k: Any,
    v: Any,
    *,
    q_start: Any = None,
    k_len: Any = None,
    softmax_scale: float | None = None,
    layout: str = "bshd",
    return_lse: bool = False,
    dense_below: int | None = None,
    union_hint: float | None = None,
    check: bool = False,
    backend: str = "auto",
    measure: bool = False,
    chip: str | None = None,
    **options: Any,
) -> Explanation:
    """How `attention` would serve the same call. Arguments are those of `attention`; nothing is
    computed, but with `measure` one call is made, whose scratch is reported.

    chip: as if the tensors were on a GPU that LLVM calls so ("sm_90"), which need not be there.

    Raises as `attention` does.
    """
    call.check_backend(backend, "q", q)
    call.check_choice("layout", layout, call.LAYOUTS)
    unknown = set(options) - set(ops.OPTION_NAMES)
    if unknown:
        raise TypeError(
            f"expected arguments of attention, but got {', '.join(sorted(unknown))}; the parameters"
            f" are {', '.join(ops.OPTION_NAMES)}"
        )
    q_sizes = call.heads_of("q", q, layout)
    if chip is not None and (measure or q_sizes.device >= 0 or backend == "cpu"):
        raise ValueError(
            f"expected chip={chip!r} only with tensors on the CPU, without measure and without"
            " backend='cpu'"
        )
    k_sizes = call.heads_of("k", k, layout)
    v_sizes = call.heads_of("v", v, layout)
    defaults = Params()
    values = tuple(options.get(name, getattr(defaults, name)) for name in ops.OPTION_NAMES)
    params = ops.make_params_of(values)
    flags = ops.forward_flags(params.causal, q_start, return_lse, check)
    key = ops.forward_key(q_sizes, k_sizes, v_sizes, params, flags)
    if chip is not None:
        key = (*key[:-1], chip)
    found = explain_spec(key)
    on_cuda = found["target"] == "cuda"
    keys = k_sizes.length
    dense = dense_below is not None and keys < dense_below
    if chip is not None:
        reasons = [f"backend: chip={chip!r} was asked for"]
    elif backend == "auto":
        place = f"on CUDA device {q_sizes.device}" if on_cuda else "in the CPU's memory"
        reasons = [f"backend: the tensors are {place}"]
    else:
        reasons = [f"backend: {backend!r} was asked for"]
    if dense:
        reasons.append(f"dense: Tk = {keys} is below dense_below = {dense_below}")
    if union_hint is not None:
        reasons.append(
            "union_hint: not used on GPUs yet"
            if on_cuda
            else "union_hint: not used on CPUs, which have one strategy"
        )
    reasons.append(
        "tiles: from the heads of a group and Q;"
        f" {found['max_shared_bytes']} bytes of shared memory a task"
        if on_cuda
        else "tiles: from the width of the vector registers, the heads of a group and Q"
    )

    if measure and not dense:
        ops.attention_arrays(
            q, k, v, values, softmax_scale, q_start, k_len, layout, return_lse, False, check,
            measure=True,
        )  # fmt: skip
    kernel = compiled_kernel(key)
    summary = params.summary_dtype or q_sizes.dtype
    outer = k_sizes.batch * k_sizes.heads
    rows = library().pisaGetPyramidRows(keys, params.block_size, params.fanout)
    leaves = -(-keys // params.block_size)
    between = outer * rows * k_sizes.dim * _BYTES[summary]
    if params.rerank is not None:
        atoms = prod((outer, leaves, params.leaf_atoms, k_sizes.dim)) * _BYTES[summary]
        between += atoms + outer * leaves * 4
    between += outer * -(-q_sizes.length // params.query_block) * params.topk * 4
    return Explanation(
        backend=found["target"],
        cpu=found.get("cpu"),
        vector_bits=found.get("vector_bits"),
        threads=None if on_cuda else get_num_threads(),
        chip=found.get("chip"),
        device=_describe(q_sizes.device) if q_sizes.device >= 0 else None,
        dense=dense,
        strategy=found["strategy"],
        tiles=found["tiles"],
        dtype=q_sizes.dtype,
        summary_dtype=summary,
        compiled=kernel is not None,
        from_cache=kernel is not None and kernel.from_cache,
        intermediate_bytes=between,
        scratch_bytes=kernel.scratch_seen or None if kernel else None,
        blocks=leaves,
        selected=leaves if dense else min(params.topk, leaves),
        reasons=tuple(reasons),
    )
