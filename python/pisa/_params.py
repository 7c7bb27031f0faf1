"""The parameters of the method, as they come from the caller."""

from dataclasses import dataclass, fields

from ._arrays import dtype_name


@dataclass(frozen=True)
class Params:
    """`#pisa.params`: docs/Spec.md "Names" has what each one means. Ranges are checked by the
    compiler, so that there is one home for them; None is absent."""

    topk: int = 16
    block_size: int = 64
    beam: int | None = None
    rerank: int | None = None
    leaf_atoms: int = 4
    fanout: int = 2
    query_block: int = 1
    sink_blocks: int = 1
    local_blocks: int = 2
    summary_dtype: str | None = None
    causal: bool = True


NAMES = tuple(field.name for field in fields(Params))
_OPTIONAL = ("beam", "rerank")


def integer(name: str, value: object, optional: bool = False) -> int:
    """`value` as an int that fits in int64, -1 for None where that is allowed.

    Raises TypeError or ValueError with the argument's name.
    """
    if value is None and optional:
        return -1
    # Booleans are ints in Python, but never meant here. NumPy's integers have __index__.
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        kind = "an int or None" if optional else "an int"
        raise TypeError(f"expected {name} to be {kind}, but got {value!r}")
    number = int(value)
    # -1 stands for absence on the way to the compiler, whose ranges all begin at 0 or above.
    if (optional and number < 0) or abs(number) >= 1 << 62:
        raise ValueError(f"expected {name} to be in its range (docs/Spec.md), but got {number}")
    return number


def boolean(name: str, value: object) -> bool:
    """`value` as a bool; TypeError with the argument's name if it is none."""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(f"expected {name} to be True or False, but got {value!r}")


def make_params(**given: object) -> Params:
    """Params with their types checked."""
    values: dict[str, object] = {}
    for name, value in given.items():
        if name == "causal":
            values[name] = boolean(name, value)
        elif name == "summary_dtype":
            values[name] = None if value is None else dtype_name(name, value)
        elif name in _OPTIONAL:
            values[name] = None if value is None else integer(name, value, optional=True)
        else:
            values[name] = integer(name, value)
    return Params(**values)  # type: ignore[arg-type]
