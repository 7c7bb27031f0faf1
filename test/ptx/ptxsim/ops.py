"""Binds an instruction to the registers of a launch: the result is a function of the mask.

A mask is True (all lanes) or a bool array. A function may compute for every lane; it must write
only those of the mask.
"""

import numpy as np

from . import floats as fl
from .memory import LOCAL_WINDOW, SHARED_WINDOW, Unsupported
from .parser import SIZES

U8, U16, U32, U64 = np.uint8, np.uint16, np.uint32, np.uint64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64
F16, F32, F64 = np.float16, np.float32, np.float64

DTYPES = {
    "b8": U8, "u8": U8, "s8": I8, "b16": U16, "u16": U16, "s16": I16, "f16": F16, "bf16": U16,
    "b32": U32, "u32": U32, "s32": I32, "f32": F32, "f16x2": U32, "bf16x2": U32, "tf32": U32,
    "u16x2": U32, "s16x2": U32,
    "b64": U64, "u64": U64, "s64": I64, "f64": F64, "pred": np.bool_,
}  # fmt: skip
HALF = ("f16", "bf16")
PACKED = ("f16x2", "bf16x2")
UNSIGNED = {1: U8, 2: U16, 4: U32, 8: U64}
SIGNED = {1: I8, 2: I16, 4: I32, 8: I64}


def put(d, value, m):
    np.copyto(d, value, where=m, casting="unsafe")


class Binder:
    """What the functions of one launch share."""

    def __init__(self, lanes):
        self.n = lanes
        self.regs = {}
        self.cache = {}
        self.special = {}
        self.symbols = {}
        self.carry = np.zeros(lanes, np.uint64)
        self.arange = np.arange(lanes)

    # Operands.

    def constant(self, value, dtype):
        dtype = np.dtype(dtype)
        key = (value, dtype)
        if key in self.cache:
            return self.cache[key]
        if isinstance(value, tuple):
            kind, bits = value
            raw = np.array([bits], U32 if kind == "f32" else U64)
            exact = raw.view(F32 if kind == "f32" else F64)
            if dtype.itemsize == raw.itemsize:
                one = raw.view(dtype)
            elif dtype.kind == "f":
                one = exact.astype(dtype)
            else:
                raise Unsupported(f"float immediate as {dtype}")
        elif dtype.kind == "b":
            one = np.array([bool(value)])
        else:
            size = dtype.itemsize
            one = np.array([value & ((1 << (8 * size)) - 1)], UNSIGNED[size]).view(dtype)
        array = np.full(self.n, one[0], dtype)
        array.setflags(write=False)
        self.cache[key] = array
        return array

    def src(self, op, t):
        """The operand as an array of type t; a register may be wider than t."""
        dtype = np.dtype(DTYPES[t])
        kind = op[0]
        if kind == "reg":
            array = self.regs[op[1]]
            if array.dtype == np.bool_ or dtype == np.bool_:
                if array.dtype == dtype:
                    return array
                raise Unsupported("a predicate where a number is meant, or the reverse")
            if array.itemsize == dtype.itemsize:
                return array.view(dtype)
            raise Unsupported(f"register {op[1]} read as .{t}")
        if kind == "imm":
            return self.constant(op[1], dtype)
        if kind == "sreg":
            return self.sreg(op[1], dtype)
        if kind == "sym":
            return self.constant(self.symbol(op), dtype)
        raise Unsupported(f"operand {kind}")

    def symbol(self, op):
        if op[1] not in self.symbols:
            raise Unsupported(f"symbol {op[1]}")
        return self.symbols[op[1]] + op[2]

    def sreg(self, name, dtype):
        if name not in self.special:
            raise Unsupported(f"%{name}")
        value = self.special[name]
        if np.dtype(dtype) == value.dtype:
            return value
        key = ("%" + name, np.dtype(dtype))
        if key not in self.cache:
            self.cache[key] = value.astype(dtype)
        return self.cache[key]

    def get(self, op, t):
        """A function that returns the operand; the low part of a wider register."""
        if op[0] == "reg":
            array = self.regs[op[1]]
            size = SIZES[t]
            if array.dtype != np.bool_ and array.itemsize != size:
                unsigned = UNSIGNED[size]
                dtype = DTYPES[t]
                return lambda: array.astype(unsigned).view(dtype)
        array = self.src(op, t)
        return lambda: array

    def dst(self, op, t):
        dtype = np.dtype(DTYPES[t])
        if op[0] == "sink":
            return np.empty(self.n, dtype)
        if op[0] != "reg":
            raise Unsupported(f"destination {op[0]}")
        array = self.regs[op[1]]
        if array.dtype == np.bool_ and dtype == np.bool_:
            return array
        if array.dtype != np.bool_ and array.itemsize == dtype.itemsize:
            return array.view(dtype)
        raise Unsupported(f"register {op[1]} written as .{t}")

    def wide_dst(self, op, t):
        """The destination as integers of its own width, signed as t is."""
        if op[0] == "sink":
            return np.empty(self.n, DTYPES[t])
        array = self.regs[op[1]]
        if array.dtype == np.bool_:
            raise Unsupported("a predicate as destination")
        if array.itemsize == SIZES[t]:
            return array.view(DTYPES[t])
        if array.itemsize < SIZES[t] or t[0] == "f":
            raise Unsupported(f"register {op[1]} written as .{t}")
        return array.view(SIGNED[array.itemsize] if t[0] == "s" else array.dtype)

    def predicate(self, op):
        """(array, negated)"""
        if op[0] == "not":
            return self.src(op[1], "pred"), True
        if op[0] == "reg" or op[0] == "imm":
            return self.src(op, "pred"), False
        raise Unsupported("predicate operand")


