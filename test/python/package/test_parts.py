"""The parts give what the whole gives."""

import numpy as np
import pisa
import pytest
from oracle import normal


@pytest.mark.parametrize("rerank,beam", [(None, None), (None, 8), (6, 8), (0, None)])
@pytest.mark.parametrize("layout", ["bshd", "bhsd"])
def test_three_calls_are_one(rerank, beam, layout):
    shape = (2, 200, 4, 32) if layout == "bshd" else (2, 4, 200, 32)
    q = normal(1, *shape)
    k, v = (normal(s, *shape)[:, :2] if layout == "bhsd" else normal(s, *shape)[:, :, :2]
            for s in (2, 3))  # fmt: skip
    options = {"layout": layout, "k_len": [200, 111], "q_start": [0, -89]}
    want = pisa.attention(
        q, k, v, topk=4, block_size=16, rerank=rerank, beam=beam, return_lse=True,
        return_indices=True, **options,
    )  # fmt: skip
    pyramid = pisa.build_pyramid(
        k, block_size=16, k_len=[200, 111], layout=layout, return_atoms=rerank is not None
    )
    indices = pisa.route(q, k, pyramid, topk=4, rerank=rerank, beam=beam, **options)
    out, lse = pisa.block_sparse_attention(
        q, k, v, indices, block_size=16, return_lse=True, **options
    )
    for got, expected in zip((out, lse, indices), want, strict=True):
        assert (got == expected).all()


def test_pyramid_holds_means():
    k = normal(0, 1, 100, 2, 16)
    pyramid = pisa.build_pyramid(k, block_size=16, fanout=3, return_open_sums=True)
    # 7 leaves, 3 nodes, 1 root
    assert pyramid.summaries.shape == (1, 2, 11, 16) and pyramid.open_sums.shape == (1, 2, 3, 16)
    wide = k.astype(np.float64)
    for node, (start, stop) in {
        0: (0, 16),
        6: (96, 100),
        7: (0, 48),
        9: (96, 100),
        10: (0, 100),
    }.items():
        mean = wide[0, start:stop].mean(0)
        assert np.abs(pyramid.summaries[0, :, node] - mean).max() < 1e-6
    assert np.abs(pyramid.open_sums[0, :, 0] - wide[0, 96:].sum(0)).max() < 1e-5


def test_summary_dtype():
    k = normal(0, 1, 100, 1, 16)
    full, half = pisa.build_pyramid(k), pisa.build_pyramid(k, summary_dtype="float16")
    assert half.summaries.dtype == np.float16
    assert (full.summaries.astype(np.float16) == half.summaries).all()
    q = normal(1, 1, 100, 2, 16)
    options = {"topk": 3, "block_size": 16, "summary_dtype": np.float16, "return_indices": True}
    indices = pisa.attention(q, k, k, **options)[1]
    small = pisa.build_pyramid(k, block_size=16, summary_dtype=np.float16)
    assert (pisa.route(q, k, small, topk=3) == indices).all()


def test_counts_and_scores():
    q, k = normal(1, 1, 90, 2, 16), normal(2, 1, 90, 1, 16)
    pyramid = pisa.build_pyramid(k, block_size=16)
    indices, count, scores = pisa.route(
        q, k, pyramid, topk=4, return_count=True, return_scores=True
    )
    assert (count == (indices >= 0).sum(3)).all()
    assert (np.isneginf(scores) == (indices < 0)).all()
    # The score of a whole block: log-sum-exp of its logits, summed over the heads of the group.
    logits = 0.25 * q[0, 89].astype(np.float64) @ k[0, :, 0].astype(np.float64).T
    for block, score in zip(indices[0, 0, 89], scores[0, 0, 89], strict=True):
        part = logits[:, 16 * block : 16 * block + 16]
        assert abs(np.log(np.exp(part).sum(1)).sum() - score) < 1e-4


def test_a_pyramid_of_the_future_does_not_matter():
    """Causality: keys after a query change nothing, bit for bit."""
    q, k, v = (normal(s, 1, 257, 1, 16) for s in range(3))
    want = pisa.attention(q, k, v, topk=3, block_size=16, return_indices=True)
    for t in (0, 15, 16, 63, 64, 127, 128, 255):
        k2, v2 = k.copy(), v.copy()
        k2[:, t + 1 :] += 3
        v2[:, t + 1 :] -= 1
        got = pisa.attention(q, k2, v2, topk=3, block_size=16, return_indices=True)
        assert (got[0][:, : t + 1] == want[0][:, : t + 1]).all()
        assert (got[1][:, :, : t + 1] == want[1][:, :, : t + 1]).all()
