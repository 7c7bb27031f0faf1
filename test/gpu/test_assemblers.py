"""The same kernels by ptxas and by the driver's compiler."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from common import SMALL, attention, check_attention, check_selection, make  # noqa: E402

CALL = """
import sys
import torch
import pisa

q, k, v, options, target = torch.load(sys.argv[1])
q, k, v = (x.cuda() for x in (q, k, v))
out = pisa.attention(q, k, v, return_lse=True, return_indices=True, **options)
torch.save([x.cpu() for x in out], target)
"""


def test_the_drivers_compiler_gives_right_results(cuda, dtype, tmp_path):
    """Without ptxas, and without kernels that it made earlier."""
    q, k, v = make(600, device=cuda, dtype=dtype)
    given, target = tmp_path / "given.pt", tmp_path / "results.pt"
    torch.save([*(x.cpu().contiguous() for x in (q, k, v)), SMALL, str(target)], given)
    subprocess.run(
        [sys.executable, "-c", CALL, str(given)], check=True,
        env={**os.environ, "PISA_PTXAS": str(tmp_path / "none"), "PISA_CACHE_DIR": "",
             "CUDA_CACHE_DISABLE": "1"},
    )  # fmt: skip
    out, lse, indices = torch.load(target)
    check_selection(indices, q, k, **SMALL)
    check_attention(out, lse, q, k, v, indices, block_size=16)
    # Both compilers keep to the order of operations that the PTX has.
    ours = [x.cpu() for x in attention(q, k, v, **SMALL)]
    other = (indices != ours[2]).any(-1).any(1)[0]
    assert other.sum() <= 1
    assert (out.double() - ours[0].double())[:, ~other].abs().max() <= 0.02