BIND = {}


def op(*names):
    def add(function):
        for name in names:
            BIND[name] = function
        return function

    return add


def last_type(inst):
    if not inst.types:
        raise Unsupported("no type")
    return inst.types[-1]


# Integers and bits.


@op("and", "or", "xor")
def _logic(b, i):
    t = last_type(i)
    d, x, y = b.dst(i.args[0], t), b.src(i.args[1], t), b.src(i.args[2], t)
    if t == "pred":
        f = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[i.op]
    else:
        f = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[i.op]
    return lambda m: f(x, y, out=d, where=m)


@op("not")
def _not(b, i):
    t = last_type(i)
    d, x = b.dst(i.args[0], t), b.src(i.args[1], t)
    f = np.logical_not if t == "pred" else np.invert
    return lambda m: f(x, out=d, where=m)


@op("cnot")
def _cnot(b, i):
    t = last_type(i)
    d, x = b.dst(i.args[0], t), b.src(i.args[1], t)
    return lambda m: put(d, x == 0, m)


FLOAT2 = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": fl.minimum, "max": fl.maximum,
}  # fmt: skip


@op("add", "sub", "min", "max", "mul")
def _arith(b, i):
    t = last_type(i)
    if t in ("f32", "f64", *HALF, *PACKED):
        f = FLOAT2[i.op]
        if "NaN" in i.mods:
            f = {"min": fl.minimum_nan, "max": fl.maximum_nan}[i.op]
        return float_op(b, i, t, f)
    if t in ("u16x2", "s16x2"):
        d, x, y = (b.src(a, t).view(I16 if t[0] == "s" else U16) for a in i.args[:3])
        f = {"add": np.add, "min": np.minimum, "max": np.maximum}[i.op]
        d32 = b.dst(i.args[0], "b32")
        return lambda m: put(d32, f(x, y).view(U32), m)
    if i.op == "mul":
        return multiply(b, i, t)
    d, x, y = b.dst(i.args[0], t), b.src(i.args[1], t), b.src(i.args[2], t)
    if "cc" in i.mods:
        return carry_out(b, i, d, x, y, False)
    if "sat" in i.mods:
        info = np.iinfo(DTYPES[t])
        f = np.add if i.op == "add" else np.subtract
        return lambda m: put(d, np.clip(f(x.astype(I64), y.astype(I64)), info.min, info.max), m)
    f = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}[i.op]
    return lambda m: f(x, y, out=d, where=m)


def carry_out(b, i, d, x, y, carry_in):
    subtract = i.op.startswith("sub")
    unsigned = UNSIGNED[d.itemsize]
    d, x, y = d.view(unsigned), x.view(unsigned), y.view(unsigned)
    carry = b.carry
    keep = "cc" in i.mods

    def run(m):
        c = carry.astype(unsigned) if carry_in else unsigned(0)
        if subtract:
            part = x - y
            total = part - c
            out = (x < y) | (part < c)
        else:
            part = x + y
            total = part + c
            out = (part < x) | (total < part)
        put(d, total, m)
        if keep:
            put(carry, out, m)

    return run


@op("addc", "subc")
def _addc(b, i):
    t = last_type(i)
    d, x, y = b.dst(i.args[0], t), b.src(i.args[1], t), b.src(i.args[2], t)
    return carry_out(b, i, d, x, y, True)


