"""Tests of pisa.demo: no real model is needed, and everything is tiny."""

import json
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
for needed in ("transformers", "tokenizers", "matplotlib"):
    pytest.importorskip(needed)

import pisa  # noqa: E402
from pisa.demo import command, language_model, main, methods, needles, plots, report, single_level  # noqa: E402
from pisa.demo.methods import Setting  # noqa: E402
from pisa.evaluation import ArgumentError, EvaluationError  # noqa: E402
from pisa.evaluation import model as numpy_model  # noqa: E402

CONFIG = numpy_model.Config(
    layers=2,
    embedding=48,
    heads=6,
    kv_heads=2,
    head_dim=8,
    rope_base=1000.0,
    epsilon=1e-5,
    context=4096,
)


def bytes_vocabulary():
    """One token for each byte, by the letters that byte-level BPE writes them with."""
    from tokenizers import pre_tokenizers

    return sorted(pre_tokenizers.ByteLevel.alphabet())


def network_of(made):
    """The made-up model as a network."""
    sizes = language_model.model_sizes(made)
    return language_model.build_network(sizes, language_model.convert_weights(made))


def gguf_model(tied):
    """A made-up model as `load_model` gives it, one token for each byte."""
    rng = np.random.default_rng(0)
    vocabulary = bytes_vocabulary()

    def weight(*shape):
        array = rng.standard_normal(shape).astype(np.float32) / 4
        array.flags.writeable = False
        return array

    weights = {
        "token_embd.weight": weight(len(vocabulary), 48),
        "output_norm.weight": weight(48),
    }
    for layer in range(CONFIG.layers):
        for name, shape in (
            ("attn_norm", (48,)),
            ("attn_q", (48, 48)),
            ("attn_k", (16, 48)),
            ("attn_v", (16, 48)),
            ("attn_output", (48, 48)),
            ("ffn_norm", (48,)),
            ("ffn_gate", (64, 48)),
            ("ffn_up", (64, 48)),
            ("ffn_down", (48, 64)),
        ):
            weights[f"blk.{layer}.{name}.weight"] = weight(*shape)
    weights["output.weight"] = weights["token_embd.weight"] if tied else weight(len(vocabulary), 48)
    return numpy_model.Model(CONFIG, weights, vocabulary, [])


@pytest.fixture(scope="module")
def model():
    """A language model of bytes, with 20,000 tokens of made-up source code to read."""
    made = gguf_model(tied=True)
    tokeniser = language_model.build_tokeniser(made.vocabulary, made.merges)
    text = "".join(f"def f{i}(x):\n    return x + {i * i}\n\n\n" for i in range(600))
    ids = tokeniser.encode(text, add_special_tokens=False).ids[:20000]
    sizes = language_model.model_sizes(made)
    return language_model.LanguageModel(
        "made-up", sizes, network_of(made), tokeniser, np.array(ids, np.int64)
    )


# ------------------------------------------------------------------------------------------- model


@pytest.mark.parametrize("tied", [True, False])
def test_the_network_is_the_numpy_model(tied):
    made = gguf_model(tied)
    network = network_of(made)
    ids = np.random.default_rng(1).integers(0, 256, 90)
    expected = numpy_model.forward(made, ids, [], lambda *_: None, threads=1)
    with torch.inference_mode():
        hidden = network.model(input_ids=torch.from_numpy(ids)[None]).last_hidden_state[0]
        logits = network.lm_head(hidden).numpy()
    np.testing.assert_allclose(hidden.numpy(), expected, atol=1e-4)
    np.testing.assert_allclose(logits, expected @ made.weights["output.weight"].T, atol=1e-3)
    with torch.no_grad():
        rows = methods.log_likelihood(network, hidden, torch.from_numpy(ids), 40, 90)[0]
    loss = -float(rows.double().mean())
    assert math.exp(loss) == pytest.approx(
        numpy_model.perplexity(made, expected, ids, 50), rel=1e-4
    )


