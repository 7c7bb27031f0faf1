"""PISA as an attention implementation of transformers, in tiny random Llama models.

With K of at least the number of blocks PISA is dense attention, so that "sdpa" is the reference.
"""

import contextlib

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import pisa  # noqa: E402
from pisa.integrations import transformers as integration  # noqa: E402
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM  # noqa: E402

TOKENS, BLOCK = 75, 8
VOCABULARY = 97
EVERY = 16  # blocks, more than there are
TOLERANCE = 1e-4  # of logits of about 10


@pytest.fixture(autouse=True)
def registered():
    integration.register(topk=EVERY, block_size=BLOCK)


def make_model(**changes):
    """Two layers, six query heads over two kv heads of 8."""
    torch.manual_seed(0)
    config = LlamaConfig(
        **{
            "vocab_size": VOCABULARY,
            "hidden_size": 48,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 6,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
            "initializer_range": 0.3,
            **changes,
        }
    )
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture
def ids():
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, VOCABULARY, (2, TOKENS), generator=generator)


def logits(model, implementation, ids, **keywords):
    model.set_attn_implementation(implementation)
    with torch.inference_mode():
        return model(input_ids=ids, **keywords).logits


def differ(a, b):
    return float((a - b).abs().max())


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
def test_equals_dense_with_every_block(ids, kv_heads):
    model = make_model(num_key_value_heads=kv_heads)
    dense = logits(model, "sdpa", ids)
    assert differ(logits(model, "pisa", ids), dense) < TOLERANCE
    assert differ(logits(model, "pisa", ids, use_cache=False), dense) < TOLERANCE


def test_is_sparse_with_fewer(model, ids):
    dense = logits(model, "sdpa", ids)
    with integration.parameters(topk=3):
        sparse = logits(model, "pisa", ids)
    seen = 3 * BLOCK
    assert differ(sparse[:, :seen], dense[:, :seen]) < TOLERANCE
    assert differ(sparse[:, seen:], dense[:, seen:]) > 1e-2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bits(ids, dtype):
    model = make_model().to(dtype)
    scale = float(logits(model, "sdpa", ids).abs().max())
    step = 2**-11 if dtype == torch.float16 else 2**-8
    assert differ(logits(model, "pisa", ids), logits(model, "sdpa", ids)) < 8 * step * scale


def test_the_kernel_gets_kv_heads_as_they_are(model, ids, monkeypatch):
    seen = []
    attention = pisa.attention

    def spy(q, k, v, **keywords):
        seen.append((tuple(q.shape), tuple(k.shape), keywords["layout"]))
        return attention(q, k, v, **keywords)

    monkeypatch.setattr(pisa, "attention", spy)
    logits(model, "pisa", ids)
    assert seen == [((2, 6, TOKENS, 8), (2, 2, TOKENS, 8), "bhsd")] * 2


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("masked", [False, True])
def test_generate(model, ids, cache, masked):
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    options |= {"cache_implementation": "static"} if cache == "static" else {}
    options |= {"attention_mask": torch.ones_like(ids)} if masked else {}
    model.set_attn_implementation("sdpa")
    expected = model.generate(ids, **options)
    model.set_attn_implementation("pisa")
    assert torch.equal(model.generate(ids, **options), expected)
    with integration.parameters(topk=3):
        assert model.generate(ids, **options).shape == expected.shape


@pytest.mark.filterwarnings("ignore:.*past_key_values")  # its name until 5.24
@pytest.mark.parametrize("topk", [3, 5, EVERY])
@pytest.mark.parametrize("sizes", [(40, 35), (8, 64, 3), (1, 74), (33, 1, 41)])
def test_chunked_prefill(model, ids, topk, sizes):
    model.set_attn_implementation("pisa")
    with integration.parameters(topk=topk), torch.inference_mode():
        whole = model(input_ids=ids).logits
        cache, parts = DynamicCache(), []
        for part in ids.split(list(sizes), dim=1):
            parts.append(model(input_ids=part, past_key_values=cache, use_cache=True).logits)
    # A chunk of one token is dense. Token 33 sees five blocks: with K = 3 it differs, and so does
    # what follows.
    rows = 33 if sizes == (33, 1, 41) and topk == 3 else TOKENS
    assert differ(torch.cat(parts, 1)[:, :rows], whole[:, :rows]) < TOLERANCE