def high(x, y, size, signed):
    if size < 8:
        wide = I64 if signed else U64
        return ((x.astype(wide) * y.astype(wide)) >> wide(8 * size)).astype(x.dtype)
    a, c = x.view(U64), y.view(U64)
    low, s = U64(0xFFFFFFFF), U64(32)
    a0, a1, c0, c1 = a & low, a >> s, c & low, c >> s
    mid = a1 * c0 + ((a0 * c0) >> s)
    mid2 = a0 * c1 + (mid & low)
    out = a1 * c1 + (mid >> s) + (mid2 >> s)
    if signed:
        out = out - np.where(x < 0, c, U64(0)) - np.where(y < 0, a, U64(0))
    return out.view(x.dtype)


WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def multiply(b, i, t):
    x, y = b.src(i.args[1], t), b.src(i.args[2], t)
    if "wide" in i.mods:
        d = b.dst(i.args[0], WIDER[t])
        return lambda m: np.multiply(x, y, out=d, where=m, dtype=d.dtype)
    d = b.dst(i.args[0], t)
    if "hi" in i.mods:
        size, signed = SIZES[t], t[0] == "s"
        return lambda m: put(d, high(x, y, size, signed), m)
    return lambda m: np.multiply(x, y, out=d, where=m)


@op("mul24")
def _mul24(b, i):
    t = last_type(i)
    d, x, y = b.dst(i.args[0], t), b.src(i.args[1], t), b.src(i.args[2], t)
    s = d.dtype.type(8)
    if "hi" in i.mods:
        raise Unsupported("mul24.hi")
    return lambda m: put(d, ((x << s) >> s) * ((y << s) >> s), m)


@op("mad")
def _mad(b, i):
    t = last_type(i)
    if t in ("f32", "f64"):
        return _fma(b, i)
    if "cc" in i.mods:
        raise Unsupported("mad.cc")
    x, y = b.src(i.args[1], t), b.src(i.args[2], t)
    if "wide" in i.mods:
        d, z = b.dst(i.args[0], WIDER[t]), b.src(i.args[3], WIDER[t])
        w = d.dtype
        return lambda m: np.add(np.multiply(x, y, dtype=w), z, out=d, where=m)
    d, z = b.dst(i.args[0], t), b.src(i.args[3], t)
    if "hi" in i.mods:
        size, signed = SIZES[t], t[0] == "s"
        return lambda m: np.add(high(x, y, size, signed), z, out=d, where=m)
    return lambda m: np.add(x * y, z, out=d, where=m)


@op("sad")
def _sad(b, i):
    t = last_type(i)
    d, x, y, z = (b.src(a, t) for a in i.args)
    return lambda m: put(d, z + (np.maximum(x, y) - np.minimum(x, y)), m)


