"""Global memory: one flat address space, with guard zones between the allocations."""

import numpy as np

BASE = 1 << 33
GUARD = 256
# Where shared and local memory are in the generic address space, and where both begin in their own.
LOCAL_WINDOW = 0x7E0000000000
SHARED_WINDOW = 0x7F0000000000
SHARED_START = 1024
LOCAL_START = 256

POISON = 0xFF


class Fault(Exception):
    """What a kernel must not do."""


class Unsupported(Exception):
    """What this executor does not know."""


class Memory:
    """Allocations live at BASE and up; whatever lies between them faults."""

    def __init__(self, capacity=1 << 20):
        self._data = np.full(capacity, POISON, np.uint8)
        self._state = np.zeros(capacity, np.uint8)  # 0: guard, 1: writable, 2: read only
        self._top = GUARD
        self._sizes = {}
        self.symbols = {}  # module -> {symbol: address}
        self._parameters = None

    def reserve(self, size, readonly=False, align=256):
        """Address of `size` poisoned bytes."""
        start = -(-self._top // align) * align
        end = start + size
        need = end + GUARD + 64
        if need > len(self._data):
            grown = max(2 * len(self._data), -(-need // 4096) * 4096)
            data = np.full(grown, POISON, np.uint8)
            state = np.zeros(grown, np.uint8)
            data[: self._top] = self._data[: self._top]
            state[: self._top] = self._state[: self._top]
            self._data, self._state = data, state
        self._state[start:end] = 2 if readonly else 1
        self._top = end + GUARD
        self._sizes[BASE + start] = size
        return BASE + start

    def alloc(self, array, readonly=False, align=256):
        """Copies `array` in."""
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        address = self.reserve(raw.size, readonly, align)
        self._put(address, raw)
        return address

    def _put(self, address, raw):
        self._data[address - BASE : address - BASE + raw.size] = raw

    def write(self, address, array):
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._check(address, raw.size)
        self._put(address, raw)

    def read(self, address, dtype, shape):
        shape = (shape,) if np.isscalar(shape) else tuple(shape)
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        self._check(address, size)
        start = address - BASE
        return self._data[start : start + size].copy().view(dtype).reshape(shape)

    def _check(self, address, size):
        start = address - BASE
        if start < 0 or start + size > len(self._data):
            raise Fault(f"[{address:#x}, +{size}) is not allocated")
        if size and not self._state[start : start + size].all():
            raise Fault(f"[{address:#x}, +{size}) is not allocated")

    def free(self, address):
        """Later accesses fault; the addresses are not given out again."""
        size = self._sizes.pop(address)
        self._state[address - BASE : address - BASE + size] = 0
        self._data[address - BASE : address - BASE + size] = POISON

    def place_parameters(self, raw):
        """Address of the kernel's parameters; the same at every launch."""
        if self._parameters is None:
            self._parameters = self.reserve(4096 + 64, readonly=True)
        start = self._parameters - BASE
        self._state[start : start + 4096] = 0
        self._state[start : start + raw.size] = 2
        self._data[start : start + raw.size] = raw
        return self._parameters

    def describe(self, address):
        """The allocation next to an address, for messages."""
        best = None
        for start, size in self._sizes.items():
            distance = start - address if address < start else address - (start + size)
            if best is None or distance < best[0]:
                best = (distance, start, size)
        if best is None:
            return "nothing is allocated"
        return f"nearest allocation [{best[1]:#x}, +{best[2]})"
