"""A soft cap on the scores, s' = cap * tanh(s / cap), added between two passes by editing the IR:
another attention needs vector ops on either target, and no change of the compiler."""

import math
import os
import re
import subprocess

import numpy as np
import pisa
import problems
import pytest
from bundle import Bundle

if "PISA_OPT" not in os.environ:
    pytest.skip("PISA_OPT names no pisa-opt", allow_module_level=True)

HEADS, KV_HEADS, DIM, TOPK, BLOCK = 4, 2, 16, 4, 16
QUERIES, KEYS, LENGTH = 40, 100, 90


def attention(dtype, batch="?", queries="?", keys="?"):
    """A function `f` that attends over given lists."""
    q, k, lists, lse, n = (
        f"tensor<{batch}x{HEADS}x{queries}x{DIM}x{dtype}>",
        f"tensor<{batch}x{KV_HEADS}x{keys}x{DIM}x{dtype}>",
        f"tensor<{batch}x{KV_HEADS}x{queries}x{TOPK}xi32>",
        f"tensor<{batch}x{HEADS}x{queries}xf32>",
        f"tensor<{batch}xi32>",
    )
    return f"""
func.func @f(%q: {q}, %k: {k}, %v: {k}, %lists: {lists}, %n: {n}, %start: {n}, %scale: f32,
             %out: {q}, %lse: {lse}) -> ({q}, {lse}) {{
  %0:2 = pisa.attention #pisa.params<block_size = {BLOCK}, topk = {TOPK}>
         ins(%q, %k, %v, %lists : {q}, {k}, {k}, {lists}) k_len(%n : {n})
         q_start(%start : {n}) scale(%scale) outs(%out : {q}) lse(%lse : {lse}) -> {q}, {lse}
  return %0#0, %0#1 : {q}, {lse}
}}
"""


def split(pipeline, at):
    """The passes of a pipeline before and after the beginning of one, as text."""
    done = subprocess.run(
        [os.environ["PISA_OPT"], "-", f"--{pipeline}", "--dump-pass-pipeline", "-o", os.devnull],
        input="module {}", capture_output=True, text=True, check=True,
    )  # fmt: skip
    whole = " ".join(re.search(r"builtin\.module\((.*)\)", done.stderr, re.S)[1].split())
    before, found, after = whole.partition(f", {at}")
    assert found, f"{pipeline} has no pass {at}"
    return before, at + after


def soft_cap(raw, capped, kind, cap):
    """Lines that define %capped of %raw. Scores are in base 2, s * log2(e):
    tanh(x) = 1 - 2 / (1 + exp(2 x)), and exp(2 s / cap) is exp2 of the score times 2 / cap."""
    most = cap * math.log2(math.e)
    constants = dict(rate=2 / cap, one=1, most=most, twice=2 * most)
    lines = [
        f"%{name}_{capped} = arith.constant dense<{value:.9e}> : {kind}"
        for name, value in constants.items()
    ]
    for name, op in (
        ("a", f"arith.mulf %{raw}, %rate_{capped}"),
        ("b", f"math.exp2 %a_{capped}"),
        ("c", f"arith.addf %b_{capped}, %one_{capped}"),
        ("d", f"arith.divf %twice_{capped}, %c_{capped}"),
    ):
        lines.append(f"%{name}_{capped} = {op} : {kind}")
    lines.append(f"%{capped} = arith.subf %most_{capped}, %d_{capped} : {kind}")
    return "\n".join(lines)


def cap_on_gpu(text, cap):
    """A score there is a product of matrices times the scale."""
    products = set(re.findall(r"(%\w+) = vector\.contract", text))

    def edit(match):
        result, operand, rest, kind = match.groups()
        if operand not in products:
            return match[0]
        scaled = f"%raw_{result} = arith.mulf {operand}, {rest} : {kind}"
        return scaled + "\n" + soft_cap(f"raw_{result}", result, kind, cap)

    return re.sub(r"%(\w+) = arith\.mulf (%\w+), (%\w+) : (vector<\d+x\d+xf32>)", edit, text)


def cap_on_cpu(text, cap):
    """Scores there are sums that a loop leaves in the row that the exponentials go to later."""
    exponentials = "|".join(re.findall(r"(%\w+) = math\.exp2 %\w+ : vector", text))
    rows = set(re.findall(rf"vector\.store (?:{exponentials}), (%\w+)\[", text))

    def edit(match):
        result, number, row, rest, kind = match.groups()
        if row not in rows:
            return match[0]
        capped = f"capped_{result}_{number}"
        lines = soft_cap(f"{result}#{number}", capped, kind, cap)
        return f"{lines}\nvector.store %{capped}, {row}{rest}, {kind}"

    return re.sub(r"vector\.store %(\w+)#(\d+), (%\w+)(\[.*), (vector<\d+xf32>)", edit, text)