def divide(x, y):
    """Towards zero; all ones where y is 0."""
    if x.dtype.kind == "u":
        q = x // y
    else:
        q = x // y
        r = x - q * y
        q = q + ((r != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    return np.where(y == 0, np.array(-1).astype(x.dtype), q)


@op("div")
def _div(b, i):
    t = last_type(i)
    if t in ("f32", "f64"):
        return float_op(b, i, t, np.divide)
    d, x, y = b.dst(i.args[0], t), b.src(i.args[1], t), b.src(i.args[2], t)
    return lambda m: put(d, divide(x, y), m)


@op("rem")
def _rem(b, i):
    t = last_type(i)
    d, x, y = b.dst(i.args[0], t), b.src(i.args[1], t), b.src(i.args[2], t)
    return lambda m: put(d, np.where(y == 0, x, np.fmod(x, y)), m)


@op("shl", "shr")
def _shift(b, i):
    t = last_type(i)
    d, x = b.dst(i.args[0], t), b.src(i.args[1], t)
    amount = b.get(i.args[2], "u32")
    bits = 8 * SIZES[t]
    limit = bits - 1 if t[0] == "s" and i.op == "shr" else bits
    f = np.left_shift if i.op == "shl" else np.right_shift
    dtype = d.dtype
    if i.args[2][0] == "imm":
        k = np.minimum(amount(), U32(limit)).astype(dtype)
        return lambda m: f(x, k, out=d, where=m)
    limit = U32(limit)
    return lambda m: f(x, np.minimum(amount(), limit).astype(dtype), out=d, where=m)


@op("shf")
def _shf(b, i):
    d, low, up, c = (b.src(a, "b32") for a in i.args)
    b.dst(i.args[0], "b32")
    left, wrap = "l" in i.mods, "wrap" in i.mods

    def run(m):
        k = (c & U32(31) if wrap else np.minimum(c, U32(32))).astype(U64)
        both = (up.astype(U64) << U64(32)) | low
        if left:
            put(d, ((both << k) >> U64(32)) & U64(0xFFFFFFFF), m)
        else:
            put(d, (both >> k) & U64(0xFFFFFFFF), m)

    return run


@op("neg")
def _neg(b, i):
    t = last_type(i)
    if t in HALF or t in PACKED:
        bits = {"f16": U16(0x8000), "bf16": U16(0x8000)}.get(t, U32(0x80008000))
        u = "b16" if t in HALF else "b32"
        d, x = b.dst(i.args[0], u), b.src(i.args[1], u)
        return lambda m: np.bitwise_xor(x, bits, out=d, where=m)
    d, x = b.dst(i.args[0], t), b.src(i.args[1], t)
    return lambda m: np.negative(x, out=d, where=m)


@op("abs")
def _abs(b, i):
    t = last_type(i)
    if t in HALF or t in PACKED:
        bits = U16(0x7FFF) if t in HALF else U32(0x7FFF7FFF)
        u = "b16" if t in HALF else "b32"
        d, x = b.dst(i.args[0], u), b.src(i.args[1], u)
        return lambda m: np.bitwise_and(x, bits, out=d, where=m)
    d, x = b.dst(i.args[0], t), b.src(i.args[1], t)
    return lambda m: np.abs(x, out=d, where=m)


@op("popc")
def _popc(b, i):
    t = last_type(i)
    d, x = b.dst(i.args[0], "u32"), b.src(i.args[1], t)
    return lambda m: put(d, np.bitwise_count(x), m)


def leading(x):
    """Index of the highest set bit of uint64, -1 if there is none."""
    out = np.full(x.shape, -1, I64)
    rest = x.copy()
    position = np.zeros(x.shape, I64)
    for step in (32, 16, 8, 4, 2, 1):
        above = rest >> U64(step)
        some = above != 0
        position += np.where(some, step, 0)
        rest = np.where(some, above, rest)
    return np.where(x != 0, position, out)


@op("clz")
def _clz(b, i):
    t = last_type(i)
    d, x = b.dst(i.args[0], "u32"), b.src(i.args[1], t)
    bits = 8 * SIZES[t]
    return lambda m: put(d, bits - 1 - leading(x.astype(U64)), m)


@op("bfind")
def _bfind(b, i):
    t = last_type(i)
    d, x = b.dst(i.args[0], "u32"), b.src(i.args[1], t)
    bits, amount = 8 * SIZES[t], "shiftamt" in i.mods
    unsigned = UNSIGNED[SIZES[t]]

    def run(m):
        v = np.where(x < 0, ~x, x) if t[0] == "s" else x
        at = leading(v.view(unsigned).astype(U64))
        put(d, np.where(at < 0, at, bits - 1 - at) if amount else at, m)

    return run


@op("brev")
def _brev(b, i):
    t = last_type(i)
    d, x = b.dst(i.args[0], t), b.src(i.args[1], t)

    def run(m):
        v = x.astype(U64)
        for step, mask in (
            (1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F),
            (8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF),
        ):  # fmt: skip
            v = ((v >> U64(step)) & U64(mask)) | ((v & U64(mask)) << U64(step))
        if t == "b64":
            v = (v >> U64(32)) | (v << U64(32))
        put(d, v, m)

    return run


@op("bfe")
def _bfe(b, i):
    t = last_type(i)
    d, x = b.dst(i.args[0], t), b.src(i.args[1], t)
    pos, length = b.src(i.args[2], "u32"), b.src(i.args[3], "u32")
    bits = 8 * SIZES[t]
    signed = t[0] == "s"

    def run(m):
        p = (pos & U32(255)).astype(I64)
        n = (length & U32(255)).astype(I64)
        wide = x.astype(I64).view(U64) if signed else x.astype(U64)
        field = np.where(p >= 64, U64(0), wide >> np.minimum(p, 63).view(U64))
        if signed:
            top = np.minimum(p + n - 1, bits - 1)
            sign = (wide >> np.clip(top, 0, 63).view(U64)) & U64(1)
            n2 = np.clip(np.minimum(n, bits - p), 0, 64)
        else:
            sign = U64(0)
            n2 = np.clip(np.minimum(n, bits - p), 0, 64)
        ones = np.where(n2 >= 64, ~U64(0), (U64(1) << np.minimum(n2, 63).view(U64)) - U64(1))
        out = (field & ones) | np.where(sign == 1, ~ones, U64(0))
        put(d, np.where(n == 0, U64(0), out), m)

    return run


@op("bfi")
def _bfi(b, i):
    t = last_type(i)
    d, x, y = b.dst(i.args[0], t), b.src(i.args[1], t), b.src(i.args[2], t)
    pos, length = b.src(i.args[3], "u32"), b.src(i.args[4], "u32")

    def run(m):
        p, n = (pos & U32(255)).astype(U64), (length & U32(255)).astype(U64)
        ones = np.where(n >= 64, ~U64(0), (U64(1) << np.minimum(n, U64(63))) - U64(1))
        ones = np.where(p >= 64, U64(0), ones << np.minimum(p, U64(63)))
        moved = x.astype(U64) << np.minimum(p, U64(63))
        put(d, (moved & ones) | (y.astype(U64) & ~ones), m)

    return run


@op("bmsk")
def _bmsk(b, i):
    d, x, y = b.dst(i.args[0], "b32"), b.src(i.args[1], "u32"), b.src(i.args[2], "u32")
    wrap = "wrap" in i.mods

    def run(m):
        p, n = x.astype(U64), y.astype(U64)
        p, n = (p & U64(31), n & U64(31)) if wrap else (np.minimum(p, 32), np.minimum(n, 32))
        put(d, ((U64(1) << n) - U64(1)) << p, m)

    return run


@op("prmt")
def _prmt(b, i):
    d, x, y, c = (b.src(a, "b32") for a in i.args)
    if i.mods[-1] != "b32":
        raise Unsupported("prmt modes")

    def run(m):
        both = x.astype(U64) | (y.astype(U64) << U64(32))
        out = np.zeros_like(both)
        for k in range(4):
            s = (c >> U32(4 * k)) & U32(15)
            byte = (both >> ((s & U32(7)) * U32(8)).astype(U64)) & U64(255)
            sign = np.where(byte >= 128, U64(255), U64(0))
            out |= np.where(s >= 8, sign, byte) << U64(8 * k)
        put(d, out, m)

    return run


@op("lop3")
def _lop3(b, i):
    if i.mods[-1] != "b32" or i.args[0][0] == "pair":
        raise Unsupported("lop3 with a predicate")
    d, x, y, z = (b.src(a, "b32") for a in i.args[:4])
    lut = i.args[4][1]

    def run(m):
        out = np.zeros_like(d)
        for k in range(8):
            if lut >> k & 1:
                out |= (x if k & 4 else ~x) & (y if k & 2 else ~y) & (z if k & 1 else ~z)
        put(d, out, m)

    return run


@op("dp4a")
def _dp4a(b, i):
    ta, tb = i.types[-2:]
    d = b.dst(i.args[0], "s32")
    x, y = (b.src(a, "b32") for a in i.args[1:3])
    z = b.src(i.args[3], "s32")
    da, db = (I8 if t[0] == "s" else U8 for t in (ta, tb))

    def run(m):
        total = x.view(da).astype(I32).reshape(-1, 4) * y.view(db).astype(I32).reshape(-1, 4)
        put(d, z + total.sum(1, dtype=I32), m)

    return run


# Moves and selections.


def split_parts(b, parts, whole):
    size = SIZES[whole] // len(parts)
    return f"b{8 * size}"


@op("mov")
def _mov(b, i):
    t = last_type(i)
    to, of = i.args
    if of[0] == "vec":
        part = split_parts(b, of[1], t)
        d = b.dst(to, t)
        xs = [b.src(a, part) for a in of[1]]
        n = len(xs)
        dtype = d.dtype

        def pack(m):
            both = np.empty((b.n, n), xs[0].dtype)
            for k in range(n):
                both[:, k] = xs[k]
            put(d, both.view(dtype).reshape(-1), m)

        return pack
    if to[0] == "vec":
        part = split_parts(b, to[1], t)
        x = b.src(of, t)
        ds = [None if a[0] == "sink" else b.dst(a, part) for a in to[1]]
        parts = x.view(DTYPES[part]).reshape(b.n, len(ds))

        def unpack(m):
            values = [parts[:, k].copy() for k in range(len(ds))]
            for d, value in zip(ds, values):
                if d is not None:
                    put(d, value, m)

        return unpack
    if of[0] == "sreg" and of[1] in ("clock", "clock64", "globaltimer", "clock_hi"):
        d = b.dst(to, t)
        return lambda m: put(d, b.tick(), m)
    d, x = b.dst(to, t), b.src(of, t)
    return lambda m: np.copyto(d, x, where=m)


@op("selp")
def _selp(b, i):
    t = last_type(i)
    u = f"b{8 * SIZES[t]}"
    d, x, y = (b.src(a, t).view(DTYPES[u]) for a in i.args[:3])
    p, negated = b.predicate(i.args[3])
    if negated:
        x, y = y, x
    return lambda m: np.copyto(d, np.where(p, x, y), where=m)


@op("slct")
def _slct(b, i):
    t, s = i.types[-2:]
    d, x, y = (b.src(a, t) for a in i.args[:3])
    z = b.src(i.args[3], s)
    return lambda m: put(d, np.where(z >= 0, x, y), m)


COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater,
    "hs": np.greater_equal,
}  # fmt: skip
BOOLEANS = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def unordered(f):
    return lambda x, y: f(x, y) | np.isnan(x) | np.isnan(y)


FLOAT_COMPARE = {
    **{k: COMPARE[k] for k in ("eq", "lt", "le", "gt", "ge")},
    "ne": lambda x, y: (x != y) & ~np.isnan(x) & ~np.isnan(y),
    "equ": unordered(np.equal), "neu": np.not_equal, "ltu": unordered(np.less),
    "leu": unordered(np.less_equal), "gtu": unordered(np.greater),
    "geu": unordered(np.greater_equal),
    "num": lambda x, y: ~(np.isnan(x) | np.isnan(y)),
    "nan": lambda x, y: np.isnan(x) | np.isnan(y),
}  # fmt: skip


def comparison(b, i, t, args):
    """A function that returns bools."""
    names = [m for m in i.mods if m in COMPARE or m in FLOAT_COMPARE]
    name = names[0]
    if t in HALF:
        x, y = (b.src(a, "b16") for a in args)
        f = FLOAT_COMPARE[name]
        return lambda: f(fl.widen(x, t), fl.widen(y, t))
    if name in ("lo", "ls", "hi", "hs"):
        t = "u" + t[1:]
    x, y = (b.src(a, t) for a in args)
    if t in ("f32", "f64"):
        f = FLOAT_COMPARE[name]
        return lambda: f(x, y)
    f = COMPARE[name]
    return lambda: f(x, y)


@op("setp")
def _setp(b, i):
    t = last_type(i)
    first, second = i.args[0], None
    if first[0] == "pair":
        first, second = first[1:]
    d = b.dst(first, "pred")
    d2 = None if second is None or second[0] == "sink" else b.dst(second, "pred")
    boolean = next((BOOLEANS[m] for m in i.mods if m in BOOLEANS), None)
    c = negated = None
    if boolean is not None:
        c, negated = b.predicate(i.args[3])
    if t in PACKED:
        f = FLOAT_COMPARE[next(m for m in i.mods if m in FLOAT_COMPARE)]
        x, y = (b.src(a, "b32").view(U16) for a in i.args[1:3])

        def packed(m):
            r = f(fl.widen(x, t), fl.widen(y, t)).reshape(-1, 2)
            if boolean is not None:
                r = boolean(r, (~c if negated else c)[:, None])
            put(d, r[:, 0], m)
            if d2 is not None:
                put(d2, r[:, 1], m)

        return packed
    compare = comparison(b, i, t, i.args[1:3])
    if boolean is None and d2 is None:
        return lambda m: np.copyto(d, compare(), where=m)

    def run(m):
        r = compare()
        other = ~r
        if boolean is not None:
            q = ~c if negated else c
            other = boolean(other, q)
            r = boolean(r, q)
        np.copyto(d, r, where=m)
        if d2 is not None:
            np.copyto(d2, other, where=m)

    return run


@op("set")
def _set(b, i):
    dt, st = i.types[-2:]
    if st in PACKED:
        f = FLOAT_COMPARE[next(m for m in i.mods if m in FLOAT_COMPARE)]
        d, x, y = b.dst(i.args[0], "b32"), b.src(i.args[1], "b32"), b.src(i.args[2], "b32")
        one = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(dt, 0xFFFF)

        def packed(m):
            r = f(fl.widen(x.view(U16), st), fl.widen(y.view(U16), st))
            put(d, np.where(r, U16(one), U16(0)).view(U32), m)

        return packed
    compare = comparison(b, i, st, i.args[1:3])
    boolean = next((BOOLEANS[m] for m in i.mods if m in BOOLEANS), None)
    c = negated = None
    if boolean is not None:
        c, negated = b.predicate(i.args[3])
    d = b.dst(i.args[0], dt)
    if dt == "f32":
        one = F32(1)
    elif dt in HALF:
        d, one = b.dst(i.args[0], "b16"), U16(0x3C00 if dt == "f16" else 0x3F80)
    else:
        one = np.array(-1).astype(d.dtype)

    def run(m):
        r = compare()
        if boolean is not None:
            r = boolean(r, ~c if negated else c)
        put(d, np.where(r, one, d.dtype.type(0)), m)

    return run


@op("testp")
def _testp(b, i):
    t = last_type(i)
    d, x = b.dst(i.args[0], "pred"), b.src(i.args[1], t)
    tiny = np.finfo(DTYPES[t]).tiny
    f = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda v: ~np.isnan(v),
        "notanumber": np.isnan,
        "normal": lambda v: np.isfinite(v) & (np.abs(v) >= tiny),
        "subnormal": lambda v: (np.abs(v) < tiny) & (v != 0),
    }[i.mods[0]]
    return lambda m: put(d, f(x), m)


