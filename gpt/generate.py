"""Text generation from Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from gpt.documents.generation import Generation, Step, together
from gpt.edits import Edits
from gpt.errors import check_choice, check_integer, require
from gpt.inference.engine import MAX_TEXTS
from gpt.inputs import AnyModel, Prompt, token_ids
from gpt.model import GPT
from gpt.models.registry import as_loaded
from gpt.sampling import SamplingParams, with_seed
from gpt.tokenizer import hold_back
from gpt.trace import Trace

DEFAULT_PARAMS = SamplingParams()


def generate(
    model: AnyModel,
    prompt: Prompt,
    params: SamplingParams = DEFAULT_PARAMS,
    max_new_tokens: int = 64,
    *,
    edits: Edits | None = None,
    on_full: Literal["stop", "crop"] = "stop",
    heal: bool = True,
    special: bool = False,
    trace: bool = False,
) -> Iterator[Step]:
    """Continue a prompt, yielding one Step per token.

    model: a loaded model, a model name, a path (loaded on every call), or a GPT, whose tokens are decoded as numbers.
    prompt: text, token ids, or, for a model with a chat template, a list of messages {"role", "content"}.
    on_full: "stop" ends the text when the context is full (a prompt of P tokens yields up to block_size - P + 1 steps);
        "crop" continues from the last block_size tokens and accepts prompts of any length.
    heal: whether white space at the end of a text counts as the beginning of the first new token (token healing). After
        "could not play ", the model reads "could not play" and draws " outside" from the tokens that begin with a
        space, with their probabilities scaled to sum to 1; the first step's text is "outside". With False, the model
        reads the white space as tokens of its own, after which it mostly predicts fragments of words. A text that ends
        inside a word is always read as it stands, because the word may be complete. Token ids and chats are never
        changed.
    special: whether names of control tokens in a text, such as `<|endoftext|>`, become control tokens. By default, they
        are read as characters. They always are in the messages of a chat.
    trace: whether each step has a `trace` of the pass that led to it, over one position: (1, 1, ...), with the keys of
        all positions. It equals a trace of the finished text at position step.position - 1. Needs on_full="stop".

    The last step has a finish_reason: end of text, max_new_tokens, or a full context. Invalid arguments raise
    ValueError immediately, not when the first step is requested.
    """
    check_integer("max_new_tokens", max_new_tokens, 1)
    check_choice("on_full", on_full, ("stop", "crop"))
    slides = on_full == "crop"
    require(not (trace and slides), "generate.trace")
    loaded, params = as_loaded(model), with_seed(params)
    prompt, held = hold_back(loaded.tokenizer, prompt) if heal and isinstance(prompt, str) else (prompt, "")
    ids = token_ids(loaded.tokenizer, prompt, special=special)
    n_dropped = max(0, len(ids) - loaded.model.config.block_size) if slides else 0
    document = Generation(loaded, ids[n_dropped:], edits=edits, dropped=ids[:n_dropped], held=held)
    steps = document.steps(params, max_new_tokens, slides=slides)
    return _with_traces(loaded.model, list(document.ids), steps, edits) if trace else steps


def _with_traces(model: GPT, unread: list[int], steps: Iterator[Step], edits: Edits | None) -> Iterator[Step]:
    """Add the traces to steps, by reading the text a second time. unread: ids of the prompt."""
    cache, ids = model.new_cache(), list[int]()
    for step in steps:
        trace, ids = Trace(), ids + unread
        with torch.inference_mode():
            *earlier, last = ids if cache.begin(len(ids)) else unread
            if earlier:
                model.hidden_states(torch.tensor([earlier], device=model.device), cache=cache, edits=edits)
            model.hidden_states(torch.tensor([[last]], device=model.device), cache=cache, trace=trace, edits=edits)
        yield replace(step, trace=trace)
        unread = [step.token_id]


def generate_batch(
    model: AnyModel,
    prompts: Sequence[Prompt],
    params: SamplingParams = DEFAULT_PARAMS,
    max_new_tokens: int = 64,
    *,
    n: int = 1,
    seeds: Sequence[int] | None = None,
    heal: bool = True,
    special: bool = False,
) -> list[list[int]]:
    """Continue several prompts in shared forward passes and return the new token ids for each.

    n: continuations of each prompt, which follow each other in the result.
    seeds: one for each continuation, n for each prompt. By default, the continuations of a prompt have the seed of
        `params` and those that follow it.

    Prompts are not padded, so each one continues exactly as in `generate` with the same seed. See `generate` for
    the other arguments. Invalid arguments raise ValueError before any token is generated.
    """
    require(not isinstance(prompts, str), "prompt.not_a_list")
    check_integer("max_new_tokens", max_new_tokens, 1)
    check_integer("n", n, 1)
    loaded = as_loaded(model)
    seeds = [(with_seed(params).seed or 0) + i for _ in prompts for i in range(n)] if seeds is None else seeds
    documents = [Generation(loaded, prompt, heal=heal, special=special) for prompt in prompts for _ in range(n)]
    texts = list(zip(documents, [replace(params, seed=seed) for seed in seeds], strict=True))
    del documents  # each is freed with its batch
    new_ids: list[list[int]] = []
    while texts:
        batch, texts = texts[:MAX_TEXTS], texts[MAX_TEXTS:]
        for _ in together(batch, max_new_tokens):
            pass
        new_ids += [document.ids[document.n_prompt :] for document, _ in batch]
    return new_ids


@torch.inference_mode()
def generate_greedy(model: GPT, idx: Tensor, max_new_tokens: int) -> Tensor:
    """Append the most likely next token max_new_tokens times: (B, T) ids -> (B, T + max_new_tokens).

    Every step recomputes the last block_size tokens. `generate` returns the same tokens, but uses a key-value cache.
    """
    for _ in range(max_new_tokens):
        context = idx[:, -model.config.block_size :]
        logits = model(context)[:, -1]  # (B, vocab_size), after the last token
        next_token = logits.argmax(dim=-1, keepdim=True)  # (B, 1)
        idx = torch.cat((idx, next_token), dim=1)
    return idx
