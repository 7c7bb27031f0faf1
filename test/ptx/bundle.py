"""Runs the functions of a bundle on ptxsim: what the runtime does on a GPU."""

import json
import struct

import numpy as np
import ptxsim

COMPARE = {
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y,
    "slt": lambda x, y: x < y, "sle": lambda x, y: x <= y,
    "sgt": lambda x, y: x > y, "sge": lambda x, y: x >= y,
}  # fmt: skip


def towards_zero(x, y):
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


BINARY = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "divs": towards_zero, "divu": lambda x, y: x // y,
    "floordivs": lambda x, y: x // y, "ceildivs": lambda x, y: -(-x // y),
    "rems": lambda x, y: x - towards_zero(x, y) * y, "remu": lambda x, y: x % y,
    "mins": min, "maxs": max,
    "and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y,
}  # fmt: skip


class CheckFailed(Exception):
    """Of a list with an entry twice: (batch, kv head, query block, entry)."""


class Bundle:
    def __init__(self, text):
        bundle = json.loads(text)
        self.functions = {f["name"]: f for f in bundle["functions"]}
        self.ptx = bundle["ptx"]
        # Scores of padding are read, and replaced by what comes last.
        self.module = ptxsim.Module(self.ptx, uninitialised_shared=False)

    def run(self, name, arguments):
        """Arrays and floats; arrays are written in place."""
        function = self.functions[name]
        memory = ptxsim.Memory()
        pointers = [memory.alloc(a) if isinstance(a, np.ndarray) else None for a in arguments]
        floats = {}
        program = function["program"]
        registers = [None] * len(program)
        at = 0
        while at < len(program):
            i, number = program[at], at
            at += 1
            op = i["op"]
            operands = [registers[r] for r in i.get("operands", [])]
            value = None
            if op == "constant":
                value = i["value"]
            elif op == "pointer":
                value = pointers[i["argument"]]
            elif op == "dim":
                value = arguments[i["argument"]].shape[i.get("dimension", 0)]
            elif op == "stride":
                array = arguments[i["argument"]]
                value = array.strides[i.get("dimension", 0)] // array.itemsize
            elif op == "scalar":
                value = arguments[i["argument"]]
                if isinstance(value, float):
                    floats[number] = value
                    value = struct.unpack("<I", struct.pack("<f", value))[0]
            elif op == "compare":
                value = int(COMPARE[i["predicate"]](*operands))
            elif op == "select":
                value = operands[1] if operands[0] else operands[2]
            elif op == "scratch":
                value = memory.alloc(np.full(max(operands[0], 1), 255, np.uint8))
            elif op == "launch":
                grid = tuple(registers[r] for r in i["grid"])
                kernel = function["kernels"][i["kernel"]]
                if min(grid) > 0:
                    self.module.launch(
                        kernel["name"],
                        grid=grid,
                        block=kernel["threads"],
                        shared_bytes=kernel["shared_bytes"],
                        args=[
                            floats.get(p["register"], registers[p["register"]])
                            for p in i["parameters"]
                        ],
                        memory=memory,
                    )
            elif op == "check":
                status = int(memory.read(operands[0], np.uint64, (1,))[0])
                if status != 2**64 - 1:
                    row, block = divmod(status, 2**31)
                    raise CheckFailed((*np.unravel_index(row, (2**33, *operands[1:])), block))
            elif op == "for":
                value = operands[0]
                if value >= operands[1]:
                    at = i["end"] + 1
            elif op == "end":
                loop = i["operands"][0]
                _, upper, step = (registers[r] for r in program[loop]["operands"])
                if operands[0] + step < upper:
                    registers[loop] += step
                    at = loop + 1
                continue
            else:
                value = BINARY[op](*operands)
            registers[number] = value
        for pointer, array in zip(pointers, arguments, strict=True):
            if pointer is not None:
                array[...] = memory.read(pointer, array.dtype, array.shape)
