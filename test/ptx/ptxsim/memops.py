"""Loads, stores, atomics, asynchronous copies."""

import numpy as np

from . import floats as fl
from .memory import Unsupported
from .ops import DTYPES, HALF, I64, PACKED, SIGNED, U16, UNSIGNED, op
from .parser import SIZES

STRONG = ("volatile", "relaxed", "acquire", "release", "mmio")


def space_of(b, inst):
    for mod in inst.mods:
        name = mod.split("::")[0]
        if name in ("global", "const", "param"):
            return b.glob
        if name == "shared":
            return b.shared
        if name == "local":
            return b.local
    return b.generic


def addresses(b, operand, size=8):
    """A function of the lanes (None for all) that returns int64 addresses."""
    if operand[0] != "mem":
        raise Unsupported("address operand")
    base, offset = operand[1], operand[2]
    if base[0] == "reg":
        array = b.regs[base[1]]
        if array.itemsize == 8:
            array = array.view(I64)
        elif array.itemsize != 4:
            raise Unsupported("address register")

        def address(lanes):
            a = array if lanes is None else array[lanes]
            if a.dtype == I64:
                return a + offset if offset else a
            a = a.astype(I64)
            return a + offset if offset else a

        return address
    fixed = b.symbol(base) if base[0] == "sym" else base[1]
    array = np.full(b.n, fixed + offset, I64)
    return lambda lanes: array if lanes is None else array[lanes]


def lanes_of(m):
    return None if m is True else np.flatnonzero(m)


def spread(space, address, lanes):
    """The accesses by space: [(space, address, lanes, positions)]."""
    if space.name == "generic":
        return space.parts(address, lanes)
    return [(space, address, lanes, None)]


def gather(space, address, lanes, size, n, inst, kind):
    """n arrays of unsigned integers of `size` bytes."""
    parts = spread(space, address, lanes)
    shift = size.bit_length() - 1
    if len(parts) == 1:
        s, a, lanes, _ = parts[0]
        at = s.locate(a, lanes, size * n, False, inst, kind) >> shift
        view = s.views[size]
        return [view[at]] if n == 1 else [view[at + k] for k in range(n)]
    outs = [np.empty(len(address), UNSIGNED[size]) for _ in range(n)]
    for s, a, ls, positions in parts:
        at = s.locate(a, ls, size * n, False, inst, kind) >> shift
        for k in range(n):
            outs[k][positions] = s.views[size][at + k]
    return outs


def scatter(space, address, lanes, size, values, inst, kind):
    n = len(values)
    shift = size.bit_length() - 1
    for s, a, ls, positions in spread(space, address, lanes):
        at = s.locate(a, ls, size * n, True, inst, kind) >> shift
        for k in range(n):
            s.views[size][at + k if k else at] = (
                values[k] if positions is None else values[k][positions]
            )


def access_kind(inst):
    return "strong" if any(m in STRONG for m in inst.mods) else "plain"


def elements(operand):
    return operand[1] if operand[0] == "vec" else [operand]


@op("ld", "ldu")
def _ld(b, i):
    t = i.types[-1]
    size = SIZES[t]
    parts = elements(i.args[0])
    n = len(parts)
    if n == 1 and t == "b128":
        raise Unsupported("b128")
    ds = [None if a[0] == "sink" else b.wide_dst(a, "b16" if t in HALF else t) for a in parts]
    space = space_of(b, i)
    address = addresses(b, i.args[1])
    view = SIGNED[size] if t[0] == "s" else UNSIGNED[size]
    same = [d is None or d.itemsize == size for d in ds]
    ds = [d.view(UNSIGNED[size]) if d is not None and s else d for d, s in zip(ds, same)]
    kind = access_kind(i)

    def run(m):
        lanes = lanes_of(m)
        if lanes is not None and not len(lanes):
            return
        values = gather(space, address(lanes), lanes, size, n, i, kind)
        for d, value, s in zip(ds, values, same):
            if d is None:
                continue
            if not s:
                value = value.view(view)
            if lanes is None:
                d[...] = value
            else:
                d[lanes] = value

    return run


