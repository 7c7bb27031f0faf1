"""pisa-runner's CPU code against numpy, through .npy files.

Nothing here comes from the oracle: attention and summaries are written again from
docs/Spec.md, in float64, or bit for bit where the specification fixes the order of
float32 additions. PISA_RUNNER names the runner.
"""

import os
import subprocess

import numpy as np
import pytest

import reference

RUNNER = os.environ.get("PISA_RUNNER")

pytestmark = pytest.mark.skipif(not RUNNER, reason="PISA_RUNNER is not set")

# Half of the distance between neighbours at 1.
EPS = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}


def to_bf16(values):
    """float32 rounded to nearest even, as .npy files hold bfloat16."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return bits.astype(np.uint16).view("<V2")


def encode(values, dtype):
    """Values as an array of the file's type."""
    if dtype == "bf16":
        return to_bf16(values)
    return np.asarray(values, {"f32": np.float32, "f16": np.float16}[dtype])


def decode(array, dtype=np.float64):
    """The values of a file's array; float32 holds all of them exactly."""
    if array.dtype == np.dtype("V2"):
        bits = np.ascontiguousarray(array).view(np.uint16).astype(np.uint32) << 16
        return bits.view(np.float32).astype(dtype)
    return array.astype(dtype)


def run(directory, *options, status=0, **inputs):
    """Runs the runner on the inputs; returns its outputs by name."""
    names = []
    for name, array in inputs.items():
        np.save(directory / f"{name}.npy", array)
        names.append(f"{name}={directory / name}.npy")
    out = directory / "out"
    command = [RUNNER, *options, f"--output-dir={out}"]
    if names:
        command.append("--inputs=" + ",".join(names))
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == status, result.stdout + result.stderr
    return {file.stem: np.load(file) for file in out.glob("*.npy")}


# ---------------------------------------------------------------------------
# Attention
# ---------------------------------------------------------------------------


