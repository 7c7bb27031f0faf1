"""The executor of PTX, on kernels whose results NumPy knows."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import ptxsim

NVCC = shutil.which("nvcc")
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def kernel(params, body, registers=""):
    decl = ",\n".join(f".param .{t} k_{i}" for i, t in enumerate(params))
    return (
        f"{HEADER}.visible .entry k({decl})\n{{\n"
        ".reg .pred %p<16>; .reg .b16 %rs<16>; .reg .b32 %r<64>; .reg .b64 %rd<32>;"
        f".reg .f32 %f<32>;\n{registers}\n{body}\n}}\n"
    )


def run(text, args, grid=1, block=32, shared=0, memory=None, **options):
    ptxsim.Module(text, **options).launch(
        "k", grid=grid, block=block, shared_bytes=shared, args=args, memory=memory
    )


def cuda(source, tmp_path):
    if NVCC is None:
        pytest.skip("nvcc is not there")
    (tmp_path / "k.cu").write_text(source)
    subprocess.run([NVCC, "-arch=sm_80", "-ptx", "k.cu", "-o", "k.ptx"], cwd=tmp_path, check=True)
    return (tmp_path / "k.ptx").read_text()


@pytest.fixture
def mem():
    return ptxsim.Memory()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# One instruction each, against Python's integers or NumPy.

EDGES = np.array([0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678], np.uint64)


def signed(x, bits=32):
    return x - (1 << bits) if x >> (bits - 1) else x


def c_div(a, b):
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


BINARY = {
    "add.s32": lambda a, b: a + b,
    "sub.s32": lambda a, b: a - b,
    "mul.lo.s32": lambda a, b: a * b,
    "mul.hi.u32": lambda a, b: (a * b) >> 32,
    "mul.hi.s32": lambda a, b: (signed(a) * signed(b)) >> 32,
    "div.u32": lambda a, b: a // b if b else None,
    "div.s32": lambda a, b: c_div(signed(a), signed(b)) if b else None,
    "rem.s32": lambda a, b: signed(a) - c_div(signed(a), signed(b)) * signed(b) if b else None,
    "min.s32": lambda a, b: min(signed(a), signed(b)),
    "max.u32": lambda a, b: max(a, b),
    "shl.b32": lambda a, b: a << b if b < 32 else 0,
    "shr.u32": lambda a, b: a >> b if b < 32 else 0,
    "shr.s32": lambda a, b: signed(a) >> min(b, 31),
    "xor.b32": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name, mem):
    a, b = (x.reshape(-1).astype(np.uint32) for x in np.meshgrid(EDGES, EDGES))
    pa, pb, out = mem.alloc(a), mem.alloc(b), mem.alloc(np.zeros_like(a))
    body = f"""
    ld.param.u64 %rd1, [k_0]; ld.param.u64 %rd2, [k_1]; ld.param.u64 %rd3, [k_2];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4;
    add.s64 %rd1, %rd1, %rd4; add.s64 %rd2, %rd2, %rd4; add.s64 %rd3, %rd3, %rd4;
    ld.global.u32 %r2, [%rd1]; ld.global.u32 %r3, [%rd2];
    {name} %r4, %r2, %r3; st.global.u32 [%rd3], %r4; ret;"""
    run(kernel(["u64"] * 3, body), [pa, pb, out], block=len(a), memory=mem)
    got = mem.read(out, np.uint32, a.shape)
    for x, y, z in zip(a.tolist(), b.tolist(), got.tolist()):
        want = BINARY[name](x, y)
        assert want is None or want & 0xFFFFFFFF == z, (x, y)


UNARY = {
    "popc.b32 %r4, %r2": lambda a: a.bit_count(),
    "clz.b32 %r4, %r2": lambda a: 32 - a.bit_length(),
    "brev.b32 %r4, %r2": lambda a: int(f"{a:032b}"[::-1], 2),
    "bfind.u32 %r4, %r2": lambda a: a.bit_length() - 1,
    "bfe.u32 %r4, %r2, 4, 9": lambda a: a >> 4 & 511,
    "bfe.s32 %r4, %r2, 28, 9": lambda a: signed(a) >> 28,
    "bfi.b32 %r4, %r2, 0, 8, 16": lambda a: (a & 0xFFFF) << 8,
    "prmt.b32 %r4, %r2, 0, 0x0123": lambda a: int.from_bytes(a.to_bytes(4, "little"), "big"),
    "shf.l.wrap.b32 %r4, %r2, %r2, 5": lambda a: a << 5 | a >> 27,
    "lop3.b32 %r4, %r2, 15, 240, 0xEA": lambda a: (a & 15) | 240,
    "cvt.s32.s8 %r4, %r2": lambda a: signed(a & 255, 8),
    "mov.b32 {%rs1, %rs2}, %r2; mov.b32 %r4, {%rs2, %rs1}": lambda a: a << 16 | a >> 16,
    "cvt.s64.s32 %rd5, %r2; shr.s64 %rd5, %rd5, 16; cvt.u32.u64 %r4, %rd5": (
        lambda a: signed(a) >> 16
    ),
}


@pytest.mark.parametrize("code", UNARY)
def test_unary(code, mem):
    a = EDGES.astype(np.uint32)
    pa, out = mem.alloc(a), mem.alloc(np.zeros_like(a))
    body = f"""
    ld.param.u64 %rd1, [k_0]; ld.param.u64 %rd3, [k_1];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4;
    add.s64 %rd1, %rd1, %rd4; add.s64 %rd3, %rd3, %rd4;
    ld.global.u32 %r2, [%rd1]; {code}; st.global.u32 [%rd3], %r4; ret;"""
    run(kernel(["u64"] * 2, body), [pa, out], block=len(a), memory=mem)
    want = [UNARY[code](x) & 0xFFFFFFFF for x in a.tolist()]
    assert mem.read(out, np.uint32, a.shape).tolist() == want


def bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(x):
    return (x.astype(np.uint32) << 16).view(np.float32)


FLOAT = {
    "add.rn.f32 %f3, %f1, %f2": lambda a, b: a + b,
    "fma.rn.f32 %f3, %f1, %f2, %f1": lambda a, b: (a.astype(float) * b + a).astype("f4"),
    "div.rn.f32 %f3, %f1, %f2": lambda a, b: a / b,
    "max.f32 %f3, %f1, %f2": np.fmax,
    "max.NaN.f32 %f3, %f1, %f2": np.maximum,
    "ex2.approx.ftz.f32 %f3, %f1": lambda a, b: np.exp2(a),
    "setp.ltu.f32 %p1, %f1, %f2; selp.f32 %f3, 0f3F800000, 0f00000000, %p1": (
        lambda a, b: (~(a >= b)).astype("f4")
    ),
    "cvt.rn.bf16x2.f32 %r5, %f1, %f2; mov.b32 {%rs1, %rs2}, %r5; cvt.f32.bf16 %f3, %rs2": (
        lambda a, b: from_bf16(bf16(np.where(np.isnan(a), 0, a))) + np.where(np.isnan(a), a, 0)
    ),
    "cvt.rn.f16x2.f32 %r5, %f1, %f2; mov.b32 {%rs1, %rs2}, %r5; cvt.f32.f16 %f3, %rs1": (
        lambda a, b: b.astype("f2").astype("f4")
    ),
    "cvt.rni.s32.f32 %r5, %f1; cvt.rn.f32.s32 %f3, %r5": (
        lambda a, b: np.rint(
            np.clip(np.nan_to_num(a, posinf=2**31, neginf=-(2**31)), -(2.0**31), 2**31)
        )
    ),
}


@pytest.mark.parametrize("code", FLOAT)
def test_float(code, mem, rng):
    special = np.array([0, 1, -1, 0.5, 1.5, 2.5, np.inf, -np.inf, np.nan, 3e4], np.float32)
    a, b = (x.reshape(-1) for x in np.meshgrid(special, special))
    a = np.concatenate([a, rng.standard_normal(28, np.float32)])
    b = np.concatenate([b, rng.standard_normal(28, np.float32)])
    pa, pb, out = mem.alloc(a), mem.alloc(b), mem.alloc(np.zeros_like(a))
    body = f"""
    ld.param.u64 %rd1, [k_0]; ld.param.u64 %rd2, [k_1]; ld.param.u64 %rd3, [k_2];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4;
    add.s64 %rd1, %rd1, %rd4; add.s64 %rd2, %rd2, %rd4; add.s64 %rd3, %rd3, %rd4;
    ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2];
    {code}; st.global.f32 [%rd3], %f3; ret;"""
    run(kernel(["u64"] * 3, body), [pa, pb, out], block=128, memory=mem)
    with np.errstate(all="ignore"):
        want = np.asarray(FLOAT[code](a, b), np.float32)
    np.testing.assert_array_equal(mem.read(out, np.float32, a.shape), want)


# Warps.


def test_shuffle_reduction(mem, rng):
    x = rng.integers(0, 1000, 128).astype(np.int32)
    steps = "".join(
        f"shfl.sync.bfly.b32 %r3, %r2, {s}, 31, -1; add.s32 %r2, %r2, %r3;"
        for s in (16, 8, 4, 2, 1)
    )
    body = f"""
    ld.param.u64 %rd1, [k_0]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2; ld.global.u32 %r2, [%rd1]; {steps} st.global.u32 [%rd1], %r2; ret;"""
    p = mem.alloc(x)
    run(kernel(["u64"], body), [p], block=128, memory=mem)
    want = np.repeat(x.reshape(4, 32).sum(1), 32)
    assert (mem.read(p, np.int32, 128) == want).all()


def test_ballot_compaction(mem, rng):
    x = rng.integers(0, 100, 32).astype(np.uint32)
    p, out = mem.alloc(x), mem.alloc(np.zeros(32, np.uint32))
    body = """
    ld.param.u64 %rd1, [k_0]; ld.param.u64 %rd2, [k_1]; mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3; ld.global.u32 %r2, [%rd1];
    setp.gt.u32 %p1, %r2, 50; vote.sync.ballot.b32 %r3, %p1, -1;
    mov.u32 %r4, %lanemask_lt; and.b32 %r3, %r3, %r4; popc.b32 %r5, %r3;
    mul.wide.u32 %rd3, %r5, 4; add.s64 %rd2, %rd2, %rd3; @%p1 st.global.u32 [%rd2], %r2; ret;"""
    run(kernel(["u64"] * 2, body), [p, out], memory=mem)
    kept = x[x > 50]
    assert (mem.read(out, np.uint32, 32)[: len(kept)] == kept).all()


def test_warp_waits_for_the_other_branch(mem):
    body = """
    ld.param.u64 %rd1, [k_0]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2; setp.lt.u32 %p1, %r1, 7; mov.u32 %r2, 1; @%p1 bra L;
    mov.u32 %r2, 2;
    L: redux.sync.add.s32 %r3, %r2, -1; st.global.u32 [%rd1], %r3; ret;"""
    p = mem.alloc(np.zeros(32, np.uint32))
    run(kernel(["u64"], body), [p], memory=mem)
    assert (mem.read(p, np.uint32, 32) == 7 + 2 * 25).all()


def test_deadlock():
    body = """mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1; ret;
    A: bar.sync 2; ret;"""
    with pytest.raises(ptxsim.Fault, match="deadlock"):
        run(kernel([], body), [], block=64)
    body = """mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5; @%p1 bra A; bar.warp.sync -1; ret;
    A: bar.warp.sync -1; ret;"""
    with pytest.raises(ptxsim.Fault, match="deadlock"):
        run(kernel([], body), [])


# Memory.

TRANSPOSE = """
    .shared .align 4 .b8 tile[1024];
    ld.param.u64 %rd1, [k_0]; mov.u32 %r1, %tid.x; mov.u32 %r9, %ctaid.x;
    shl.b32 %r9, %r9, 8; add.s32 %r9, %r9, %r1; mul.wide.u32 %rd2, %r9, 4;
    add.s64 %rd1, %rd1, %rd2;
    ld.global.u32 %r2, [%rd1]; mov.u32 %r3, tile; shl.b32 %r4, %r1, 2; add.s32 %r4, %r3, %r4;
    st.shared.u32 [%r4], %r2; {sync}
    shr.u32 %r5, %r1, 4; and.b32 %r6, %r1, 15; shl.b32 %r6, %r6, 4; or.b32 %r6, %r6, %r5;
    shl.b32 %r6, %r6, 2; add.s32 %r6, %r3, %r6; ld.shared.u32 %r7, [%r6];
    st.global.u32 [%rd1], %r7; ret;"""


def test_transpose(mem, rng):
    x = rng.integers(0, 1 << 30, (3, 16, 16)).astype(np.uint32)
    p = mem.alloc(x)
    run(kernel(["u64"], TRANSPOSE.format(sync="bar.sync 0;")), [p], 3, 256, memory=mem)
    assert (mem.read(p, np.uint32, x.shape) == x.swapaxes(1, 2)).all()
    for sync in ("", "bar.warp.sync -1;"):
        with pytest.raises(ptxsim.Fault, match="race"):
            run(kernel(["u64"], TRANSPOSE.format(sync=sync)), [p], 3, 256, memory=mem)


EXCHANGE = """
    .shared .align 4 .b8 s[128];
    mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.s32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1; {first}
    xor.b32 %r4, %r3, 4; ld.shared.u32 %r5, [%r4]; {second} st.shared.u32 [%r3], %r5; ret;"""


def test_races_within_a_warp():
    w = "bar.warp.sync -1;"
    run(kernel([], EXCHANGE.format(first=w, second=w)), [])
    for first, second in ((w, ""), ("", w)):
        with pytest.raises(ptxsim.Fault, match="race"):
            run(kernel([], EXCHANGE.format(first=first, second=second)), [])


def test_uninitialised_shared():
    body = ".shared .align 4 .b8 s[128]; ld.shared.u32 %r1, [s+4]; ret;"
    with pytest.raises(ptxsim.Fault, match="uninitialised"):
        run(kernel([], body), [])
    run(kernel([], body), [], uninitialised_shared=False)


def test_uninitialised_register():
    body = "add.s32 %r1, %r2, 1; ret;"
    run(kernel([], body), [])
    with pytest.raises(ptxsim.Fault, match="%r2"):
        run(kernel([], body), [], uninitialised_registers=True)


COPY = """
    .shared .align 16 .b8 s[512];
    ld.param.u64 %rd1, [k_0]; ld.param.u64 %rd2, [k_1]; mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 4; cvt.u64.u32 %rd3, %r2; add.s64 %rd1, %rd1, %rd3;
    add.s64 %rd2, %rd2, %rd3; mov.u32 %r3, s; add.s32 %r2, %r2, %r3;
    shr.u32 %r4, %r1, 1; and.b32 %r4, %r4, 3; shl.b32 %r4, %r4, 3;
    cp.async.cg.shared.global [%r2], [%rd1], 16, %r4; cp.async.commit_group; {wait}
    ld.shared.v4.u32 {{%r5, %r6, %r7, %r8}}, [%r2];
    st.global.v4.u32 [%rd2], {{%r5, %r6, %r7, %r8}}; ret;"""


def test_asynchronous_copy(mem, rng):
    x = rng.integers(1, 255, (32, 16)).astype(np.uint8)
    p, out = mem.alloc(x), mem.alloc(np.zeros_like(x))
    run(kernel(["u64"] * 2, COPY.format(wait="cp.async.wait_group 0;")), [p, out], memory=mem)
    size = np.minimum((np.arange(32) >> 1 & 3) * 8, 16)
    want = np.where(np.arange(16) < size[:, None], x, 0)
    assert (mem.read(out, np.uint8, x.shape) == want).all()
    for wait in ("", "cp.async.wait_group 1;"):
        with pytest.raises(ptxsim.Fault):
            run(kernel(["u64"] * 2, COPY.format(wait=wait)), [p, out], memory=mem)
        off = {"races": False, "uninitialised_shared": False}
        run(kernel(["u64"] * 2, COPY.format(wait=wait)), [p, out], memory=mem, **off)
        assert (mem.read(out, np.uint8, x.shape) == 0xFF).all()


def test_atomics(mem):
    body = """
    ld.param.u64 %rd1, [k_0]; ld.param.u64 %rd2, [k_1]; mov.u32 %r1, %tid.x;
    atom.global.add.u32 %r2, [%rd1], 1; red.global.max.u32 [%rd1+4], %r1;
    mul.wide.u32 %rd3, %r1, 4; add.s64 %rd2, %rd2, %rd3; st.global.u32 [%rd2], %r2;
    atom.global.cas.b32 %r3, [%rd1+8], 0, %r1; ret;"""
    p, out = mem.alloc(np.zeros(3, np.uint32)), mem.alloc(np.zeros(64, np.uint32))
    run(kernel(["u64"] * 2, body), [p, out], block=64, memory=mem)
    assert mem.read(p, np.uint32, 3).tolist() == [64, 63, 1]
    assert mem.read(out, np.uint32, 64).tolist() == list(range(64))


@pytest.mark.parametrize(
    "access, message",
    [
        ("ld.global.u32 %r1, [%rd1+128]", r"out of bounds.*thread \(0,0,0\)"),
        ("ld.global.u32 %r1, [%rd1+-4]", "out of bounds"),
        ("ld.global.v2.u32 {%r1, %r2}, [%rd1+4]", "misaligned"),
        ("st.global.u32 [%rd1+124], 7; st.global.u64 [%rd1+124], 7", "misaligned"),
        ("st.shared.u32 [0], 7", "out of bounds of shared"),
        ("ld.global.u32 %r1, [0]", "out of bounds"),
    ],
)
def test_faults(access, message, mem):
    p = mem.alloc(np.zeros(32, np.uint32))
    with pytest.raises(ptxsim.Fault, match=message):
        run(kernel(["u64"], f"ld.param.u64 %rd1, [k_0]; {access}; ret;"), [p], memory=mem)


def test_read_only(mem):
    p = mem.alloc(np.zeros(4, np.uint32), readonly=True)
    with pytest.raises(ptxsim.Fault, match="read-only"):
        run(
            kernel(["u64"], "ld.param.u64 %rd1, [k_0]; st.global.u32 [%rd1], 1; ret;"),
            [p],
            memory=mem,
        )


def test_addresses_have_64_bits(mem):
    p = mem.alloc(np.zeros(4, np.uint32))
    assert p >= 1 << 32
    body = "ld.param.u64 %rd1, [k_0]; cvt.u32.u64 %r1, %rd1; cvt.u64.u32 %rd1, %r1;"
    with pytest.raises(ptxsim.Fault, match="out of bounds"):
        run(kernel(["u64"], body + "st.global.u32 [%rd1], 1; ret;"), [p], memory=mem)


# Matrices.


@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("k", [8, 16])
def test_matrix(kind, trans, k, mem, rng):
    a, b = rng.standard_normal((16, k), np.float32), rng.standard_normal((k, 8), np.float32)
    c = rng.standard_normal((16, 8), np.float32)
    encode = bf16 if kind == "bf16" else (lambda x: x.astype(np.float16).view(np.uint16))
    decode = from_bf16 if kind == "bf16" else (lambda x: x.view(np.float16).astype(np.float32))
    ea, eb = encode(a), encode(b)
    # Without .trans the columns of B are the rows in memory.
    pa, pb = mem.alloc(ea), mem.alloc(eb if trans else np.ascontiguousarray(eb.T))
    pc, pd = mem.alloc(c), mem.alloc(np.zeros_like(c))
    copy = "".join(
        f"mul.wide.u32 %rd9, %r1, {w}; add.s64 %rd10, %rd{s}, %rd9; cvt.u32.u64 %r2, %rd9;"
        + "".join(
            f"ld.global.u32 %r3, [%rd10+{4 * i}]; st.shared.u32 [%r2+{name}+{4 * i}], %r3;".replace(
                f"[%r2+{name}+{4 * i}]", f"[%r{20 + i}]"
            ).replace(
                "st.shared",
                f"add.s32 %r{20 + i}, %r2, {4 * i}; mov.u32 %r30, {name}; "
                f"add.s32 %r{20 + i}, %r{20 + i}, %r30; st.shared",
            )
            for i in range(w // 4)
        )
        for name, s, w in (("sa", 1, k), ("sb", 2, k // 2))
    )
    if k == 16:
        rows_a = (
            "and.b32 %r4, %r1, 15; shl.b32 %r4, %r4, 5; and.b32 %r5, %r1, 16;add.s32 %r4, %r4, %r5;"
        )
        x, regs_a = "x4", "{%r10, %r11, %r12, %r13}"
        rows_b = (
            "and.b32 %r6, %r1, 15; shl.b32 %r6, %r6, 4;"
            if trans
            else "and.b32 %r6, %r1, 7; shl.b32 %r6, %r6, 5; and.b32 %r5, %r1, 8;"
            "shl.b32 %r5, %r5, 1; add.s32 %r6, %r6, %r5;"
        )
        xb, regs_b = "x2", "{%r14, %r15}"
    else:
        rows_a = "and.b32 %r4, %r1, 15; shl.b32 %r4, %r4, 4;"
        x, regs_a = "x2", "{%r10, %r11}"
        rows_b = "and.b32 %r6, %r1, 7; shl.b32 %r6, %r6, 4;"
        xb, regs_b = "x1", "{%r14}"
    body = f"""
    .shared .align 16 .b8 sa[{32 * k}]; .shared .align 16 .b8 sb[{16 * k}];
    ld.param.u64 %rd1, [k_0]; ld.param.u64 %rd2, [k_1]; ld.param.u64 %rd3, [k_2];
    ld.param.u64 %rd4, [k_3]; mov.u32 %r1, %tid.x; {copy} bar.sync 0;
    {rows_a} {rows_b} mov.u32 %r7, sa; mov.u32 %r8, sb; add.s32 %r4, %r4, %r7;
    add.s32 %r6, %r6, %r8;
    ldmatrix.sync.aligned.m8n8.{x}.shared.b16 {regs_a}, [%r4];
    ldmatrix.sync.aligned.m8n8.{xb}{".trans" if trans else ""}.shared.b16 {regs_b}, [%r6];
    shr.u32 %r9, %r1, 2; shl.b32 %r9, %r9, 5; and.b32 %r5, %r1, 3; shl.b32 %r5, %r5, 3;
    add.s32 %r9, %r9, %r5; cvt.u64.u32 %rd5, %r9; add.s64 %rd3, %rd3, %rd5;
    add.s64 %rd4, %rd4, %rd5;
    ld.global.v2.f32 {{%f1, %f2}}, [%rd3]; ld.global.v2.f32 {{%f3, %f4}}, [%rd3+256];
    mma.sync.aligned.m16n8k{k}.row.col.f32.{kind}.{kind}.f32
        {{%f5, %f6, %f7, %f8}}, {regs_a}, {regs_b}, {{%f1, %f2, %f3, %f4}};
    st.global.v2.f32 [%rd4], {{%f5, %f6}}; st.global.v2.f32 [%rd4+256], {{%f7, %f8}}; ret;"""
    run(kernel(["u64"] * 4, body), [pa, pb, pc, pd], memory=mem)
    want = decode(ea).astype(float) @ decode(eb).astype(float) + c
    np.testing.assert_allclose(mem.read(pd, np.float32, c.shape), want, rtol=1e-6, atol=1e-6)


# What nvcc makes of CUDA.


def test_divergence(tmp_path, mem, rng):
    source = """
    extern "C" __global__ void k(const int *x, int *out, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= n) return;
      int v = x[i], steps = 0;
      while (v != 1 && steps < 500) {
        if (v % 2 == 0) { v /= 2; if (v % 3 == 0) steps += 2; }
        else { v = 3 * v + 1; for (int j = 0; j < v % 4; ++j) steps ^= j; }
        ++steps;
      }
      out[i] = steps;
    }"""
    x = rng.integers(1, 200, 300).astype(np.int32)

    def steps(v):
        count = 0
        while v != 1 and count < 500:
            if v % 2 == 0:
                v //= 2
                count += 2 * (v % 3 == 0)
            else:
                v = 3 * v + 1
                for j in range(v % 4):
                    count ^= j
            count += 1
        return count

    p, out = mem.alloc(x), mem.alloc(np.zeros_like(x))
    run(cuda(source, tmp_path), [p, out, 300], 3, 128, memory=mem)
    assert mem.read(out, np.int32, 300).tolist() == [steps(int(v)) for v in x]


def test_halves_and_local_memory(tmp_path, mem, rng):
    source = """
    #include <cuda_bf16.h>
    #include <cuda_fp16.h>
    extern "C" __global__ void k(const float *x, float *out, int shift) {
      float buf[8]; int t = threadIdx.x;
      for (int j = 0; j < 8; ++j) buf[(j + shift) % 8] = x[8 * t + j];
      __nv_bfloat162 b = __floats2bfloat162_rn(buf[0], buf[shift % 8]);
      __half2 h = __hmul2(__floats2half2_rn(buf[1], buf[2]), __floats2half2_rn(buf[3], buf[4]));
      out[4 * t] = __bfloat162float(b.x); out[4 * t + 1] = __bfloat162float(b.y);
      out[4 * t + 2] = __half2float(h.x); out[4 * t + 3] = expf(__half2float(h.y));
    }"""
    x = rng.standard_normal((64, 8), np.float32)
    p, out = mem.alloc(x), mem.alloc(np.zeros((64, 4), np.float32))
    run(cuda(source, tmp_path), [p, out, 3], 1, 64, memory=mem)
    y = np.roll(x, 3, axis=1)
    h = y.astype(np.float16)
    want = np.stack(
        [from_bf16(bf16(y[:, 0])), from_bf16(bf16(y[:, 3])), h[:, 1] * h[:, 3],
         np.exp((h[:, 2] * h[:, 4]).astype(np.float32))], 1,
    )  # fmt: skip
    np.testing.assert_allclose(mem.read(out, np.float32, (64, 4)), want, rtol=1e-6)


def test_shared_reduction(tmp_path, mem, rng):
    source = """
    extern "C" __global__ void k(const float *x, float *out, int n) {
      __shared__ float s[8]; float v = 0;
      for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[i];
      for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
      if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
      __syncthreads();
      if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? s[threadIdx.x] : 0;
        for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
        if (threadIdx.x == 0) atomicAdd(out, v);
      }
    }"""
    x = rng.integers(-50, 50, 1000).astype(np.float32)
    p, out = mem.alloc(x), mem.alloc(np.zeros(1, np.float32))
    run(cuda(source, tmp_path), [p, out, 1000], 2, 256, memory=mem)
    assert mem.read(out, np.float32, 1)[0] == 2 * x.sum()


def test_speed(mem):
    """20000 instructions of each of 512 threads; a bound for slow machines."""
    body = """
    .shared .align 4 .b8 s[512];
    ld.param.u64 %rd1, [k_0]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s;
    add.s32 %r2, %r2, %r3; mov.u32 %r4, 0; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f3F800000;
    L: st.shared.f32 [%r2], %f1; ld.shared.f32 %f3, [%r2]; fma.rn.f32 %f1, %f3, 0f3F000000, %f2;
    xor.b32 %r5, %r4, %r1; shl.b32 %r6, %r5, 3; and.b32 %r6, %r6, 255; add.s32 %r7, %r6, %r5;
    add.s32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 2000; @%p1 bra L; ret;"""
    start = time.perf_counter()
    run(kernel(["u64"], body), [0], 4, 128, memory=mem)
    assert time.perf_counter() - start < 20