@op("st")
def _st(b, i):
    t = i.types[-1]
    size = SIZES[t]
    parts = elements(i.args[1])
    u = f"b{8 * size}"
    reads = [b.get(a, u if a[0] == "reg" else t if t[0] == "f" else u) for a in parts]
    space = space_of(b, i)
    address = addresses(b, i.args[0])
    unsigned = UNSIGNED[size]
    kind = access_kind(i)

    def run(m):
        lanes = lanes_of(m)
        if lanes is not None and not len(lanes):
            return
        values = [r().view(unsigned) for r in reads]
        if lanes is not None:
            values = [v[lanes] for v in values]
        scatter(space, address(lanes), lanes, size, values, i, kind)

    return run


def combine(name, t):
    """(old, operand, third) -> new, of type t's arrays"""
    if t in HALF or t in PACKED:
        f = {"add": np.add, "min": fl.minimum, "max": fl.maximum}[name]
        return lambda o, x, y: fl.narrow(
            f(fl.widen(o.view(U16), t), fl.widen(x.view(U16), t)), t
        ).view(o.dtype)
    return {
        "add": lambda o, x, y: o + x,
        "and": lambda o, x, y: o & x,
        "or": lambda o, x, y: o | x,
        "xor": lambda o, x, y: o ^ x,
        "min": lambda o, x, y: np.minimum(o, x),
        "max": lambda o, x, y: np.maximum(o, x),
        "exch": lambda o, x, y: x,
        "cas": lambda o, x, y: np.where(o == x, y, o),
        "inc": lambda o, x, y: np.where(o >= x, o.dtype.type(0), o + o.dtype.type(1)),
        "dec": lambda o, x, y: np.where((o == 0) | (o > x), x, o - o.dtype.type(1)),
    }[name]


@op("atom", "red")
def _atom(b, i):
    t = last_of(i)
    u = f"b{8 * SIZES[t]}"
    size = SIZES[t]
    name = next(
        m for m in i.mods
        if m in ("add", "and", "or", "xor", "min", "max", "exch", "cas", "inc", "dec")
    )  # fmt: skip
    args = list(i.args)
    d = None
    if i.op == "atom":
        to = args.pop(0)
        if to[0] == "vec":
            raise Unsupported("vector atomics")
        d = None if to[0] == "sink" else b.dst(to, u)
    if any(a[0] == "vec" for a in args):
        raise Unsupported("vector atomics")
    address = addresses(b, args[0])
    kind_t = u if t in HALF or t in PACKED else t
    x = b.src(args[1], kind_t)
    y = b.src(args[2], kind_t) if len(args) > 2 else None
    f = combine(name, t)
    dtype = DTYPES[kind_t]
    unsigned = UNSIGNED[size]
    shift = size.bit_length() - 1
    space = space_of(b, i)

    def run(m):
        lanes = lanes_of(m)
        if lanes is not None and not len(lanes):
            return
        for s, a, ls, _ in spread(space, address(lanes), lanes):
            s.locate(a, ls, size, False, i, "strong")
            at = s.locate(a, ls, size, True, i, "strong") >> shift
            view = s.views[size].view(dtype)
            here = b.arange if ls is None else ls
            # Lanes on one address take turns, in order.
            order = np.argsort(at, kind="stable")
            sorted_at = at[order]
            first = np.ones(len(at), bool)
            first[1:] = sorted_at[1:] != sorted_at[:-1]
            if first.all():
                rounds = [order]
            else:
                starts = np.flatnonzero(first)
                rank = np.arange(len(at)) - np.repeat(starts, np.diff([*starts, len(at)]))
                rounds = [order[rank == k] for k in range(int(rank.max()) + 1)]
            for part in rounds:
                p, who = at[part], here[part]
                old = view[p]
                view[p] = f(old, x[who], None if y is None else y[who])
                if d is not None:
                    d[who] = old.view(unsigned)

    return run


def last_of(inst):
    return next(t for t in reversed(inst.types))


