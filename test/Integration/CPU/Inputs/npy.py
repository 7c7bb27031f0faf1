"""Writes a .npy file with the standard library alone.

usage: npy.py FILE DTYPE SHAPE VALUES...

DTYPE is <f4, <f2, <f8, <i4, <i8 or <V2 (bfloat16); SHAPE is like 1x2x3. VALUES are
repeated to fill the shape; random:SEED stands for normal random ones.
"""

import random
import struct
import sys

FORMATS = {"<f4": "<f", "<f2": "<e", "<f8": "<d", "<i4": "<i", "<i8": "<q"}


def pack(dtype, value):
    if dtype == "<V2":
        # The upper half of a float32, rounded to nearest even.
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    return struct.pack(FORMATS[dtype], int(value) if dtype[1] == "i" else value)


def main(path, dtype, shape_text, *texts):
    shape = tuple(int(size) for size in shape_text.split("x"))
    count = 1
    for size in shape:
        count *= size
    if texts[0].startswith("random:"):
        source = random.Random(int(texts[0].split(":")[1]))
        values = [source.gauss(0, 1) for _ in range(count)]
    else:
        values = [float(texts[i % len(texts)]) for i in range(count)]
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)))
        file.write(header.encode())
        file.write(b"".join(pack(dtype, value) for value in values))


main(*sys.argv[1:])