# Floats.


def float_op(b, i, t, f, exact=None):
    """d = f(args); f32 and f64 as they are, halves through float32."""
    rounding = next((r for r in ("rz", "rm", "rp") if r in i.mods), "rn")
    sat, ftz, relu = "sat" in i.mods, "ftz" in i.mods, "relu" in i.mods
    if t in HALF or t in PACKED:
        u = "b16" if t in HALF else "b32"
        d = b.dst(i.args[0], u)
        xs = [b.src(a, u).view(U16) for a in i.args[1:]]

        def half(m):
            r = f(*[fl.widen(x, t) for x in xs])
            if sat:
                r = np.where(np.isnan(r), F32(0), np.clip(r, 0, 1))
            if relu:
                r = np.where(np.isnan(r), r, np.maximum(r, 0))
            put(d, fl.narrow(r, t, rounding).view(d.dtype), m)

        return half
    d = b.dst(i.args[0], t)
    xs = [b.src(a, t) for a in i.args[1:]]
    if not (sat or ftz) and (rounding == "rn" or "approx" in i.mods):
        if isinstance(f, np.ufunc):
            if len(xs) == 2:
                x, y = xs
                return lambda m: f(x, y, out=d, where=m)
            if len(xs) == 1:
                x = xs[0]
                return lambda m: f(x, out=d, where=m)
        return lambda m: put(d, f(*xs), m)
    dtype = d.dtype.type

    def run(m):
        vs = [fl.flush(x) for x in xs] if ftz and t == "f32" else xs
        if rounding != "rn" and t == "f32":
            g = exact or f
            wide = g(*[v.astype(F64) for v in vs])
            r = fl.directed(wide, wide.astype(F32), rounding, F32)
        else:
            r = f(*vs)
        if ftz and t == "f32":
            r = fl.flush(r)
        if sat:
            r = np.where(np.isnan(r), dtype(0), np.clip(r, dtype(0), dtype(1)))
        put(d, r, m)

    return run