class Copies:
    """Asynchronous copies: per group, the copies in order; per thread, which groups are open."""

    def __init__(self, lanes):
        self.committed = np.zeros(lanes, np.int64)
        self.done = np.zeros(lanes, np.int64)
        self.queue = []  # (lanes, group of each lane, copy)

    def add(self, lanes, copy):
        self.queue.append([lanes, self.committed[lanes].copy(), copy])

    def wait(self, lanes, left):
        """Completes all but the last `left` groups of `lanes`; left is -1 for open ones as well."""
        total = len(self.committed)
        upto = np.zeros(total, np.int64)
        if left < 0:
            upto[lanes] = np.iinfo(np.int64).max
        else:
            upto[lanes] = self.committed[lanes] - left
        rest = []
        for entry in self.queue:
            which, group, copy = entry
            ready = group < upto[which]
            if ready.any():
                copy(which[ready], ready)
                if ready.all():
                    continue
                keep = ~ready
                entry = [which[keep], group[keep], copy.keep(keep)]
            rest.append(entry)
        self.queue = rest


class Copy:
    """One instruction's copies, of some lanes. The source is read when it completes."""

    def __init__(self, b, inst, size, source, target, length):
        self.b, self.inst, self.size = b, inst, size
        self.source, self.target, self.length = source, target, length

    def keep(self, which):
        return Copy(
            self.b, self.inst, self.size,
            self.source[which], self.target[which], self.length[which],
        )  # fmt: skip

    def __call__(self, lanes, which):
        b, size = self.b, self.size
        source, target, length = self.source[which], self.target[which], self.length[which]
        word = min(size, 8)
        n = size // word
        data = np.zeros((len(lanes), size), np.uint8)
        full = np.flatnonzero(length >= size)
        if len(full):
            values = gather(b.glob, source[full], lanes[full], word, n, self.inst, "plain")
            view = data.view(UNSIGNED[word])
            for k in range(n):
                view[full, k] = values[k]
        for at in np.flatnonzero((length < size) & (length > 0)):
            for k in range(int(length[at])):
                where = source[at : at + 1] + k
                data[at, k] = gather(b.glob, where, lanes[at : at + 1], 1, 1, self.inst, "plain")[
                    0
                ][0]
        view = data.view(UNSIGNED[word])
        scatter(
            b.shared, target, lanes, word,
            [np.ascontiguousarray(view[:, k]) for k in range(n)], self.inst, "complete",
        )  # fmt: skip


@op("cp")
def _cp(b, i):
    if i.mods[:2] == ["async", "commit_group"]:

        def commit(m):
            b.copies.committed[m if m is not True else slice(None)] += 1

        return commit
    if i.mods[:2] in (["async", "wait_group"], ["async", "wait_all"]):
        left = i.args[0][1] if i.mods[1] == "wait_group" else -1

        def wait(m):
            b.copies.wait(b.arange if m is True else np.flatnonzero(m), left)

        return wait
    if i.mods[0] != "async" or i.mods[1] not in ("ca", "cg"):
        raise Unsupported(".".join(["cp", *i.mods]))
    to, source = addresses(b, i.args[0]), addresses(b, i.args[1])
    size = i.args[2][1]
    ignore = None
    length = None
    if len(i.args) > 3:
        kind = i.args[3]
        if kind[0] == "not" or (kind[0] == "reg" and b.regs[kind[1]].dtype == np.bool_):
            ignore = b.predicate(kind)
        elif kind[0] != "imm" or len(i.args) > 3:
            length = b.src(kind, "u32")
    legal = (16,) if i.mods[1] == "cg" else (4, 8, 16)
    if size not in legal:
        raise Unsupported(f"cp.async.{i.mods[1]} of {size} bytes")

    def run(m):
        lanes = b.arange if m is True else np.flatnonzero(m)
        if not len(lanes):
            return
        target, origin = to(lanes), source(lanes)
        if length is not None:
            count = np.minimum(length[lanes], size).astype(I64)
        else:
            count = np.full(len(lanes), size, I64)
            if ignore is not None:
                count[ignore[0][lanes] ^ ignore[1]] = 0
        misaligned = np.flatnonzero(origin & (size - 1))
        if len(misaligned):
            bad = misaligned[0]
            b.where(i, lanes, bad, f"misaligned {size}-byte copy from", origin[bad])
        read = np.flatnonzero(count == size)
        if len(read):
            b.glob.locate(origin[read], lanes[read], size, False, i)
        b.shared.locate(target, lanes, size, True, i, "issue")
        b.copies.add(lanes, Copy(b, i, size, origin, target, count))

    return run