def test_half_rotation():
    rows = np.arange(12, dtype=np.float32)[:, None] * np.ones(3, np.float32)
    found = language_model.half_rotation(rows, heads=2)[:, 0].tolist()
    assert found == [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("tied", [True, False])
def test_save_and_load(tmp_path, dtype, tied):
    made = gguf_model(tied)
    tokeniser = language_model.build_tokeniser(made.vocabulary, made.merges)
    network = network_of(made)
    ids = np.arange(50, dtype=np.int64)
    weight = network.lm_head.weight.detach().clone()
    saved = language_model.LanguageModel(
        "one", language_model.model_sizes(made), network, tokeniser, ids
    )
    language_model.save(saved, tmp_path / "deep" / "er", dtype)
    read = language_model.load(tmp_path / "deep" / "er")
    assert (read.name, read.context, read.sizes) == ("one", CONFIG.context, saved.sizes)
    assert read.text.tolist() == ids.tolist() and read.text.dtype == np.int64
    assert read.encode("x = 48213\n") == saved.encode("x = 48213\n")
    assert read.network.lm_head.weight.dtype == torch.float32
    assert torch.equal(read.network.lm_head.weight, weight.to(dtype).float())
    assert float(read.network.model.rotary_emb.inv_freq[1]) == pytest.approx(1000 ** (-1 / 4))


def test_what_is_no_model(tmp_path):
    with pytest.raises(EvaluationError, match=f"--model={tmp_path}: not a folder of --save"):
        language_model.load(tmp_path)
    with pytest.raises(ArgumentError, match="no such file or folder"):
        language_model.load(tmp_path / "none.gguf")


# --------------------------------------------------------------------------------------- selection


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (70, 70), (30, 75), (64, 64)])
@pytest.mark.parametrize("topk", [3, 5, 20])
def test_mean_scored_selection(queries, keys, topk):
    """Against a loop in float64."""
    block = 8
    generator = torch.Generator().manual_seed(queries)
    q = torch.randn(2, 4, queries, 16, generator=generator)
    k = torch.randn(2, 2, keys, 16, generator=generator)
    found = single_level.select(q, k, topk, block)
    assert found.shape == (2, 2, queries, topk) and found.dtype == torch.int32
    for b, head, i in np.ndindex(2, 2, queries):
        current = (keys - queries + i) // block
        forced = {0, current, max(current - 1, 0)}
        query = q[b, 2 * head : 2 * head + 2, i].double().sum(0)
        free = [n for n in range(current + 1) if n not in forced]
        score = {
            n: float(query @ k[b, head, n * block : (n + 1) * block].double().mean(0)) for n in free
        }
        best = sorted(free, key=lambda n: -score[n])[: topk - len(forced)]
        expected = sorted(forced | set(best))
        assert found[b, head, i].tolist() == expected + [-1] * (topk - len(expected))


def test_methods_in_a_network(model):
    """With every block all methods are dense; with few they are not, and differ."""
    methods.register()
    ids = torch.from_numpy(model.text[:700].copy())
    dense = methods.prefill(model.network, ids, Setting("dense"))
    assert 0 < dense.attention_seconds < dense.seconds
    hidden = {}
    for method in ("pisa", "pisa-wide", "mean"):
        every = methods.prefill(model.network, ids, Setting(method, 11)).hidden
        torch.testing.assert_close(every, dense.hidden, atol=1e-4, rtol=1e-4)
        hidden[method] = methods.prefill(model.network, ids, Setting(method, 4)).hidden
        # The first four blocks are all selected.
        torch.testing.assert_close(hidden[method][:256], dense.hidden[:256], atol=1e-4, rtol=1e-4)
        assert float((hidden[method] - dense.hidden).abs().max()) > 1e-3
    assert float((hidden["pisa"] - hidden["mean"]).abs().max()) > 1e-3


def test_settings():
    found = methods.settings(["pisa", "mean"], [4, 8])
    assert [s.title for s in found] == [
        "dense",
        "PISA, K=4",
        "PISA, K=8",
        "mean-scored, K=4",
        "mean-scored, K=8",
    ]


