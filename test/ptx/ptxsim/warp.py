"""What the threads of a warp do together. Lanes come in warps of 32: arrays as [warp, lane].

A function gets the mask of the lanes that take part; of a warp either all its members or none.
"""

import numpy as np

from . import floats as fl
from .memops import addresses
from .memory import Unsupported
from .ops import F32, F64, I64, U8, U16, U32, put

LANE = np.arange(32)
WARP = {}
ALL = ("imm", 0xFFFFFFFF)


def warp_op(*names):
    def add(function):
        for name in names:
            WARP[name] = function
        return function

    return add


@warp_op("shfl")
def _shfl(b, i):
    """(function, membermask operand, whole warp)"""
    mode = i.mods[1]
    first, p = i.args[0], None
    if first[0] == "pair":
        first, p = first[1:]
    d = b.dst(first, "b32")
    p = None if p is None or p[0] == "sink" else b.dst(p, "pred")
    a, x, c = (b.src(v, "u32") for v in i.args[1:4])
    base = b.arange & ~31
    lane = b.arange & 31

    def run(m):
        offset = (x & U32(31)).astype(I64)
        clamp = (c & U32(31)).astype(I64)
        segment = ((c >> U32(8)) & U32(31)).astype(I64)
        low = lane & segment
        top = low | (clamp & ~segment)
        if mode == "up":
            j = lane - offset
            ok = j >= top
        elif mode == "down":
            j = lane + offset
            ok = j <= top
        elif mode == "bfly":
            j = lane ^ offset
            ok = j <= top
        else:
            j = low | (offset & ~segment)
            ok = j <= top
        at = base + np.where(ok, j, lane)
        value = a[at]
        if m is not True:
            value = np.where(m[at], value, U32(0xDEADBEEF))
        put(d, value, m)
        if p is not None:
            put(p, ok, m)

    return run, i.args[4], False


def bits(b, p, m):
    """Per warp, the lanes of p and m as a number; [warps]."""
    if m is not True:
        p = p & m
    return np.packbits(p.reshape(-1, 32), axis=1, bitorder="little").view(U32).reshape(-1)


@warp_op("vote")
def _vote(b, i):
    mode = next(x for x in i.mods if x in ("ballot", "any", "all", "uni"))
    p, negated = b.predicate(i.args[1])
    d = b.dst(i.args[0], "b32" if mode == "ballot" else "pred")
    member = i.args[2]
    mask = b.src(member, "u32")

    def run(m):
        q = ~p if negated else p
        yes = np.repeat(bits(b, q, m), 32) & mask
        if mode == "ballot":
            return put(d, yes, m)
        if mode == "any":
            return put(d, yes != 0, m)
        no = np.repeat(bits(b, ~q, m), 32) & mask
        put(d, no == 0 if mode == "all" else (no == 0) | (yes == 0), m)

    return run, member, False


@warp_op("activemask")
def _activemask(b, i):
    d = b.dst(i.args[0], "b32")
    true = np.ones(b.n, bool)
    return (lambda m: put(d, np.repeat(bits(b, true, m), 32), m)), None, False


@warp_op("elect")
def _elect(b, i):
    first = i.args[0]
    d, p = first[1:]
    d = None if d[0] == "sink" else b.dst(d, "b32")
    p = b.dst(p, "pred")
    mask = b.src(i.args[1], "u32")

    def run(m):
        low = np.bitwise_count((mask & -mask) - U32(1))
        if d is not None:
            put(d, low, m)
        put(p, (b.arange & 31) == low, m)

    return run, i.args[1], False


@warp_op("redux")
def _redux(b, i):
    t = i.types[-1]
    name = next(x for x in i.mods if x in ("add", "min", "max", "and", "or", "xor"))
    d, x = b.dst(i.args[0], t), b.src(i.args[1], t)
    if t == "f32":
        raise Unsupported("redux.f32")
    f = {
        "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
        "or": np.bitwise_or, "xor": np.bitwise_xor,
    }[name]  # fmt: skip
    mask = b.src(i.args[2], "u32")
    shifts = LANE.astype(U32)

    def run(m):
        active = np.ones(b.n, bool) if m is True else m
        out = d.copy().reshape(-1, 32)
        values, masks = x.reshape(-1, 32), mask.reshape(-1, 32)
        for w in np.flatnonzero(active.reshape(-1, 32).any(1)):
            for each in np.unique(masks[w][active.reshape(-1, 32)[w]]):
                who = ((each >> shifts) & U32(1)).astype(bool) & active.reshape(-1, 32)[w]
                out[w, who] = f.reduce(values[w, who], dtype=values.dtype)
        put(d, out.reshape(-1), m)

    return run, i.args[2], False