def take_tensors(text):
    """The function with tensors for arguments again, as it is called from Python. Their sizes must
    be in their types: a call checks only what it knows the shapes of."""
    head = re.search(r"func\.func @f\((.*)\) \{\n", text)
    casts = []

    def edit(match):
        name, sizes, layout = match.groups()
        casts.append(
            f"{name} = bufferization.to_buffer {name}_given"
            f" : tensor<{sizes}> to memref<{sizes}, {layout}>\n"
        )
        return f"{name}_given: tensor<{sizes}>"

    arguments = re.sub(r"(%\w+): memref<([^,]+), (strided<.*?>)>", edit, head[1])
    return f"{text[: head.start(1)]}{arguments}) {{\n{''.join(casts)}{text[head.end() :]}"


def problem(scale):
    """q, k, v in float32 with values of bfloat16, and lists."""
    rng = np.random.default_rng(0)

    def normal(h, t):
        return rng.standard_normal((1, h, t, DIM), np.float32)

    q, k, v = scale * normal(HEADS, QUERIES), normal(KV_HEADS, KEYS), normal(KV_HEADS, KEYS)
    lists = np.full((1, KV_HEADS, QUERIES, TOPK), -1, np.int32)
    for row, i in ((row, i) for head in lists[0] for i, row in enumerate(head)):
        seen = (LENGTH - QUERIES + i) // BLOCK + 1
        chosen = rng.choice(seen, min(seen, rng.integers(1, TOPK + 1)), replace=False)
        row[: len(chosen)] = np.sort(chosen)
    return *(problems.from_bf16(problems.to_bf16(x)).astype(np.float32) for x in (q, k, v)), lists


def check(q, k, v, lists, out, lse, cap, out_error, lse_error):
    for h in range(HEADS):
        kv = h // (HEADS // KV_HEADS)
        given = (
            *(x.astype(np.float64) for x in (q[0, h], k[0, kv], v[0, kv])), lists[0, kv], BLOCK,
            LENGTH - QUERIES, LENGTH,
        )  # fmt: skip
        expected, expected_lse = problems.attend(*given, cap=cap)
        np.testing.assert_allclose(out[0, h], expected, atol=out_error)
        np.testing.assert_allclose(lse[0, h], expected_lse, atol=lse_error)
        # The cap is no trifle here.
        assert abs(problems.attend(*given)[1] - expected_lse).max() > 1


def lengths():
    return np.array([LENGTH], np.int32), np.array([LENGTH - QUERIES], np.int32)


# Scores of about `scale`; the last ones are all cap or -cap, and exp2 is infinite or 0.
CASES = [(3, 2.0), (30, 20.0), (1000, 3.0)]


@pytest.mark.parametrize("scale, cap", CASES)
def test_on_the_gpu(scale, cap):
    first, rest = split("pisa-nvptx-pipeline", "pisa-distribute-fragments")
    text = attention("bf16")
    text = problems.tool("pisa-opt", f"--pass-pipeline=builtin.module({first})", text=text)
    text = cap_on_gpu(text, cap)
    assert text.count("%raw_") == 2
    text = problems.tool("pisa-opt", f"--pass-pipeline=builtin.module({rest})", text=text)
    bundle = Bundle(problems.tool("pisa-translate", "--emit-bundle", "--chip=sm_80", text=text))
    q, k, v, lists = problem(scale)
    out = np.full((1, HEADS, QUERIES, DIM), 0x7FC0, np.uint16)
    lse = np.full((1, HEADS, QUERIES), np.nan, np.float32)
    given = [problems.to_bf16(x) for x in (q, k, v)]
    bundle.run("f", [*given, lists, *lengths(), 1 / math.sqrt(DIM), out, lse])
    check(q, k, v, lists, problems.from_bf16(out), lse, cap, 2e-2, 1e-4)


@pytest.mark.parametrize("scale, cap", CASES)
def test_on_the_cpu(scale, cap):
    first, rest = split("pisa-cpu-pipeline", "convert-linalg-to-loops")
    text = attention("f32", 1, QUERIES, KEYS)
    text = cap_on_cpu(pisa.compile(text, pipeline=first).ir(), cap)
    assert "vector.store %capped" in text
    module = pisa.compile(take_tensors(text), pipeline=f"pisa-bufferize,canonicalize,{rest}")
    q, k, v, lists = problem(scale)
    out = np.full((1, HEADS, QUERIES, DIM), np.nan, np.float32)
    lse = np.full((1, HEADS, QUERIES), np.nan, np.float32)
    module["f"](q, k, v, lists, *lengths(), 1 / math.sqrt(DIM), out, lse)
    check(q, k, v, lists, out, lse, cap, 1e-5, 1e-4)