def fma32(x, y, z):
    return (x.astype(F64) * y + z).astype(F32)


def fma64(x, y, z):
    """Rounded once if long double is wide enough, twice otherwise."""
    w = np.longdouble
    return (x.astype(w) * y.astype(w) + z.astype(w)).astype(F64)


def fma_wide(x, y, z):
    return x.astype(F64) * y + z


@op("fma")
def _fma(b, i):
    t = last_type(i)
    if t == "f32":
        if not ({"rz", "rm", "rp", "sat", "ftz"} & set(i.mods)):
            d, x, y, z = (b.src(a, t) for a in i.args)
            b.dst(i.args[0], t)
            tmp = np.empty(b.n, F64)

            def run(m):
                np.multiply(x, y, out=tmp, dtype=F64)
                np.add(tmp, z, out=tmp)
                np.copyto(d, tmp, where=m, casting="unsafe")

            return run
        return float_op(b, i, t, fma32, fma_wide)
    return float_op(b, i, t, fma64 if t == "f64" else fma_wide)


def unary(name, f):
    def bind(b, i):
        t = last_type(i)
        return float_op(b, i, t, f)

    BIND[name] = bind


unary("sqrt", np.sqrt)
unary("rcp", lambda x: x.dtype.type(1) / x)
unary("rsqrt", lambda x: x.dtype.type(1) / np.sqrt(x))
unary("ex2", np.exp2)
unary("lg2", np.log2)
unary("tanh", np.tanh)
unary("sin", np.sin)
unary("cos", np.cos)


