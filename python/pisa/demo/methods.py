"""What is compared: ways to compute the attention of a model, and how to run a model with one."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import LlamaForCausalLM
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from ..integrations import transformers as integration
from . import single_level


@dataclass(frozen=True)
class Method:
    """A way to compute attention. parameters(K): the keywords of `pisa.attention`."""

    key: str
    title: str
    implementation: str
    parameters: Callable[[int], dict[str, int]]


METHODS = {
    method.key: method
    for method in (
        Method("dense", "dense", "sdpa", lambda topk: {}),
        Method("pisa", "PISA", "pisa", lambda topk: {"topk": topk}),
        Method(
            "pisa-wide",
            "PISA, W=4K R=2K",
            "pisa",
            lambda topk: {"topk": topk, "beam": 4 * topk, "rerank": 2 * topk},
        ),
        Method("mean", "mean-scored", single_level.NAME, lambda topk: {"topk": topk}),
    )
}


@dataclass(frozen=True)
class Setting:
    """A method and its K, None for dense attention."""

    method: str
    topk: int | None = None

    @property
    def title(self) -> str:
        """For tables and legends."""
        title = METHODS[self.method].title
        return title if self.topk is None else f"{title}, K={self.topk}"


def settings(methods: list[str], topks: list[int]) -> list[Setting]:
    """Dense attention and each method with each K."""
    return [Setting("dense"), *(Setting(method, topk) for method in methods for topk in topks)]


def register() -> None:
    """Makes the methods known to transformers."""
    integration.register()
    single_level.register()


@dataclass
class Clock:
    """Seconds spent in attention functions."""

    seconds: float = field(default=0.0)


@contextmanager
def timed_attention(implementation: str) -> Iterator[Clock]:
    """Adds up the time that an attention implementation takes."""
    clock = Clock()
    function = ALL_ATTENTION_FUNCTIONS[implementation]

    def timed(*arguments: Any, **keywords: Any) -> Any:
        begin = time.perf_counter()
        result = function(*arguments, **keywords)
        clock.seconds += time.perf_counter() - begin
        return result

    # An entry of this object, which models look into first; registered ones are the class's.
    ALL_ATTENTION_FUNCTIONS[implementation] = timed
    try:
        yield clock
    finally:
        del ALL_ATTENTION_FUNCTIONS[implementation]


@dataclass(frozen=True)
class Prefill:
    """hidden [T, embedding], the normalised last hidden states; seconds of the whole model without
    its head, and of its attention functions alone."""

    hidden: torch.Tensor
    seconds: float
    attention_seconds: float


def warm_up(network: LlamaForCausalLM, implementation: str, tokens: int) -> None:
    """Calls the attention once on made-up tensors of the sizes to come: PISA then compiles, and
    torch fills its caches, before the clock runs."""
    config: Any = network.config
    module = network.model.layers[0].self_attn
    q = torch.randn(1, config.num_attention_heads, tokens, module.head_dim)
    k, v = torch.randn(2, 1, config.num_key_value_heads, tokens, module.head_dim)
    ALL_ATTENTION_FUNCTIONS[implementation](module, q, k, v, None, scaling=module.scaling)


def prefill(network: LlamaForCausalLM, tokens: torch.Tensor, setting: Setting) -> Prefill:
    """Reads tokens [T] in one go, with no cache."""
    method = METHODS[setting.method]
    network.set_attn_implementation(method.implementation)
    chosen = method.parameters(setting.topk or 0)
    with torch.inference_mode(), integration.parameters(**chosen):
        warm_up(network, method.implementation, len(tokens))
        with timed_attention(method.implementation) as clock:
            begin = time.perf_counter()
            out = network.model(input_ids=tokens[None], use_cache=False)
            seconds = time.perf_counter() - begin
    return Prefill(out.last_hidden_state[0], seconds, clock.seconds)


def log_likelihood(
    network: LlamaForCausalLM, hidden: torch.Tensor, tokens: torch.Tensor, first: int, last: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of tokens first..last-1, each given all before it: log-probability (nats) [last - first], and
    whether it is the most probable one.

    hidden [T, embedding], tokens [T], first >= 1. A slice of rows at a time: the logits of all
    would be T x vocabulary.
    """
    scores, right = [], []
    with torch.inference_mode():
        for start in range(first, last, 256):
            rows = slice(start, min(start + 256, last))
            logits = network.lm_head(hidden[rows.start - 1 : rows.stop - 1]).float()
            wanted = tokens[rows]
            scores.append(logits.log_softmax(-1).gather(1, wanted[:, None])[:, 0])
            right.append(logits.argmax(-1) == wanted)
    return torch.cat(scores), torch.cat(right)