@warp_op("match")
def _match(b, i):
    t = i.types[-1]
    every = "all" in i.mods
    first, p = i.args[0], None
    if first[0] == "pair":
        first, p = first[1:]
    d = b.dst(first, "b32")
    p = None if p is None or p[0] == "sink" else b.dst(p, "pred")
    x = b.src(i.args[1], t)
    mask = b.src(i.args[2], "u32")
    weights = U32(1) << LANE.astype(U32)

    def run(m):
        v = x.reshape(-1, 32)
        same = v[:, :, None] == v[:, None, :]
        found = (same * weights).sum(2, dtype=U32).reshape(-1)
        active = np.repeat(bits(b, np.ones(b.n, bool), m), 32) & mask
        found = found & active
        if every:
            ok = found == active
            put(d, np.where(ok, active, U32(0)), m)
            if p is not None:
                put(p, ok, m)
        else:
            put(d, found, m)

    return run, i.args[2], False


def whole(b, m):
    """The warps that take part, as an index."""
    if m is True:
        return slice(None)
    return np.flatnonzero(m.reshape(-1, 32)[:, 0])


def row_addresses(b, address, w, count):
    """Addresses and lanes of the rows of `count` matrices, [warps * count * 8] each."""
    lanes = b.arange.reshape(-1, 32)[w][:, : 8 * count].reshape(-1)
    return address(lanes), lanes


def matrix_shape(i, name):
    """How many 8x8 matrices an ldmatrix or stmatrix moves, and whether transposed."""
    if i.mods[-1] != "b16" or "m8n8" not in i.mods:
        raise Unsupported(f"{name} of other than m8n8 b16")
    return next(int(x[1]) for x in i.mods if x in ("x1", "x2", "x4")), "trans" in i.mods


@warp_op("ldmatrix")
def _ldmatrix(b, i):
    count, trans = matrix_shape(i, "ldmatrix")
    parts = i.args[0][1] if i.args[0][0] == "vec" else [i.args[0]]
    ds = [b.dst(a, "b32").reshape(-1, 32) for a in parts]
    address = addresses(b, i.args[1])
    generic = not any(x.startswith("shared") for x in i.mods)
    row, column = LANE // 4, 2 * (LANE % 4)

    def run(m):
        w = whole(b, m)
        at, lanes = row_addresses(b, address, w, count)
        if generic:
            at = b.to_shared(at, lanes, i)
        start = b.shared.locate(at, lanes, 16, False, i)
        data = b.shared.views[2][(start >> 1)[:, None] + np.arange(8)]
        data = data.reshape(-1, count, 8, 8).astype(U32)
        if trans:
            data = data.swapaxes(2, 3)
        out = data[:, :, row, column] | (data[:, :, row, column + 1] << U32(16))
        for k, d in enumerate(ds):
            d[w] = out[:, k]

    return run, ALL, True


@warp_op("stmatrix")
def _stmatrix(b, i):
    count, trans = matrix_shape(i, "stmatrix")
    parts = i.args[1][1] if i.args[1][0] == "vec" else [i.args[1]]
    xs = [b.src(a, "b32").reshape(-1, 32) for a in parts]
    address = addresses(b, i.args[0])
    generic = not any(x.startswith("shared") for x in i.mods)
    row, column = LANE // 4, 2 * (LANE % 4)

    def run(m):
        w = whole(b, m)
        at, lanes = row_addresses(b, address, w, count)
        if generic:
            at = b.to_shared(at, lanes, i)
        start = b.shared.locate(at, lanes, 16, True, i)
        values = np.stack([x[w] for x in xs], 1)
        data = np.empty((values.shape[0], count, 8, 8), U16)
        data[:, :, row, column] = values & U32(0xFFFF)
        data[:, :, row, column + 1] = values >> U32(16)
        if trans:
            data = data.swapaxes(2, 3)
        b.shared.views[2][(start >> 1)[:, None] + np.arange(8)] = data.reshape(-1, 8)

    return run, ALL, True