@op("copysign")
def _copysign(b, i):
    t = last_type(i)
    d, x, y = b.dst(i.args[0], t), b.src(i.args[1], t), b.src(i.args[2], t)
    return lambda m: put(d, np.copysign(y, x), m)


# Conversions.


def to_integer(v, dtype, mode):
    f = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[mode]
    info = np.iinfo(dtype)
    v = f(v.astype(F64))
    # The bounds as floats may lie outside of the type.
    low, up = float(info.min), float(info.max)
    inside = np.where(np.isnan(v), 0.0, np.clip(v, low, up))
    big = inside >= up
    small = inside <= low
    out = np.where(big | small, 0.0, inside).astype(dtype)
    return np.where(big, dtype(info.max), np.where(small, dtype(info.min), out))


@op("cvt")
def _cvt(b, i):
    mods = i.mods
    if "pack" in mods:
        raise Unsupported("cvt.pack")
    dt, st = i.types[-2:]
    sat, ftz, relu = "sat" in mods, "ftz" in mods, "relu" in mods
    rounding = next((r for r in ("rna", "rz", "rm", "rp") if r in mods), "rn")
    integral = next((r for r in ("rni", "rzi", "rmi", "rpi") if r in mods), None)
    if dt in PACKED:
        d = b.dst(i.args[0], "b32")
        x, y = (b.src(a, "f32") for a in i.args[1:3])

        def packed(m):
            both = np.empty((b.n, 2), U16)
            for k, v in ((0, y), (1, x)):
                if relu:
                    v = np.where(np.isnan(v), v, np.maximum(v, F32(0)))
                both[:, k] = fl.narrow(v, dt, rounding)
            put(d, both.view(U32).reshape(-1), m)

        return packed
    if dt == "tf32":
        d, x = b.dst(i.args[0], "b32"), b.src(i.args[1], "f32").view(U32)
        half = U32(0x1000) if rounding == "rna" else U32(0)

        def tf32(m):
            bits = x
            if rounding == "rn":
                bits = x + (U32(0xFFF) + ((x >> U32(13)) & U32(1)))
            put(d, (bits + half) & U32(0xFFFFE000), m)

        return tf32
    float_from = st in ("f32", "f64", *HALF)
    float_to = dt in ("f32", "f64", *HALF)
    read = b.get(i.args[1], st)
    if st in HALF:
        raw = b.get(i.args[1], "b16")

        def read():
            return fl.widen(raw(), st)

    d = b.dst(i.args[0], "b16") if dt in HALF else None
    if not float_from and not float_to:
        d = b.wide_dst(i.args[0], dt)
        dtype = DTYPES[dt]
        if sat:
            info = np.iinfo(dtype)
            if st == "u64":
                return lambda m: put(d, np.minimum(read(), U64(info.max)), m)
            return lambda m: put(d, np.clip(read().astype(I64), info.min, info.max), m)
        if SIZES[dt] == d.itemsize:
            return lambda m: np.copyto(d, read(), where=m, casting="unsafe")
        return lambda m: put(d, read().astype(dtype), m)
    if float_from and not float_to:
        d = b.wide_dst(i.args[0], dt)
        dtype = DTYPES[dt]
        mode = integral or "rzi"

        def integer(m):
            v = read()
            put(d, to_integer(fl.flush(v) if ftz and st == "f32" else v, dtype, mode), m)

        return integer
    if dt not in HALF:
        d = b.dst(i.args[0], dt)
    final = DTYPES[dt]
    f = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}.get(integral)

    def run(m):
        v = read()
        if ftz and st == "f32":
            v = fl.flush(v)
        if f is not None:
            v = f(v)
        if relu:
            v = np.where(np.isnan(v), v, np.maximum(v, 0))
        if sat:
            v = np.where(np.isnan(v), v.dtype.type(0), np.clip(v, 0, 1))
        if dt in HALF:
            put(d, fl.narrow(v if float_from else v.astype(F64), dt, rounding), m)
            return
        r = v.astype(final)
        if rounding != "rn" and final is F32 and v.dtype != F32:
            r = fl.directed(v.astype(F64), r, rounding, F32)
        if ftz and dt == "f32":
            r = fl.flush(r)
        put(d, r, m)

    return run