# ----------------------------------------------------------------------------------------- needles


@pytest.mark.parametrize("depths", [[0.5], [0.0, 0.25, 1.0], [0.1, 0.3, 0.5, 0.7, 0.9]])
def test_haystack(model, depths):
    found = needles.build_haystack(model, 3000, depths, np.random.default_rng(3))
    again = needles.build_haystack(model, 3000, depths, np.random.default_rng(3))
    other = needles.build_haystack(model, 3000, depths, np.random.default_rng(4))
    assert len(found.tokens) == 3000 and found.answers == again.answers
    assert np.array_equal(found.tokens, again.tokens)
    assert not np.array_equal(found.tokens, other.tokens)
    text = model.decode(found.tokens.tolist())
    for name, depth, answer in zip(needles.NAMES, depths, found.answers, strict=False):
        number = model.decode(found.tokens[answer : answer + needles.DIGITS].tolist())
        definition = f"\n_MAGIC_{name}_NUMBER = {number}\n"
        assert number.isdigit() and text.count(definition) == 1
        before = model.decode(found.tokens[:answer].tolist())
        assert before.endswith(f"assert _MAGIC_{name}_NUMBER == ")
        # The text around is about 2600 tokens, with a line without indentation every 40.
        body = text.index(needles.QUESTION)
        assert text.index(definition) == pytest.approx(depth * body, abs=250)
        assert f"{number}\n" in text[body:]


def test_haystack_that_is_too_short(model):
    with pytest.raises(ArgumentError, match=r"--lengths=600: too short for 5 constants"):
        needles.build_haystack(model, 600, [0.1, 0.2, 0.3, 0.4, 0.5], np.random.default_rng(0))


# ------------------------------------------------------------------------------------------ report


def made_up(lengths=(2048, 4096), topks=(4, 8), with_needles=True):
    facts = {
        "model": "made-up",
        "block_size": 64,
        "windows": 2,
        "texts": 2,
        "digits": 5,
        "threads": 2,
        "processor": "abacus",
        "python": "3",
        "torch": "2",
        "transformers": "5",
    }
    results = report.Results(facts, counted=1024)
    for tokens in lengths:
        for i, setting in enumerate(methods.settings(["pisa", "mean"], list(topks))):
            for window in range(2):
                loss, seconds = 2 + 0.01 * i + 0.2 * window, tokens / 1024 / (1 + i)
                results.readings.append(report.Reading(setting, tokens, loss, seconds, seconds / 4))
            for text in range(2):
                for depth in (0.1, 0.9) if with_needles else ():
                    found = (i + text + (depth > 0.5)) % 2 == 0
                    results.recalls.append(
                        report.Recall(setting, tokens, depth, text, found, -0.5 * (i + 1))
                    )
    return results


def test_tables():
    text = report.markdown(made_up())
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    readings, recalls = rows[:12], rows[12:]
    assert len(readings) == len(recalls) == 2 + 2 * 5
    assert {len(row) for row in readings} == {8} and {len(row) for row in recalls} == {6}
    dense = ["2048", "dense", f"{math.exp(2.1):.3f}", "+0.00%", "2.00", "0.50", "1.00", "1.00"]
    assert readings[2] == dense
    assert readings[4][:4] == ["2048", "PISA, K=8", f"{math.exp(2.12):.3f}", "+2.02%"]
    assert readings[4][6:] == ["3.00", "3.00"]
    assert recalls[2] == ["2048", "dense", "2 of 4", "-0.50", "50%", "50%"]
    assert recalls[0][4:] == ["depth 0.1", "depth 0.9"]
    assert "Constants" not in report.markdown(made_up(with_needles=False))


def test_json():
    read = json.loads(json.dumps(report.as_json(made_up())))
    assert read["facts"]["processor"] == "abacus"
    assert len(read["readings"]) == 20 and len(read["recalls"]) == 40
    assert read["readings"][2]["setting"] == {"method": "pisa", "topk": 4}


