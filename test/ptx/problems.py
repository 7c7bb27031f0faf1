"""Modules of the GPU pipeline for tests, and float64 references in NumPy."""

import functools
import math
import os
import subprocess

import numpy as np


def module(heads, kv_heads, dim, topk, params, dtype="bf16", value_dim=None):
    """A function `f` that builds the pyramid, routes and attends."""
    q, k, v, lists, out, lse, n = (
        f"tensor<?x{heads}x?x{dim}x{dtype}>",
        f"tensor<?x{kv_heads}x?x{dim}x{dtype}>",
        f"tensor<?x{kv_heads}x?x{value_dim or dim}x{dtype}>",
        f"tensor<?x{kv_heads}x?x{topk}xi32>",
        f"tensor<?x{heads}x?x{value_dim or dim}x{dtype}>",
        f"tensor<?x{heads}x?xf32>",
        "tensor<?xi32>",
    )
    return f"""
func.func @f(%q: {q}, %k: {k}, %v: {v}, %pyramid: {k}, %n: {n}, %start: {n}, %scale: f32,
             %lists: {lists}, %out: {out}, %lse: {lse}) -> ({k}, {lists}, {out}, {lse}) {{
  %0 = pisa.build_pyramid {params} ins(%k : {k}) k_len(%n : {n}) outs(%pyramid : {k}) -> {k}
  %1 = pisa.route {params} ins(%q, %k, %0 : {q}, {k}, {k}) k_len(%n : {n})
         q_start(%start : {n}) scale(%scale) outs(%lists : {lists}) -> {lists}
  %2:2 = pisa.attention {params} ins(%q, %k, %v, %1 : {q}, {k}, {v}, {lists}) k_len(%n : {n})
         q_start(%start : {n}) scale(%scale) outs(%out : {out}) lse(%lse : {lse}) -> {out}, {lse}
  return %0, %1, %2#0, %2#1 : {k}, {lists}, {out}, {lse}
}}
"""


def tool(name, *options, text):
    """What a tool beside pisa-opt writes about a module."""
    path = os.path.join(os.path.dirname(os.environ["PISA_OPT"]), name)
    done = subprocess.run(
        [path, "-", *options], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout


@functools.cache
def lower(text, chip="sm_80", what="emit-bundle", options=""):
    """The bundle or the PTX of a module."""
    lowered = tool("pisa-opt", f"--pisa-nvptx-pipeline={options}", text=text)
    return tool("pisa-translate", f"--{what}", f"--chip={chip}", text=lowered)


def to_bf16(x):
    """float32 -> the bits of bfloat16, rounded to nearest even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def attend(q, k, v, lists, block, start, length, cap=None):
    """Float64 attention of one head over its lists: (out, lse)."""
    out = np.zeros((len(q), v.shape[1]))
    lse = np.full(len(q), -math.inf)
    for i, (row, blocks) in enumerate(zip(q, lists, strict=True)):
        keys = [
            p
            for b in blocks
            if b >= 0
            for p in range(b * block, (b + 1) * block)
            if p < min(length, start + i + 1)
        ]
        if not keys:
            continue
        scores = k[keys] @ row / math.sqrt(q.shape[1])
        if cap is not None:
            scores = cap * np.tanh(scores / cap)
        weights = np.exp(scores - scores.max())
        out[i] = weights @ v[keys] / weights.sum()
        lse[i] = scores.max() + math.log(weights.sum())
    return out, lse
