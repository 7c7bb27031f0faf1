"""How many threads CPU kernels use."""

from ._library import check, library
from ._params import integer


def set_num_threads(count: int) -> None:
    """Threads of CPU calls from now on, in the whole process; 0 means one for each core.

    Raises TypeError or ValueError if `count` is no int in [0, 4096].
    """
    number = integer("count", count)
    if not 0 <= number <= 4096:
        raise ValueError(f"expected count to be in [0, 4096], but got {number}")
    check(library().pisaSetNumThreads(number))


def get_num_threads() -> int:
    """Threads of CPU calls, the calling one among them."""
    return int(library().pisaGetNumThreads())