def test_padding_on_the_right(model, ids):
    mask = torch.ones_like(ids)
    mask[1, 50:] = 0
    dense = logits(model, "sdpa", ids, attention_mask=mask)
    sparse = logits(model, "pisa", ids, attention_mask=mask)
    assert differ(sparse[0], dense[0]) < TOLERANCE
    assert differ(sparse[1, :50], dense[1, :50]) < TOLERANCE
    # A padded row is as if it were alone, also where blocks are left out.
    with integration.parameters(topk=3):
        padded = logits(model, "pisa", ids, attention_mask=mask)
        alone = logits(model, "pisa", ids[1:, :50])
    assert differ(padded[1:, :50], alone) < TOLERANCE


def test_bidirectional(model, ids):
    dense = logits(model, "sdpa", ids, is_causal=False)
    assert differ(logits(model, "pisa", ids, is_causal=False), dense) < TOLERANCE
    assert differ(logits(model, "sdpa", ids), dense) > 1e-2


def test_backward_is_refused(model, ids):
    model.set_attn_implementation("pisa")
    with pytest.raises(NotImplementedError, match="backward"):
        model(input_ids=ids).logits.sum().backward()


# ------------------------------------------------------------------------------------- parameters


def topk_seen(model, ids, monkeypatch):
    """The keywords that reach `pisa.attention`."""
    seen = {}
    attention = pisa.attention

    def spy(q, k, v, **keywords):
        seen.update(keywords)
        return attention(q, k, v, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(pisa, "attention", spy)
        logits(model, "pisa", ids)
    return seen


def test_precedence(ids, monkeypatch):
    model = make_model()
    integration.register(topk=10, block_size=BLOCK, beam=12)
    assert topk_seen(model, ids, monkeypatch)["topk"] == 10
    model.config.pisa = {"topk": 9}
    found = topk_seen(model, ids, monkeypatch)
    assert (found["topk"], found["beam"]) == (9, 12)
    with integration.parameters(topk=8, rerank=10):
        with integration.parameters(topk=7):
            found = topk_seen(model, ids, monkeypatch)
            assert (found["topk"], found["beam"], found["rerank"]) == (7, 12, 10)
        assert topk_seen(model, ids, monkeypatch)["topk"] == 8
    found = topk_seen(model, ids, monkeypatch)
    assert found["topk"] == 9 and "rerank" not in found
    with contextlib.suppress(RuntimeError), integration.parameters(topk=8):
        raise RuntimeError
    assert topk_seen(model, ids, monkeypatch)["topk"] == 9


def test_config_keyword(ids, monkeypatch):
    model = make_model(pisa={"topk": 6})
    assert topk_seen(model, ids, monkeypatch)["topk"] == 6


def test_unknown_parameters(model, ids):
    with pytest.raises(ValueError, match="register: causal=False: allowed are topk"):
        integration.register(causal=False)
    with (
        pytest.raises(ValueError, match="parameters: top_k=3: allowed are topk"),
        integration.parameters(top_k=3),
    ):
        pass
    other = make_model(pisa={"blocks": 64})
    with pytest.raises(ValueError, match=r"config\.pisa: blocks=64: allowed are topk"):
        logits(other, "pisa", ids)
    other.config.pisa = [16]
    with pytest.raises(TypeError, match=r"config\.pisa=\[16\]: must be a dict"):
        logits(other, "pisa", ids)


def test_wrong_values_come_from_the_operation(model, ids):
    with integration.parameters(topk=2), pytest.raises(ValueError, match="topk"):
        logits(model, "pisa", ids)


@pytest.mark.parametrize("name", ["sdpa", "eager", "flash_pisa", "a|b", "a/b", ""])
def test_names_that_are_taken(name):
    with pytest.raises(ValueError, match=f"name={name!r}".replace("|", r"\|")):
        integration.register(name)


def test_another_name(model, ids):
    integration.register("pisa_three", topk=3, block_size=BLOCK)
    with integration.parameters(topk=3):
        expected = logits(model, "pisa", ids)
    assert torch.equal(logits(model, "pisa_three", ids), expected)
    with pytest.raises(TypeError, match="name=3"):
        integration.register(3)


# --------------------------------------------------------------------------------- what is refused


def padded(ids, row, columns):
    mask = torch.ones_like(ids)
    mask[row, columns] = 0
    return mask


@pytest.mark.parametrize("columns", [slice(0, 5), slice(20, 25)])
def test_other_padding(model, ids, columns):
    mask = padded(ids, 1, columns)
    with pytest.raises(NotImplementedError, match="attention_mask, row 1: zeros before a one"):
        logits(model, "pisa", ids, attention_mask=mask)
    with pytest.raises(NotImplementedError, match="attention_mask, row 1: zeros before a one"):
        model.generate(ids, attention_mask=mask, max_new_tokens=2, pad_token_id=0)


@pytest.mark.parametrize(
    "mask",
    [
        torch.zeros(2, 1, TOKENS, TOKENS),
        torch.ones(2, 1, TOKENS, TOKENS, dtype=torch.bool).tril(),
        torch.zeros(2, 6, TOKENS, TOKENS),
    ],
    ids=["float", "bool", "per-head"],
)
def test_masks_of_ones_own(model, ids, mask):
    with pytest.raises(NotImplementedError, match=r"attention_mask of torch\.\w+ \[2, "):
        logits(model, "pisa", ids, attention_mask=mask)


def test_packed_sequences(model, ids):
    positions = torch.cat([torch.arange(30), torch.arange(TOKENS - 30)])[None]
    for keywords in ({"use_cache": False}, {"use_cache": True}):
        with pytest.raises(NotImplementedError, match="packed"):
            logits(model, "pisa", ids, position_ids=positions, **keywords)
    shifted = torch.arange(7, 7 + TOKENS)[None]
    dense = logits(model, "sdpa", ids, position_ids=shifted)
    assert differ(logits(model, "pisa", ids, position_ids=shifted), dense) < TOLERANCE


@pytest.mark.filterwarnings("ignore:.*output_attentions")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("output_attentions", True),
        ("sliding_window", 16),
        ("softcap", 30.0),
        ("s_aux", torch.zeros(6)),
        ("head_mask", torch.ones(6)),
        ("position_bias", torch.zeros(1, 6, TOKENS, TOKENS)),
        ("cu_seq_lens_q", torch.tensor([0, TOKENS])),
        ("something_new", 1),
    ],
)
def test_keywords_that_change_attention(model, ids, name, value):
    with pytest.raises(NotImplementedError, match=f"{name}="):
        logits(model, "pisa", ids, **{name: value})
    logits(model, "pisa", ids, **{name: None})


