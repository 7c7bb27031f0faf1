"""Float formats and roundings."""

import numpy as np

F32, F64 = np.float32, np.float64


def bf16_to_f32(bits):
    return (bits.astype(np.uint32) << np.uint32(16)).view(F32)


def f32_to_bf16(values, rounding="rn"):
    bits = np.ascontiguousarray(values, F32).view(np.uint32)
    if rounding == "rz":
        out = bits >> np.uint32(16)
    else:
        out = (bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) >> np.uint32(
            16
        )
        if rounding == "rna":
            out = (bits + np.uint32(0x8000)) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint32(0x7FFF), out).astype(np.uint16)


def f16_to_f32(bits):
    return bits.view(np.float16).astype(F32)


def to_f16(values, rounding="rn"):
    out = values.astype(np.float16)
    if rounding == "rz":
        out = directed(values, out, "rz", np.float16)
    return np.where(np.isnan(values), np.uint16(0x7FFF), out.view(np.uint16))


def directed(exact, rounded, mode, dtype):
    """`rounded` (to nearest) moved to the neighbour that `mode` asks for."""
    back = rounded.astype(F64)
    exact = exact.astype(F64)
    if mode == "rm":
        return np.where(back > exact, np.nextafter(rounded, dtype(-np.inf)), rounded)
    if mode == "rp":
        return np.where(back < exact, np.nextafter(rounded, dtype(np.inf)), rounded)
    if mode == "rz":
        return np.where(np.abs(back) > np.abs(exact), np.nextafter(rounded, dtype(0)), rounded)
    return rounded


def widen(bits, kind):
    """16-bit patterns to float32."""
    return bf16_to_f32(bits) if kind.startswith("bf16") else f16_to_f32(bits)


def narrow(values, kind, rounding="rn"):
    """Float32 or float64 to 16-bit patterns."""
    if kind.startswith("bf16"):
        return f32_to_bf16(values.astype(F32), rounding)
    return to_f16(values, rounding)


def flush(x):
    """Subnormal float32 to zero of the same sign."""
    return np.where(np.abs(x) < F32(1.17549435e-38), np.copysign(F32(0), x), x)


def tf32(bits):
    return (bits & np.uint32(0xFFFFE000)).view(F32)


def minimum(a, b):
    """A NaN loses, and -0 < +0."""
    out = np.fmin(a, b)
    both = (a == 0) & (b == 0)
    return np.where(both, np.where(np.signbit(a), a, b), out) if both.any() else out


def maximum(a, b):
    out = np.fmax(a, b)
    both = (a == 0) & (b == 0)
    return np.where(both, np.where(np.signbit(a), b, a), out) if both.any() else out


def minimum_nan(a, b):
    return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), minimum(a, b))


def maximum_nan(a, b):
    return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), maximum(a, b))