def attend(q, k, v, indices, k_len, q_start, block, causal, scale):
    """Section 3 of docs/Spec.md in float64: out, lse and the keys each row sees."""
    batch, heads, queries, _ = q.shape
    group = heads // k.shape[1]
    out = np.zeros((batch, heads, queries, v.shape[3]))
    lse = np.full((batch, heads, queries), -np.inf)
    largest = np.zeros((batch, heads, queries))
    for b, h, i in np.ndindex(batch, heads, queries):
        position = q_start[b] + i
        keys = [
            t
            for leaf in indices[b, h // group, i].tolist()
            if leaf >= 0
            for t in range(leaf * block, min((leaf + 1) * block, k_len[b]))
            if not causal or t <= position
        ]
        if not keys:
            continue
        logits = k[b, h // group, keys] @ q[b, h, i] * scale
        lse[b, h, i] = logits.max() + np.log(np.exp(logits - logits.max()).sum())
        values = v[b, h // group, keys]
        out[b, h, i] = np.exp(logits - lse[b, h, i]) @ values
        largest[b, h, i] = np.abs(values).max()
    return out, lse, largest


def draw_lists(rng, shape, leaves):
    """Distinct blocks in any order, between entries that stand for nothing."""
    lists = np.full(shape, -1, np.int32)
    width = shape[-1]
    for row in np.ndindex(shape[:-1]):
        blocks = rng.permutation(leaves)[: rng.integers(0, width + 1)]
        lists[row][rng.permutation(width)[: len(blocks)]] = blocks
    # Past the last leaf, where nothing is; past anything.
    lists[0, 0, 0, -1] = leaves + 7
    lists[0, 0, 1, 0] = np.iinfo(np.int32).max
    lists[0, 0, 2, 1] = np.iinfo(np.int32).min
    lists[0, 0, 3] = -1
    return lists


@pytest.mark.parametrize(
    "dtype, causal, head_dim, value_dim",
    [("f32", True, 16, 24), ("f16", False, 40, 16), ("bf16", True, 32, 8)],
)
def test_attention_over_lists(tmp_path, dtype, causal, head_dim, value_dim):
    rng = np.random.default_rng(5)
    batch, heads, kv_heads, queries, capacity, block = 3, 6, 2, 21, 100, 16
    k_len, q_start = [100, 37, 90], [79, 10, 85]
    q = encode(rng.standard_normal((batch, heads, queries, head_dim)), dtype)
    k = encode(rng.standard_normal((batch, kv_heads, capacity, head_dim)), dtype)
    v = encode(rng.standard_normal((batch, kv_heads, capacity, value_dim)), dtype)
    # What stands past a sequence's end reaches nothing.
    nan = encode(np.full(1, np.nan), dtype)[0]
    for b, length in enumerate(k_len):
        k[b, :, length:] = nan
        v[b, :, length:] = nan
    lists = draw_lists(rng, (batch, kv_heads, queries, 5), -(-capacity // block))
    scale = 0.3
    outputs = run(
        tmp_path,
        "--op=attention",
        f"--block-size={block}",
        f"--scale={scale}",
        f"--causal={str(causal).lower()}",
        "--check",
        q=q,
        k=k,
        v=v,
        indices=lists,
        k_len=np.array(k_len, np.int32),
        q_start=np.array(q_start, np.int64),
    )
    out, lse, largest = attend(
        decode(q), decode(k), decode(v), lists, k_len, q_start, block, causal, scale
    )
    assert np.isneginf(lse).any() and np.isfinite(lse).any()
    assert outputs["out"].dtype == q.dtype
    assert outputs["lse"].dtype == np.float32
    assert np.array_equal(outputs["indices"], lists)

    got = decode(outputs["out"])
    allowed = 2 * EPS[dtype] * largest[..., None] + 1e-5
    assert np.all(np.abs(got - out) <= allowed)
    # A row without keys is exactly 0.
    assert np.all(got[np.isneginf(lse)] == 0)
    assert np.array_equal(np.isneginf(outputs["lse"]), np.isneginf(lse))
    seen = np.isfinite(lse)
    np.testing.assert_allclose(outputs["lse"][seen], lse[seen], rtol=1e-5, atol=1e-5)


def test_lse_is_the_natural_logarithm(tmp_path):
    """Equal logits: the lse is the logit plus ln(number of keys)."""
    ones = np.ones((1, 1, 8, 8), np.float32)
    outputs = run(
        tmp_path, "--op=attention", "--scale=0.5", q=ones, k=ones, v=ones * 3
    )
    want = 4 + np.log(np.arange(1, 9))
    np.testing.assert_allclose(outputs["lse"][0, 0], want, rtol=1e-6)
    np.testing.assert_allclose(outputs["out"], 3, rtol=1e-6)


# ---------------------------------------------------------------------------
# Pyramid
# ---------------------------------------------------------------------------


def build_sequence(keys, capacity, block, fanout):
    """Section 1 of docs/Spec.md: [nodes, D] float32 means, not yet rounded.

    Additions in float32, in index order; levels at the offsets of the capacity.
    """
    sums, counts, rows = [], [], []
    for start in range(0, len(keys), block):
        total = keys[start].copy()
        for key in keys[start + 1 : start + block]:
            total += key
        sums.append(total)
        counts.append(len(keys[start : start + block]))
    nodes = -(-capacity // block)
    while True:
        level = np.zeros((nodes, keys.shape[1]), np.float32)
        for i, (total, count) in enumerate(zip(sums, counts)):
            level[i] = total / np.float32(count)
        rows.append(level)
        if nodes == 1:
            return np.concatenate(rows)
        nodes = -(-nodes // fanout)
        parents, parent_counts = [], []
        for start in range(0, len(sums), fanout):
            total = sums[start].copy()
            for child in sums[start + 1 : start + fanout]:
                total += child
            parents.append(total)
            parent_counts.append(sum(counts[start : start + fanout]))
        sums, counts = parents, parent_counts


@pytest.mark.parametrize(
    "dtype, summary, block, fanout",
    [("f32", "f32", 16, 2), ("bf16", "bf16", 7, 3), ("f16", "f32", 8, 4)],
)
def test_pyramid_bits(tmp_path, dtype, summary, block, fanout):
    rng = np.random.default_rng(7)
    batch, kv_heads, capacity, head_dim = 4, 2, 131, 24
    k_len = [131, 130, 17, 0]
    k = encode(rng.standard_normal((batch, kv_heads, capacity, head_dim)) + 1, dtype)
    outputs = run(
        tmp_path,
        "--op=build_pyramid",
        f"--block-size={block}",
        f"--fanout={fanout}",
        f"--summary-dtype={summary}",
        k=k,
        k_len=np.array(k_len, np.int32),
    )
    keys = decode(k, np.float32)
    want = [
        [
            encode(build_sequence(keys[b, h, :length], capacity, block, fanout), summary)
            for h in range(kv_heads)
        ]
        for b, length in enumerate(k_len)
    ]
    want = np.array(want)
    assert outputs["pyramid"].dtype == want.dtype
    assert outputs["pyramid"].shape == want.shape
    assert outputs["pyramid"].tobytes() == want.tobytes()


def test_atoms(tmp_path):
    """Outliers where float64 leaves no doubt, and the atoms around them exactly."""
    rng = np.random.default_rng(11)
    capacity, block, atoms, head_dim = 83, 16, 4, 16
    k = rng.standard_normal((1, 1, capacity, head_dim)).astype(np.float32)
    k[0, 0, 40:48] = k[0, 0, 40]  # equal keys
    outputs = run(
        tmp_path,
        "--op=build_pyramid",
        f"--block-size={block}",
        f"--leaf-atoms={atoms}",
        "--rerank=16",
        k=k,
    )
    for leaf in range(-(-capacity // block)):
        keys = k[0, 0, leaf * block : (leaf + 1) * block]
        wide = keys.astype(np.float64)
        distances = ((wide - wide.mean(0)) ** 2).sum(1)
        outlier = int(np.argmax(distances))
        assert outputs["outlier"][0, 0, leaf] == leaf * block + outlier
        for a in range(atoms):
            part = range(a * block // atoms, min((a + 1) * block // atoms, len(keys)))
            total, count = np.zeros(head_dim, np.float32), 0
            for t in part:
                if t != outlier:
                    total = total + keys[t]
                    count += 1
            if count:
                want = total / np.float32(count)
                assert np.array_equal(outputs["atoms"][0, 0, leaf, a], want)


# ---------------------------------------------------------------------------
# Routing
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("beam, rerank", [(None, None), (8, 6), (6, 0)])
def test_route_selects_as_the_loop_does(tmp_path, beam, rerank):
    rng = np.random.default_rng(13)
    group, queries, keys, head_dim, block, topk = 2, 90, 410, 16, 8, 4
    q = rng.standard_normal((1, group, queries, head_dim)).astype(np.float32)
    k = rng.standard_normal((1, 1, keys, head_dim)).astype(np.float32)
    options = [f"--beam={beam}"] if beam is not None else []
    options += [f"--rerank={rerank}"] if rerank is not None else []
    outputs = run(
        tmp_path,
        "--op=route",
        f"--block-size={block}",
        f"--topk={topk}",
        *options,
        q=q,
        k=k,
    )
    wide = k[0, 0].astype(np.float64)
    pyramid = reference.build(wide, block, 2, 4)
    for i in range(0, queries, 7):
        want = reference.select(
            q[0, :, i].astype(np.float64),
            keys - queries + i,
            wide,
            pyramid,
            K=topk,
            C=block,
            W=beam,
            R=rerank,
        )
        count = outputs["count"][0, 0, i]
        assert count == len(want)
        assert outputs["indices"][0, 0, i].tolist() == want + [-1] * (topk - count)


# ---------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------


def test_layouts_of_files(tmp_path):
    """Fortran order, float64 and .npz members read as the plain arrays do."""
    rng = np.random.default_rng(17)
    shape = (1, 2, 20, 16)
    arrays = {n: rng.standard_normal(shape).astype(np.float32) for n in "qkv"}
    options = ["--op=attention", "--block-size=8", "--topk=3", "--target=reference"]
    plain = run(tmp_path, *options, **arrays)
    fortran = run(
        tmp_path,
        *options,
        **{name: np.asfortranarray(array) for name, array in arrays.items()},
    )
    double = run(
        tmp_path,
        *options,
        **{name: array.astype(np.float64) for name, array in arrays.items()},
    )
    np.savez_compressed(tmp_path / "all.npz", **arrays)
    packed = run(tmp_path, *options, f"--inputs={tmp_path / 'all.npz'}")
    for other in (fortran, double, packed):
        for name in ("out", "lse", "indices"):
            assert other[name].tobytes() == plain[name].tobytes()