def test_dropout_in_training(ids):
    model = make_model(attention_dropout=0.25)
    assert logits(model, "pisa", ids).isfinite().all()
    model.train()
    with pytest.raises(NotImplementedError, match=r"dropout=0\.25: not supported by PISA, only 0"):
        logits(model, "pisa", ids)


def test_sliding_windows(ids):
    torch.manual_seed(0)
    config = transformers.MistralConfig(
        vocab_size=VOCABULARY,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=6,
        num_key_value_heads=2,
        sliding_window=16,
    )
    model = transformers.MistralForCausalLM(config).eval()
    with pytest.raises(NotImplementedError, match="sliding_window or chunked attention of 16"):
        logits(model, "pisa", ids)
    model = transformers.MistralForCausalLM(
        transformers.MistralConfig(**{**config.to_dict(), "sliding_window": None})
    ).eval()
    assert differ(logits(model, "pisa", ids), logits(model, "sdpa", ids)) < TOLERANCE


def test_direction_of_the_mask(model, ids):
    """A mask for one direction and a call for the other do not go together."""
    query = torch.zeros(2, 6, TOKENS, 8)
    module = model.model.layers[0].self_attn
    lengths = torch.full((2, 1, 1, 1), TOKENS, dtype=torch.int32)
    with pytest.raises(NotImplementedError, match="is_causal=True, but the mask is for bidirect"):
        integration.read_call(module, query, lengths, None, 0.0, True, {})
    request = integration.read_call(module, query, lengths, None, 0.0, False, {})
    assert not request.causal and request.q_start is None
    assert request.k_len.tolist() == [TOKENS, TOKENS]
