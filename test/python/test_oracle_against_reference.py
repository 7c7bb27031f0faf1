"""The float64 oracle of pisa-runner against the numpy loop of reference.py.

The two were written apart from each other; they must select the same blocks on
random data, where no scores tie. PISA_RUNNER names the runner.
"""

import os
import subprocess

import numpy as np
import pytest

import reference

RUNNER = os.environ.get("PISA_RUNNER")

pytestmark = pytest.mark.skipif(not RUNNER, reason="PISA_RUNNER is not set")


def draw_case(seed):
    """Parameters of one problem; small leaves, so that the trees are deep."""
    rng = np.random.default_rng(seed)
    pick = lambda *values: values[rng.integers(len(values))]
    case = {"C": pick(4, 8, 16, 64), "g": pick(2, 3, 4), "K": pick(3, 4, 6)}
    blocks = int(rng.integers(2, 24 if case["C"] < 64 else 12))
    case["T"] = max(1, blocks * case["C"] + pick(0, 1, -1, int(rng.integers(case["C"]))))
    case["G"] = pick(1, 2, 4)
    case["D"] = pick(8, 16, 40)
    case["A"] = pick(1, 2, 4)
    case["W"] = pick(None, case["K"], case["K"] + 2, 2 * case["K"])
    largest = case["g"] * (case["W"] or case["K"])
    case["R"] = pick(None, 0, case["K"], min(case["K"] + 2, largest), largest)
    case["dtype"] = pick(np.float32, np.float64)
    return case, rng


def run_oracle(case, q, k, directory):
    """q [G, T, D] and k [T, D] of one kv head -> indices [T, K]."""
    np.save(directory / "q.npy", q[None])
    np.save(directory / "k.npy", k[None, None])
    command = [
        RUNNER,
        "--op=route",
        "--target=reference",
        f"--inputs=q={directory / 'q.npy'},k={directory / 'k.npy'}",
        f"--block-size={case['C']}",
        f"--fanout={case['g']}",
        f"--topk={case['K']}",
        f"--leaf-atoms={case['A']}",
        "--summary-dtype=f32",
        f"--output-dir={directory}",
    ]
    if case["W"] is not None:
        command.append(f"--beam={case['W']}")
    if case["R"] is not None:
        command.append(f"--rerank={case['R']}")
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return np.load(directory / "indices.npy")


@pytest.mark.parametrize("seed", range(40))
def test_same_blocks(seed, tmp_path):
    case, rng = draw_case(seed)
    heads = rng.integers(1, 3)
    for _ in range(heads):  # kv heads are independent: one call each.
        q = rng.standard_normal((case["G"], case["T"], case["D"])).astype(case["dtype"])
        k = rng.standard_normal((case["T"], case["D"])).astype(case["dtype"])
        indices = run_oracle(case, q, k, tmp_path)
        assert indices.dtype == np.int32
        assert indices.shape == (1, 1, case["T"], case["K"])

        wide = k.astype(np.float64)
        build = lambda keys: reference.build(keys, case["C"], case["g"], case["A"])
        whole = build(wide)
        for t in range(case["T"]):
            # No key after a query changes its blocks: now and then, leave them out.
            prefix = t % 37 == 0
            keys = wide[: t + 1] if prefix else wide
            blocks = reference.select(
                q[:, t].astype(np.float64),
                t,
                keys,
                build(keys) if prefix else whole,
                K=case["K"],
                C=case["C"],
                g=case["g"],
                W=case["W"],
                R=case["R"],
            )
            padded = blocks + [-1] * (case["K"] - len(blocks))
            assert indices[0, 0, t].tolist() == padded, f"query {t} of {case}"