@warp_op("movmatrix")
def _movmatrix(b, i):
    d, x = b.dst(i.args[0], "b32").reshape(-1, 32), b.src(i.args[1], "b32").reshape(-1, 32)
    row, column = LANE // 4, 2 * (LANE % 4)

    def run(m):
        w = whole(b, m)
        values = x[w]
        data = np.empty((values.shape[0], 8, 8), U32)
        data[:, row, column] = values & U32(0xFFFF)
        data[:, row, column + 1] = values >> U32(16)
        data = data.swapaxes(1, 2)
        d[w] = data[:, row, column] | (data[:, row, column + 1] << U32(16))

    return run, ALL, True


GROUP, SLOT = LANE // 4, LANE % 4


def fragment_a(k, per):
    """Flat places in [16, k] of the elements [register, lane, element] of A."""
    registers = 16 * k // 32 // per
    r = np.arange(registers)[:, None, None]
    e = np.arange(per)[None, None, :]
    row = GROUP[None, :, None] + 8 * (r % 2)
    column = SLOT[None, :, None] * per + e + 4 * per * (r // 2)
    return (row * k + column).reshape(-1)


def fragment_b(k, per):
    """Flat places in [k, 8]."""
    registers = k * 8 // 32 // per
    r = np.arange(registers)[:, None, None]
    e = np.arange(per)[None, None, :]
    row = SLOT[None, :, None] * per + e + 4 * per * r
    return (row * 8 + GROUP[None, :, None] + 0 * row).reshape(-1)


def elements(registers, w, t):
    """Values of 32-bit registers, [warps, register * lane * element]."""
    x = np.stack([r[w] for r in registers], 1)
    n = x.shape[0]
    if t == "bf16":
        return fl.bf16_to_f32(x.view(U16)).reshape(n, -1)
    if t == "f16":
        return fl.f16_to_f32(x.view(U16)).reshape(n, -1)
    if t == "tf32":
        return fl.tf32(x).reshape(n, -1)
    return x.view(np.int8 if t == "s8" else U8).reshape(n, -1)


@warp_op("mma")
def _mma(b, i):
    shape = next(x for x in i.mods if x.startswith("m") and x[1:2].isdigit())
    dt, at, bt, ct = i.mods[-4:]
    m_, rest = shape[1:].split("n")
    n_, k_ = rest.split("k")
    k = int(k_)
    per = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4}.get(at)
    legal = {2: (8, 16), 1: (4, 8), 4: (16, 32)}.get(per, ())
    if (m_, n_) != ("16", "8") or k not in legal or i.mods[-6:-4] != ["row", "col"]:
        if "satfinite" not in i.mods or (m_, n_) != ("16", "8") or k not in legal:
            raise Unsupported(".".join(["mma", *i.mods]))
    integer = per == 4
    half_c, half_d = ct == "f16", dt == "f16"
    d = [b.dst(a, "b32").reshape(-1, 32) for a in i.args[0][1]]
    ra, rb, rc = (
        [b.src(a, "b32").reshape(-1, 32) for a in (v[1] if v[0] == "vec" else [v])]
        for v in i.args[1:4]
    )
    pa, pb = fragment_a(k, per), fragment_b(k, per)
    pc = fragment_a(8, 2)
    if (len(pa), len(pb)) != (len(ra) * 32 * per, len(rb) * 32 * per):
        raise Unsupported(i.text)
    wide = I64 if integer else F64
    saturate = "satfinite" in i.mods

    def run(m):
        w = whole(b, m)
        n = ra[0][w].shape[0]
        x = np.empty((n, 16 * k), wide)
        y = np.empty((n, k * 8), wide)
        x[:, pa] = elements(ra, w, at)
        y[:, pb] = elements(rb, w, bt)
        total = (x.reshape(n, 16, k) @ y.reshape(n, k, 8)).reshape(n, 128)[:, pc]
        c = np.stack([r[w] for r in rc], 1)
        if half_c:
            c = fl.f16_to_f32(c.view(U16)).reshape(n, 2, 32, 2)
        else:
            # Registers 0 and 1 are neighbours in the row.
            c = c.view(np.int32 if integer else F32).reshape(n, 2, 2, 32).swapaxes(2, 3)
        total = total.reshape(n, 2, 32, 2) + c
        if half_d:
            out = fl.to_f16(total).reshape(n, 2, 32, 2).view(U32).reshape(n, 2, 32)
        else:
            if integer:
                if saturate:
                    total = np.clip(total, -(1 << 31), (1 << 31) - 1)
                total = total.astype(np.int32)
            else:
                total = total.astype(F32)
            out = np.ascontiguousarray(total.swapaxes(2, 3)).view(U32).reshape(n, 4, 32)
        for q, each in enumerate(d):
            each[w] = out[:, q]

    return run, ALL, True
