"""Where loads and stores end up, and what is checked on the way."""

import numpy as np

from .memory import BASE, LOCAL_WINDOW, SHARED_WINDOW


def views(data):
    return {1: data, 2: data.view(np.uint16), 4: data.view(np.uint32), 8: data.view(np.uint64)}


class Global:
    name = "global"
    tracker = None

    def __init__(self, memory, where):
        self.memory = memory
        self.views = views(memory._data)
        self.state = memory._state
        self.size = len(memory._data)
        self.where = where

    def locate(self, address, lanes, width, write, inst, kind="plain"):
        """Byte offsets of the accesses of `lanes` (all, if None) to `address`."""
        at = address - BASE
        if int(np.bitwise_or.reduce(at)) & (width - 1):
            bad = np.flatnonzero(at & (width - 1))[0]
            self.where(inst, lanes, bad, f"misaligned {width}-byte access to", address[bad])
        if int(at.view(np.uint64).max()) >= self.size - 64:
            bad = int(at.view(np.uint64).argmax())
            self.fault(inst, lanes, bad, width, write, address[bad])
        if write:
            ok = self.state[at] == 1
            if width > 1:
                ok &= self.state[at + (width - 1)] == 1
        else:
            ok = self.state[at] != 0
            if width > 1:
                ok &= self.state[at + (width - 1)] != 0
        if not ok.all():
            bad = int(np.flatnonzero(~ok)[0])
            self.fault(inst, lanes, bad, width, write, address[bad])
        return at

    def fault(self, inst, lanes, bad, width, write, address):
        what = "write" if write else "read"
        state = 0
        if 0 <= address - BASE < self.size:
            state = self.state[address - BASE]
        why = "of read-only memory at" if write and state == 2 else "out of bounds at"
        note = self.memory.describe(int(address))
        self.where(inst, lanes, bad, f"{width}-byte {what} {why}", address, note)


class Banked:
    """Shared memory of each CTA, or local memory of each thread."""

    def __init__(self, name, start, size, stride, bases, count, where, tracker=None):
        self.name, self.start, self.size = name, start, size
        self.bases = bases - start
        self.data = np.full(max(1, count) * stride, 0xFF, np.uint8)
        self.views = views(self.data)
        self.where = where
        self.tracker = tracker

    def locate(self, address, lanes, width, write, inst, kind="plain"):
        within = address - self.start
        if int(np.bitwise_or.reduce(address)) & (width - 1):
            bad = np.flatnonzero(address & (width - 1))[0]
            what = f"misaligned {width}-byte access to {self.name}"
            self.where(inst, lanes, bad, what, address[bad])
        if self.size < width or int(within.view(np.uint64).max()) > self.size - width:
            bad = int(within.view(np.uint64).argmax())
            what = f"{width}-byte {'write' if write else 'read'} out of bounds of {self.name} at"
            note = f"{self.name} memory is [{self.start:#x}, +{self.size})"
            self.where(inst, lanes, bad, what, address[bad], note)
        at = address + (self.bases if lanes is None else self.bases[lanes])
        if self.tracker is not None and kind != "none":
            self.tracker.access(at, lanes, width, write, inst, kind, address)
        return at


