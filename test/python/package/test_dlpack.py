"""Arrays of libraries that only speak DLPack."""

import numpy as np
import pisa
import pytest
from oracle import normal


class Foreign:
    """An array that shows nothing but DLPack."""

    def __init__(self, array):
        self._array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class Namespaced(Foreign):
    def __array_namespace__(self, api_version=None):
        class Namespace:
            asarray = staticmethod(Foreign)

        return Namespace


def test_foreign_arrays():
    x = [normal(s, 1, 80, 2, 16) for s in range(3)]
    out = pisa.attention(*map(Foreign, x), topk=4)
    assert isinstance(out, np.ndarray) and (out == pisa.attention(*x, topk=4)).all()


def test_results_go_back_to_their_library():
    x = [normal(s, 1, 80, 2, 16) for s in range(3)]
    out, lse = pisa.attention(*map(Namespaced, x), topk=4, return_lse=True)
    assert isinstance(out, Foreign) and isinstance(lse, Foreign)


def test_exporters_that_fail():
    class Broken:
        shape = (1, 1, 1, 16)

        def __dlpack__(self, **options):
            raise BufferError("not today")

    with pytest.raises(TypeError, match="k cannot be used through DLPack: not today"):
        x = normal(0, 1, 1, 1, 16)
        pisa.attention(x, Broken(), x)


def test_bfloat16_of_numpy():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = [normal(s, 1, 80, 2, 16).astype(ml_dtypes.bfloat16) for s in range(3)]
    out = pisa.attention(*x, topk=4)
    assert out.dtype == ml_dtypes.bfloat16
    wide = pisa.attention(*(a.astype(np.float32) for a in x), topk=4)
    assert np.abs(out.astype(np.float32) - wide).max() < 0.05