@pytest.mark.parametrize("lengths", [(2048,), (2048, 4096, 8192)])
@pytest.mark.parametrize("topks", [(8,), (4, 8, 16)])
def test_plots(tmp_path, lengths, topks):
    results = made_up(lengths, topks)
    for draw in (plots.draw_perplexity, plots.draw_time, plots.draw_needles):
        path = tmp_path / f"{draw.__name__}.png"
        draw(results, path)
        assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ArgumentError, match=r"--output=.*x\.png cannot be written"):
        plots.draw_time(results, tmp_path / "none" / "x.png")


# -------------------------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lengths=100"], "--lengths=100: must be distinct, each at least 512"),
        (["--lengths=2048,2048"], "--lengths=2048,2048: must be distinct"),
        (["--topk=2,8"], "--topk=2,8: must be distinct, each at least 3"),
        (["--needle-topk=1"], "--needle-topk=1: must be distinct, each at least 3"),
        (["--methods=pisa,best"], "--methods=pisa,best: must be distinct, of pisa, pisa-wide"),
        (["--depths=0.5,1.5"], "--depths=0.5,1.5: must be distinct, each from 0 to 1"),
        (["--windows=0"], "--windows=0: must be at least 1"),
        (["--texts=-1"], "--texts=-1: must be at least 0"),
        (["--threads=0"], "--threads=0: must be at least 1"),
        (["--seed=-1"], "--seed=-1: must be at least 0"),
        (["--model=/nowhere/x.gguf"], "--model=/nowhere/x.gguf: no such file or folder"),
    ],
)
def test_wrong_arguments(arguments, said, capsys):
    assert main(arguments) == 2
    assert f"pisa.demo: error: {said}" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--lengths=2k"], ["--depths=a"], ["--quick", "--full"]])
def test_arguments_of_another_kind(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: python -m pisa.demo" in capsys.readouterr().err


def test_sizes():
    quick, full = command.parse([]), command.parse(["--full", "--topk=4", "--depths=0.9,0.1"])
    assert (quick.lengths, quick.topk, quick.methods) == ([2048], [8, 16], ["pisa", "mean"])
    assert (full.lengths, full.topk, full.depths) == ([2048, 4096, 8192], [4], [0.1, 0.9])
    assert full.methods == ["pisa", "pisa-wide", "mean"]


def test_whole_run(tmp_path, model, monkeypatch, capsys):
    monkeypatch.setattr(language_model, "load", lambda path: model)
    before = torch.get_num_threads(), pisa.get_num_threads()
    arguments = ["--lengths=1024,1536", "--topk=4,24", "--needle-topk=4", "--depths=0.2,0.8"]
    arguments += ["--texts=1", "--threads=2", f"--output={tmp_path / 'out'}"]
    try:
        assert main(arguments) == 0
        assert main(["--lengths=8192"]) == 2
    finally:
        torch.set_num_threads(before[0])
        pisa.set_num_threads(before[1])
    captured = capsys.readouterr()
    assert "--lengths=8192: must be at most 4096; the model's context is" in captured.err
    out = tmp_path / "out"
    assert captured.out == (out / "demo.md").read_text() + "\n"
    names = {"demo.md", "demo.json", "needles.png", "perplexity.png", "time.png"}
    assert {path.name for path in out.iterdir()} == names
    numbers = json.loads((out / "demo.json").read_text())
    losses = {
        (r["tokens"], r["setting"]["method"], r["setting"]["topk"]): r["loss"]
        for r in numbers["readings"]
    }
    assert len(losses) == 2 * 5
    for tokens in (1024, 1536):
        dense = losses[tokens, "dense", None]
        assert losses[tokens, "pisa", 24] == pytest.approx(dense, abs=1e-4)
        assert losses[tokens, "mean", 24] == pytest.approx(dense, abs=1e-4)
        assert losses[tokens, "pisa", 4] != dense
    assert len(numbers["recalls"]) == 2 * 3 * 2
