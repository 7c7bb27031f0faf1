"""Launches: CTAs in batches, threads as lanes, the smallest program counter first."""

import numpy as np

from . import memops as _memops  # noqa: F401  (registers its instructions)
from . import warp as _warp
from .memops import Copies
from .memory import (
    BASE,
    LOCAL_START,
    LOCAL_WINDOW,
    SHARED_START,
    SHARED_WINDOW,
    Fault,
    Memory,
    Unsupported,
)
from .ops import BIND, DTYPES, Binder
from .parser import SIZES, Parser
from .spaces import Banked, Generic, Global, Tracker

DONE = np.iinfo(np.int64).max
PLAIN, BRANCH, EXIT, BARRIER, WARP, TABLE = range(6)
VOIDS = ("bar", "barrier")


def align_up(value, align):
    return -(-value // align) * align


class Module:
    """The kernels of a PTX text.

    races, uninitialised_shared: check shared memory (granules as small as the kernel's accesses).
    uninitialised_registers: fault when a register is read that was never written.
    max_lanes: how many threads run at once; a CTA is never split.
    max_steps: give up after so many instructions of one batch.
    """

    def __init__(
        self,
        text,
        *,
        races=True,
        uninitialised_shared=True,
        uninitialised_registers=False,
        max_lanes=4096,
        max_steps=200_000_000,
    ):
        parser = Parser(text)
        self.kernels = parser.kernels
        self.variables = parser.variables
        self.races = races
        self.uninitialised_shared = uninitialised_shared
        self.uninitialised_registers = uninitialised_registers
        self.max_lanes = max_lanes
        self.max_steps = max_steps
        self.steps = 0  # instructions issued by the last launch, for groups of lanes

    def launch(self, kernel, grid, block, shared_bytes=0, args=(), memory=None):
        grid, block = dimensions(grid), dimensions(block)
        threads = block[0] * block[1] * block[2]
        if not 1 <= threads <= 1024:
            raise ValueError(f"{threads} threads in a block")
        if kernel not in self.kernels:
            raise ValueError(f"no kernel {kernel}; there are {sorted(self.kernels)}")
        memory = Memory() if memory is None else memory
        ctas = grid[0] * grid[1] * grid[2]
        padded = align_up(threads, 32)
        batch = max(1, min(ctas, self.max_lanes // padded))
        self.steps = 0
        bound = None
        for first in range(0, ctas, batch):
            count = min(batch, ctas - first)
            if bound is None or bound.count != count:
                bound = Launch(
                    self, self.kernels[kernel], grid, block, count, shared_bytes, args, memory
                )
            bound.start(first)
            bound.run()
            self.steps += bound.steps

    def unsupported(self, kernel):
        """The instructions of a kernel that would raise Unsupported if they ran."""
        launch = Launch(self, self.kernels[kernel], (1, 1, 1), (32, 1, 1), 1, 0, None, Memory())
        return launch.refused


def dimensions(value):
    value = (value,) if np.isscalar(value) else tuple(value)
    return tuple(int(v) for v in (*value, 1, 1, 1)[:3])


def parameter_bytes(kernel, args):
    if args is None:
        return np.zeros(4096, np.uint8), {}
    if len(args) != len(kernel.params):
        raise ValueError(f"{kernel.name} takes {len(kernel.params)} arguments, not {len(args)}")
    raw, offsets, at = b"", {}, 0
    for param, arg in zip(kernel.params, args):
        at = align_up(len(raw), param.align)
        raw += bytes(at - len(raw))
        offsets[param.name] = at
        if isinstance(arg, bytes | np.ndarray):
            piece = bytes(arg) if isinstance(arg, bytes) else arg.tobytes()
        elif param.type == "f32" or param.type == "f64":
            piece = DTYPES[param.type](arg).tobytes()
        elif isinstance(arg, float | np.floating):
            piece = (np.float64 if param.size == 8 else np.float32)(arg).tobytes()
        else:
            piece = (int(arg) & ((1 << (8 * param.size)) - 1)).to_bytes(param.size, "little")
        if len(piece) != param.size:
            raise ValueError(f"{param.name} has {param.size} bytes, not {len(piece)}")
        raw += piece
    return np.frombuffer(raw, np.uint8), offsets


class Launch:
    """A kernel bound to the lanes of one batch of CTAs."""

    def __init__(self, module, kernel, grid, block, count, shared_bytes, args, memory):
        self.module, self.kernel, self.memory = module, kernel, memory
        self.grid, self.block, self.count = grid, block, count
        self.threads = block[0] * block[1] * block[2]
        self.padded = align_up(self.threads, 32)
        self.n = count * self.padded
        self.steps = 0
        self.refused = []
        n = self.n
        b = self.binder = Binder(n)
        lane = np.arange(n)
        self.cta = lane // self.padded
        self.tid = lane % self.padded
        self.exists = self.tid < self.threads
        self.warps_per_cta = self.padded // 32
        self.place(b, shared_bytes, args)
        self.specials(b, shared_bytes)
        for name, kind in kernel.registers.items():
            size = SIZES[kind]
            if size == 16:
                continue
            b.regs[name] = np.zeros(n, bool if kind == "pred" else f"u{size}")
        b.copies = Copies(n)
        b.where = self.where
        b.to_shared = self.to_shared
        b.tick = lambda: self.steps
        self.bind(b)

    # Symbols and memories.

    def place(self, b, shared_bytes, args):
        memory, module, kernel, n = self.memory, self.module, self.kernel, self.n
        raw, offsets = parameter_bytes(kernel, args)
        everything = [*module.variables, *kernel.variables]
        at = SHARED_START
        for v in everything:
            if v.space == "shared" and not v.extern:
                at = align_up(at, v.align)
                b.symbols[v.name] = at
                at += v.size
        dynamic = [v for v in everything if v.space == "shared" and v.extern]
        if shared_bytes or dynamic:
            at = align_up(at, max([16, *(v.align for v in dynamic)]))
        for v in dynamic:
            b.symbols[v.name] = at
        size = at + shared_bytes - SHARED_START
        self.shared_size = size
        local = LOCAL_START
        for v in everything:
            if v.space == "local":
                local = align_up(local, v.align)
                b.symbols[v.name] = local
                local += v.size
        key = (id(module), kernel.name)
        globals_ = [v for v in everything if v.space in ("global", "const")]
        if key not in memory.symbols:
            # The module is kept so that its id is not given to another one.
            known = memory.symbols.setdefault((id(module), ""), {"": module})
            for v in globals_:
                if v.name not in known:
                    const = v.space == "const"
                    known[v.name] = memory.reserve(max(1, v.size), const, max(256, v.align))
                    symbols = {**b.symbols, **{k: a for k, a in known.items() if k}}
                    memory._put(known[v.name], initial(v, symbols))
            memory.symbols[key] = known
        b.symbols.update({k: a for k, a in memory.symbols[key].items() if k})
        start = memory.place_parameters(raw)
        for name, offset in offsets.items():
            b.symbols[name] = start + offset
        if args is None:
            for v in kernel.params:
                b.symbols[v.name] = start
        b.glob = Global(memory, self.where)
        stride = align_up(size, 16) + 16
        tracker = None
        if size and (module.races or module.uninitialised_shared):
            tracker = Tracker(
                n // self.padded * stride, granule(kernel), n, self.warps_per_cta,
                module.races, module.uninitialised_shared, self.where,
            )  # fmt: skip
        self.tracker = tracker
        b.shared = Banked(
            "shared", SHARED_START, size, stride, self.cta * stride, self.count, self.where, tracker
        )
        size = local - LOCAL_START
        stride = align_up(size, 16) + 16
        b.local = Banked("local", LOCAL_START, size, stride, np.arange(n) * stride, n, self.where)
        b.generic = Generic(b.glob, b.shared, b.local)

    def specials(self, b, shared_bytes):
        def full(value):
            return np.broadcast_to(np.asarray(value, np.uint32), (self.n,)).copy()

        x, y, _ = self.block
        s = b.special
        tid = np.minimum(self.tid, self.threads - 1)
        s["tid.x"], s["tid.y"], s["tid.z"] = (
            full(tid % x), full(tid // x % y), full(tid // (x * y)),
        )  # fmt: skip
        for axis, each in zip("xyz", range(3)):
            s[f"ntid.{axis}"] = full(self.block[each])
            s[f"nctaid.{axis}"] = full(self.grid[each])
            s[f"ctaid.{axis}"] = full(0)
        lane = self.tid % 32
        s["laneid"] = full(lane)
        s["warpid"] = full(self.tid // 32)
        s["nwarpid"] = full(self.warps_per_cta)
        one = np.uint64(1)
        bit = one << lane.astype(np.uint64)
        ones = np.uint64(0xFFFFFFFF)
        for name, value in (
            ("eq", bit), ("lt", bit - one), ("le", 2 * bit - one),
            ("gt", ones & ~(2 * bit - one)), ("ge", ones & ~(bit - one)),
        ):  # fmt: skip
            s[f"lanemask_{name}"] = full(value & ones)
        s["smid"], s["nsmid"], s["gridid"] = full(0), full(1), full(0)
        s["dynamic_smem_size"] = full(shared_bytes)
        s["total_smem_size"] = full(self.shared_size)
        for name in ("clusterid", "cluster_ctaid"):
            for axis in "xyz":
                s[f"{name}.{axis}"] = full(0)
        for name in ("nclusterid", "cluster_nctaid"):
            for axis in "xyz":
                s[f"{name}.{axis}"] = full(1)
        s["cluster_ctarank"], s["cluster_nctarank"] = full(0), full(1)

    def start(self, first):
        """For the CTAs from `first` on; everything as at the start of a kernel."""
        b, n = self.binder, self.n
        self.first = first
        cta = first + self.cta
        x, y, _ = self.grid
        # In place: the instructions hold these arrays, and converted copies are bound as well.
        b.special["ctaid.x"][...] = cta % x
        b.special["ctaid.y"][...] = cta // x % y
        b.special["ctaid.z"][...] = cta // (x * y)
        for (name, _), value in b.cache.items():
            if isinstance(name, str) and name.startswith("%ctaid"):
                value[...] = b.special[name[1:]]
        for array in b.regs.values():
            array[...] = 0
        for array in self.initialised.values():
            array[...] = False
        b.shared.data[...] = 0xFF
        b.local.data[...] = 0xFF
        b.copies = Copies(n)
        if self.tracker is not None:
            t = self.tracker
            t.__init__(
                t.size, t.granule, n, self.warps_per_cta, t.races, t.uninitialised, self.where
            )
        self.pc = np.zeros(n, np.int64)
        self.run_pc = np.where(self.exists, 0, DONE)
        self.live = self.exists.copy()
        self.waits_warp = np.zeros(n, bool)
        self.barrier = np.full(n, -1, np.int64)  # which one a lane waits at
        self.expected = np.zeros(n, np.int64)
        self.arrived = {}  # (cta, barrier) -> lanes that arrived without waiting
        self.steps = 0

    # Messages.

    def who(self, lane):
        cta = self.first + int(self.cta[lane])
        x, y, _ = self.grid
        a, c, _ = self.block
        t = int(self.tid[lane])
        return (
            f"cta ({cta % x},{cta // x % y},{cta // (x * y)}) "
            f"thread ({t % a},{t // a % c},{t // (a * c)})"
        )

    def where(self, inst, lanes, bad, what, address=None, note=""):
        lane = int(bad if lanes is None else lanes[bad])
        at = "" if address is None else f" {int(address):#x}"
        note = f" ({note})" if note else ""
        raise Fault(
            f"{self.kernel.name}: {what}{at}{note}, {self.who(lane)}, line {inst.line}: {inst.text}"
        )

    def to_shared(self, address, lanes, inst):
        bad = np.flatnonzero((address < SHARED_WINDOW) | (address >= 2 * SHARED_WINDOW))
        if len(bad):
            self.where(inst, lanes, bad[0], "not an address of shared memory:", address[bad[0]])
        return address - SHARED_WINDOW

    # Binding.

    def bind(self, b):
        code = self.kernel.code
        self.kinds, self.functions = [], []
        self.preds, self.members, self.wholes = [], [], []
        self.initialised = {}
        for inst in code:
            kind, function, member, strict = PLAIN, None, None, False
            pred = None
            if inst.pred is not None:
                pred = (b.regs[inst.pred[0]], inst.pred[1])
            try:
                if inst.op == "bra":
                    kind = BRANCH
                elif inst.op == "brx":
                    kind = TABLE
                    function = b.src(inst.args[0], "u32")
                elif inst.op in ("ret", "exit"):
                    kind = EXIT
                elif inst.op in VOIDS and inst.mods[:1] == ["warp"]:
                    kind, member = WARP, b.src(inst.args[0], "u32")
                    function = nothing
                elif inst.op in VOIDS:
                    kind, function = BARRIER, self.bind_barrier(b, inst)
                elif inst.op in _warp.WARP:
                    kind = WARP
                    function, operand, strict = _warp.WARP[inst.op](b, inst)
                    member = None if operand is None else b.src(operand, "u32")
                elif inst.op in ("trap", "brkpt"):
                    function = self.trap(inst)
                elif inst.op in BIND:
                    function = BIND[inst.op](b, inst)
                else:
                    raise Unsupported(inst.op)
            except (Unsupported, KeyError, IndexError, StopIteration, ValueError) as error:
                kind = PLAIN
                function = self.refuse(inst, error)
            if kind == PLAIN and pred is not None:
                function = guarded(function, *pred)
            if self.module.uninitialised_registers:
                function = self.checked(b, inst, kind, function)
            self.kinds.append(kind)
            self.functions.append(function)
            self.preds.append(pred)
            self.members.append(member)
            self.wholes.append(strict)

    def refuse(self, inst, error):
        message = f"line {inst.line}: {inst.text} ({error})"
        self.refused.append(message)

        def run(m):
            if m is True or m.any():
                raise Unsupported(message)

        return run

    def trap(self, inst):
        def run(m):
            lanes = np.flatnonzero(self.live) if m is True else np.flatnonzero(m)
            if len(lanes):
                self.where(inst, lanes, 0, "trap")

        return run

    def checked(self, b, inst, kind, function):
        reads, writes = set(), set()
        if inst.pred is not None:
            reads.add(inst.pred[0])
        stores = inst.op in (
            "st", "red", "bra", "brx", "bar", "barrier", "cp", "stmatrix", "ret", "exit", "trap",
        )  # fmt: skip
        for k, arg in enumerate(inst.args):
            (writes if k == 0 and not stores and arg[0] != "mem" else reads).update(names(arg))
        known = self.initialised
        for name in reads | writes:
            if name not in known:
                known[name] = np.zeros(self.n, bool)
        read = [(name, known[name]) for name in sorted(reads)]
        write = [known[name] for name in writes]
        guard = None if inst.pred is None else (b.regs[inst.pred[0]], inst.pred[1])

        def run(m):
            mask = self.live.copy() if m is True else m
            if guard is not None:
                flags = known[inst.pred[0]]
                bad = np.flatnonzero(mask & ~flags)
                if len(bad):
                    self.where(inst, bad, 0, f"{inst.pred[0]} is read and was not written")
                mask = mask & (guard[0] ^ guard[1])
            for name, flags in read:
                bad = np.flatnonzero(mask & ~flags)
                if len(bad):
                    self.where(inst, bad, 0, f"{name} is read and was not written")
            if callable(function):
                function(m)
            for flags in write:
                flags |= mask

        return run if kind in (PLAIN, WARP) else function

    def bind_barrier(self, b, inst):
        mods = [x for x in inst.mods if x not in ("cta", "aligned")]
        mode = mods[0] if mods else "sync"
        if mode not in ("sync", "arrive", "red"):
            raise Unsupported(".".join(["barrier", *mods]))
        args = list(inst.args)
        result = p = None
        operation = None
        if mode == "red":
            operation = next(x for x in mods if x in ("popc", "and", "or"))
            result = b.dst(args.pop(0), "u32" if operation == "popc" else "pred")
            p = b.predicate(args.pop())
        which = b.src(args[0], "u32")
        count = b.src(args[1], "u32") if len(args) > 1 else None
        simple = mode == "sync" and args[0][0] == "imm" and count is None
        return (mode, which, count, simple, result, p, operation)

    # Running.

    def run(self):
        with np.errstate(all="ignore"):
            self.loop()

    def loop(self):
        kinds, functions = self.kinds, self.functions
        run_pc, n = self.run_pc, self.n
        budget = self.module.max_steps
        steps = 0
        while True:
            pc = int(run_pc.min())
            if pc == DONE:
                if not self.live.any():
                    self.steps = steps
                    return
                self.deadlock()
            m = run_pc == pc
            count = int(np.count_nonzero(m))
            if count == n:
                m, limit = True, DONE
            else:
                limit = int(np.where(m, DONE, run_pc).min())
            while True:
                if pc >= limit:
                    # Where others wait, or beyond: the smallest counter goes on.
                    run_pc[m] = pc
                    break
                kind = kinds[pc]
                steps += 1
                if kind == PLAIN:
                    functions[pc](m)
                    pc += 1
                    continue
                if steps > budget:
                    self.steps = steps
                    raise Fault(f"{self.kernel.name}: more than {budget} instructions")
                self.steps = steps
                if kind == BRANCH:
                    target = self.kernel.code[pc].target
                    pred = self.preds[pc]
                    if pred is None:
                        pc = target
                        continue
                    p, negated = pred
                    taken = ~p if negated else p
                    if m is True:
                        if taken.all():
                            pc = target
                            continue
                        if not taken.any():
                            pc += 1
                            continue
                        run_pc[...] = np.where(taken, target, pc + 1)
                        break
                    taken = taken & m
                    if not taken.any():
                        pc += 1
                        continue
                    rest = m & ~taken
                    if not rest.any():
                        pc = target
                        continue
                    run_pc[taken] = target
                    run_pc[rest] = pc + 1
                    break
                if kind == TABLE:
                    self.table(pc, m)
                    break
                if kind == EXIT:
                    who = slice(None) if m is True else m
                    run_pc[who] = DONE
                    self.live[who] = False
                    self.recheck()
                    break
                if kind == BARRIER:
                    if m is True and self.functions[pc][3]:
                        if self.tracker is not None:
                            self.tracker.all_sync()
                        pc += 1
                        continue
                    self.arrive(pc, m)
                    break
                m = self.together(pc, m)
                if m is None:
                    break
                pc += 1

    def table(self, pc, m):
        index = self.functions[pc]
        targets = np.array(self.kernel.code[pc].targets)
        lanes = np.arange(self.n) if m is True else np.flatnonzero(m)
        at = index[lanes]
        bad = np.flatnonzero(at >= len(targets))
        if len(bad):
            self.where(self.kernel.code[pc], lanes, bad[0], f"branch {at[bad[0]]} of a table")
        self.run_pc[lanes] = targets[at]

    def together(self, pc, m):
        """Runs an instruction of whole warps for those that are complete; their mask, or None."""
        function, member = self.functions[pc], self.members[pc]
        inst = self.kernel.code[pc]
        if member is None:  # activemask
            function(m)
            return m
        strict = self.wholes[pc]
        if m is True and bool((member == 0xFFFFFFFF).all()):
            function(m)
            if self.tracker is not None and orders(inst):
                self.tracker.warp_sync()
            return m
        active = np.ones(self.n, bool) if m is True else m
        waiting = self.waits_warp & (self.pc == pc)
        here = active | waiting

        def mask_of(lanes):
            packed = np.packbits(lanes.reshape(-1, 32), axis=1, bitorder="little")
            return np.repeat(packed.view(np.uint32).reshape(-1), 32)

        bit = np.uint32(1) << (np.arange(self.n) % 32).astype(np.uint32)
        bad = np.flatnonzero(here & ((member & bit) == 0))
        if len(bad):
            self.where(inst, bad, 0, "a thread that is not in its own member mask")
        if strict:
            ended = mask_of(~self.live)
            bad = np.flatnonzero(here & (ended != 0))
            if len(bad):
                self.where(inst, bad, 0, "a warp of which threads ended or are not there")
        need = member & mask_of(self.live)
        ok = here & ((need & ~mask_of(here)) == 0)
        # All that meet must mean the same threads.
        if ok.any():
            w = np.unique(np.flatnonzero(ok) // 32)
            masks = member.reshape(-1, 32)[w]
            who = ok.reshape(-1, 32)[w]
            for row in range(len(w)):
                mine = masks[row][who[row]]
                for each in np.unique(mine):
                    others = ((each >> np.arange(32, dtype=np.uint32)) & 1).astype(bool) & who[row]
                    if (masks[row][others] != each).any():
                        lane = int(w[row]) * 32 + int(np.flatnonzero(others)[0])
                        self.where(inst, None, lane, "threads that meet with unequal member masks")
        late = here & ~ok
        if late.any():
            self.waits_warp |= late
            self.pc[late] = pc
            self.run_pc[late] = DONE
        if not ok.any():
            return None
        self.waits_warp &= ~ok
        function(ok)
        if self.tracker is not None and orders(inst):
            live = mask_of(self.live)
            everyone = ok & ((member & live) == live)
            w = np.flatnonzero(everyone.reshape(-1, 32).any(1))
            if len(w):
                self.tracker.warp_sync(w)
        if not late.any() and not waiting.any():
            return m
        self.run_pc[ok] = pc + 1
        return None

    def arrive(self, pc, m):
        mode, which, count, _, _, _, _ = self.functions[pc]
        lanes = np.arange(self.n) if m is True else np.flatnonzero(m)
        inst = self.kernel.code[pc]
        if count is not None:
            bad = np.flatnonzero((count[lanes] == 0) | (count[lanes] % 32 != 0))
            if len(bad):
                self.where(inst, lanes, bad[0], f"a barrier of {count[lanes[bad[0]]]} threads")
        bad = np.flatnonzero(which[lanes] > 15)
        if len(bad):
            self.where(inst, lanes, bad[0], f"barrier {which[lanes[bad[0]]]}")
        if mode == "arrive":
            for lane in lanes:
                key = (int(self.cta[lane]), int(which[lane]))
                self.arrived.setdefault(key, []).append((int(lane), int(count[lane])))
            self.run_pc[lanes] = pc + 1
        else:
            self.barrier[lanes] = which[lanes]
            self.expected[lanes] = 0 if count is None else count[lanes]
            self.pc[lanes] = pc
            self.run_pc[lanes] = DONE
        self.recheck()

    def recheck(self):
        """Opens the barriers at which all have arrived."""
        waiting = self.barrier >= 0
        if not waiting.any():
            return
        live = np.bincount(self.cta[self.live], minlength=self.count)
        keys = self.cta * 16 + self.barrier
        for key in np.unique(keys[waiting]):
            cta, which = int(key) // 16, int(key) % 16
            lanes = np.flatnonzero(waiting & (keys == key))
            extra = self.arrived.get((cta, which), [])
            expected = np.unique(self.expected[lanes])
            if len(expected) > 1 or any(c != expected[0] for _, c in extra):
                inst = self.kernel.code[self.pc[lanes[0]]]
                self.where(inst, lanes, 0, f"barrier {which} with unequal counts")
            wanted = int(expected[0]) or int(live[cta])
            warps = np.unique(np.concatenate([lanes, [x for x, _ in extra]]).astype(np.int64) // 32)
            # With a count, it is warps that arrive.
            have = len(lanes) + len(extra)
            if expected[0]:
                partial = np.bincount(lanes // 32, minlength=self.n // 32)
                alive = self.live.reshape(-1, 32).sum(1)
                if any(0 < partial[w] < alive[w] for w in np.unique(lanes // 32)):
                    continue
                have = 32 * len(warps)
            if have < wanted:
                continue
            if have > wanted:
                inst = self.kernel.code[self.pc[lanes[0]]]
                self.where(inst, lanes, 0, f"{have} threads at a barrier of {wanted}")
            self.arrived.pop((cta, which), None)
            self.reduce(lanes)
            self.run_pc[lanes] = self.pc[lanes] + 1
            self.barrier[lanes] = -1
            if self.tracker is not None:
                self.tracker.cta_sync(warps)

    def reduce(self, lanes):
        for pc in np.unique(self.pc[lanes]):
            _, _, _, _, result, p, operation = self.functions[pc]
            if result is None:
                continue
            here = lanes[self.pc[lanes] == pc]
            values = p[0][here] ^ p[1]
            f = {"popc": np.count_nonzero, "and": np.all, "or": np.any}[operation]
            result[here] = f(values)

    def deadlock(self):
        places = {}
        for lane in np.flatnonzero(self.live):
            key = (int(self.cta[lane]), int(self.pc[lane]))
            places.setdefault(key, []).append(int(lane))
        lines = [f"{self.kernel.name}: deadlock"]
        for (_, pc), lanes in list(places.items())[:16]:
            inst = self.kernel.code[pc]
            some = ", ".join(str(int(self.tid[x])) for x in lanes[:8])
            more = f" and {len(lanes) - 8} more" if len(lanes) > 8 else ""
            lines.append(
                f"  {self.who(lanes[0]).split(' thread')[0]} threads {some}{more} at line "
                f"{inst.line}: {inst.text}"
            )
        raise Fault("\n".join(lines))


def nothing(m):
    return None


def names(arg):
    if arg[0] == "reg":
        return {arg[1]}
    if arg[0] in ("vec",):
        return set().union(*(names(a) for a in arg[1]))
    if arg[0] == "pair":
        return names(arg[1]) | names(arg[2])
    if arg[0] in ("mem", "not"):
        return names(arg[1])
    return set()


def orders(inst):
    """Whether it orders the memory accesses of the warp's threads."""
    return inst.op in ("bar", "barrier", "shfl", "vote")


def guarded(function, p, negated):
    def run(m):
        mask = ~p if negated else p.copy()
        if m is not True:
            mask &= m
        if mask.any():
            function(mask)

    return run


def granule(kernel):
    """Bytes of the smallest access to what may be shared memory, 16 at most."""
    size = 16
    for inst in kernel.code:
        if inst.op in ("ld", "st", "atom", "red", "cp") and inst.types:
            if any(m in ("global", "param", "const", "local") for m in inst.mods):
                continue
            width = SIZES[inst.types[-1]]
            vector = next((int(m[1]) for m in inst.mods if m in ("v2", "v4")), 1)
            size = min(size, width * vector)
        elif inst.op == "cp" and inst.mods[:1] == ["async"] and len(inst.args) > 2:
            size = min(size, inst.args[2][1])
    return size


def initial(variable, symbols):
    raw = np.zeros(max(1, variable.size), np.uint8)
    if not variable.values:
        return raw
    dtype = np.dtype(DTYPES.get(variable.type, np.uint8))
    width = dtype.itemsize
    for k, value in enumerate(variable.values):
        if isinstance(value, tuple) and value[0] == "symbol":
            _, name, offset, generic = value
            address = symbols[name] + offset
            if generic and address < BASE:
                address += SHARED_WINDOW if address >= SHARED_START else LOCAL_WINDOW
            bits = address
        elif isinstance(value, tuple):
            kind, bits = value
            if kind == "f64" and width == 4:
                bits = int(np.float32(np.array([bits], np.uint64).view(np.float64)[0]).view("u4"))
        elif dtype.kind == "f":
            bits = int(np.array([value], dtype).view(f"u{width}")[0])
        else:
            bits = value & ((1 << (8 * width)) - 1)
        raw[k * width : (k + 1) * width] = np.frombuffer(bits.to_bytes(width, "little"), np.uint8)
    return raw