class Tracker:
    """Races on shared memory, and reads of what nobody wrote.

    What happened before what is known per warp: ordered[w, v] is the last clock of warp v (within
    the CTA of w) whose accesses come before what w does now.
    """

    def __init__(self, size, granule, lanes, warps_per_cta, races, uninitialised, where):
        self.size = size
        count = -(-size // granule)
        self.granule = granule
        self.shift = granule.bit_length() - 1
        self.races, self.uninitialised = races, uninitialised
        self.where = where
        self.written = np.zeros(count, bool)
        self.pending = np.zeros(count, np.int32)  # lane + 1 of a copy not yet waited for
        warps = lanes // 32
        self.lane = np.arange(lanes, dtype=np.int32)
        self.warp = self.lane // 32
        self.local = self.warp % warps_per_cta
        self.warps_per_cta = warps_per_cta
        self.clock = np.ones(warps, np.int32)
        self.ordered = np.zeros((warps, warps_per_cta), np.int32)
        self.slot = np.arange(warps) % warps_per_cta
        none = np.full(count, -1, np.int32)
        zero = np.zeros(count, np.int32)
        self.w_lane, self.w_clock, self.w_strong = none, zero, np.zeros(count, bool)
        self.r_lane, self.r_clock, self.r_strong = none.copy(), zero.copy(), np.zeros(count, bool)
        self.o_lane, self.o_clock, self.o_strong = none.copy(), zero.copy(), np.zeros(count, bool)
        self.r_many = zero.copy()

    def warp_sync(self, warps=slice(None)):
        index = np.arange(len(self.clock))[warps]
        self.ordered[index, self.slot[index]] = self.clock[index]
        self.clock[index] += 1

    def cta_sync(self, warps):
        """`warps` (of one CTA) meet."""
        joined = self.ordered[warps].max(0)
        joined[self.slot[warps]] = self.clock[warps]
        self.ordered[warps] = joined
        self.clock[warps] += 1

    def all_sync(self):
        now = self.clock.reshape(-1, self.warps_per_cta)
        self.ordered[...] = np.repeat(now, self.warps_per_cta, 0)
        self.clock += 1

    def access(self, at, lanes, width, write, inst, kind, address):
        lane = self.lane if lanes is None else self.lane[lanes]
        index = at >> self.shift
        if width > self.granule:
            n = width // self.granule
            index = (index[:, None] + np.arange(n)).reshape(-1)
            lane = np.repeat(lane, n)
        else:
            n = 1
        if self.uninitialised:
            if write:
                if kind != "issue":
                    self.written[index] = True
            else:
                ok = self.written[index]
                if not ok.all():
                    bad = int(np.flatnonzero(~ok)[0]) // n
                    what = "read of uninitialised shared memory at"
                    self.where(inst, lanes, bad, what, address[bad])
        if not self.races:
            return
        if kind == "complete":
            self.pending[index] = 0
        waiting = self.pending[index]
        if waiting.any():
            bad = int(np.flatnonzero(waiting)[0])
            self.race(inst, lanes, bad, n, address, "an asynchronous copy", waiting[bad] - 1)
        strong = kind == "strong"
        warp = self.warp[lane]
        now = self.clock[warp]
        # The last write.
        other = self.w_lane[index]
        bad = (other >= 0) & (other != lane)
        if bad.any():
            bad &= self.w_clock[index] > self.ordered[warp, self.local[other]]
            if strong:
                bad &= ~self.w_strong[index]
            if bad.any():
                self.report(inst, lanes, bad, n, address, "the write", other)
        if write:
            for other, clock, was in (
                (self.r_lane, self.r_clock, self.r_strong),
                (self.o_lane, self.o_clock, self.o_strong),
            ):
                other = other[index]
                bad = (other >= 0) & (other != lane)
                if bad.any():
                    bad &= clock[index] > self.ordered[warp, self.local[other]]
                    if strong:
                        bad &= ~was[index]
                    if bad.any():
                        self.report(inst, lanes, bad, n, address, "the read", other)
            if not strong:
                other = self.r_lane[index]
                bad = (self.r_many[index] == now) & (other >= 0) & (self.warp[other] == warp)
                if bad.any():
                    self.report(inst, lanes, bad, n, address, "the reads next to that", other)
            if kind == "issue":
                self.pending[index] = lane + 1
                twice = self.pending[index] - 1 != lane
                if twice.any():
                    other = self.pending[index] - 1
                    self.report(inst, lanes, twice, n, address, "the copy", other)
                return
            self.w_lane[index] = lane
            self.w_clock[index] = now
            self.w_strong[index] = strong
            if not strong:
                other = self.w_lane[index]
                twice = other != lane
                if twice.any():
                    self.report(inst, lanes, twice, n, address, "the write", other)
            return
        old = self.r_lane[index]
        moved = (old >= 0) & (old != lane)
        if moved.any():
            same = self.warp[old] == warp
            elsewhere = moved & ~same
            if elsewhere.any():
                i, o = index[elsewhere], old[elsewhere]
                self.o_clock[i] = self.r_clock[i]
                self.o_strong[i] = self.r_strong[i]
                self.o_lane[i] = o
                self.r_many[i] = 0
            many = moved & same & (self.r_clock[index] == now)
            if many.any():
                self.r_many[index[many]] = now[many]
        self.r_lane[index] = lane
        self.r_clock[index] = now
        self.r_strong[index] = strong
        last = self.r_lane[index]
        twice = last != lane
        if twice.any():
            same = self.warp[last] == warp
            many = twice & same
            self.r_many[index[many]] = now[many]
            apart = twice & ~same
            if apart.any():
                i = index[apart]
                self.o_lane[i] = lane[apart]
                self.o_clock[i] = now[apart]
                self.o_strong[i] = strong

    def report(self, inst, lanes, bad, n, address, what, other):
        first = int(np.flatnonzero(bad)[0])
        self.race(inst, lanes, first, n, address, what, other[first])

    def race(self, inst, lanes, bad, n, address, what, other):
        note = f"against {what} of thread {int(other) % (self.warps_per_cta * 32)}"
        at = int(address[bad // n]) + (bad % n) * self.granule
        self.where(inst, lanes, bad // n, "race at shared", at, note)


class Generic:
    """Splits the accesses by window."""

    name = "generic"

    def __init__(self, glob, shared, local):
        self.glob, self.shared, self.local = glob, shared, local

    def parts(self, address, lanes):
        """(space, address, lanes, positions or None for all)"""
        high = (address >= LOCAL_WINDOW) & (address < 2 * SHARED_WINDOW)
        if not high.any():
            return [(self.glob, address, lanes, None)]
        shared = address >= SHARED_WINDOW
        out = []
        for space, mask, base in (
            (self.glob, ~high, 0),
            (self.shared, high & shared, SHARED_WINDOW),
            (self.local, high & ~shared, LOCAL_WINDOW),
        ):
            at = np.flatnonzero(mask)
            if len(at) == len(address):
                return [(space, address - base, lanes, None)]
            if len(at):
                out.append((space, address[at] - base, at if lanes is None else lanes[at], at))
        return out