@op("cvta")
def _cvta(b, i):
    t = last_type(i)
    d, x = b.dst(i.args[0], t), b.src(i.args[1], t)
    window = 0
    if "shared" in i.mods or "shared::cta" in i.mods:
        window = SHARED_WINDOW
    elif "local" in i.mods:
        window = LOCAL_WINDOW
    if not window:
        return lambda m: np.copyto(d, x, where=m)
    if d.itemsize != 8:
        raise Unsupported("cvta.u32")
    f = np.subtract if "to" in i.mods else np.add
    window = d.dtype.type(window)
    return lambda m: f(x, window, out=d, where=m)


@op("isspacep")
def _isspacep(b, i):
    d, x = b.dst(i.args[0], "pred"), b.src(i.args[1], "b64")
    w = U64(SHARED_WINDOW)
    v = U64(LOCAL_WINDOW)
    f = {
        "shared": lambda: x >= w,
        "local": lambda: (x >= v) & (x < w),
        "global": lambda: x < v,
    }[i.mods[0].split("::")[0]]
    return lambda m: put(d, f(), m)


@op(
    "membar", "fence", "prefetch", "prefetchu", "pragma", "nanosleep", "applypriority", "discard",
    "griddepcontrol", "setmaxnreg",
)  # fmt: skip
def _nothing(b, i):
    return lambda m: None
