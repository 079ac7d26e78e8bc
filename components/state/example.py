"""The initial text of the page, and prompts that a model's vocabulary can encode."""

from __future__ import annotations

from functools import partial

import numpy as np

from components.state.selection import Selection
from components.state.session import Session
from components.state.settings import LIMITS, sampling_params
from gpt import Generation, LoadedModel
from gpt.documents.token_tree import History
from gpt.tokenizer import plain_text, prompt_ids, start_ids

EXAMPLE_PROMPT = "It was raining. Tom was sad"
EXAMPLE_LENGTH = 5
EXAMPLE_SEED = 81
OWN_TOKENS = 16
FALLBACK_TOKENS = 3  # for a text that cannot be encoded at all


def example(loaded: LoadedModel) -> Generation:
    """A finished text, generated once at start-up and never changed."""
    document = Generation(loaded, first_prompt(loaded))
    params = sampling_params(temperature=LIMITS["temperature"].default, seed=EXAMPLE_SEED)
    for _ in document.local_steps(params, EXAMPLE_LENGTH):  # no cluster may be there yet
        pass
    document.read()
    document.history = History(document.path[-1])  # an empty history: nothing to undo
    return document


def opening(document: Generation) -> Session:
    """The session that visitors start with: the example, with an expressive head selected."""
    layer, head = sharpest_head(document)
    session = Session(document, initial_prompt(document), Selection(layer=layer, head=head))
    session.token_statistics.of(document)
    return session


def sharpest_head(document: Generation) -> tuple[int, int]:
    """(layer, head) in the middle layer with the largest mean of the maximum weight on previous tokens other than the
    first."""
    config = document.loaded.model.config
    layer = (config.n_layer - 1) // 2
    sharpness = []
    for head in range(config.n_head):
        weights = document.attn_weights(layer, head).float().tril(-1)[1:, 1:]  # (n_read - 1, n_read - 1)
        sharpness.append(float(weights.max(dim=1).values.mean()) if len(weights) else 0.0)
    return layer, int(np.argmax(sharpness))


def initial_prompt(document: Generation) -> str:
    """The prompt of the document as text."""
    return plain_text(document.loaded.tokenizer, document.ids[: document.n_prompt])


def encodable_text(loaded: LoadedModel, text: str) -> str:
    """The text if the vocabulary can encode it, else its encodable words, else a few tokens of the vocabulary."""
    tokenizer = loaded.tokenizer
    is_encodable = partial(can_encode, loaded)
    if is_encodable(text) or (not text and start_ids(tokenizer)):
        return text
    kept = " ".join(word for word in text.split() if is_encodable(word))
    return kept if is_encodable(kept) else tokenizer.decode([i % tokenizer.n_vocab for i in range(FALLBACK_TOKENS)])


def can_encode(loaded: LoadedModel, text: str) -> bool:
    """Whether the vocabulary can encode a text, and it is not empty."""
    try:
        return bool(loaded.tokenizer.encode(text))
    except ValueError:
        return False


def own_words(loaded: LoadedModel) -> str:
    """What a model trained on one text writes after a line feed; "" for a vocabulary with end-of-text."""
    if start_ids(loaded.tokenizer) or not can_encode(loaded, "\n"):
        return ""
    params = sampling_params(temperature=LIMITS["temperature"].default, seed=EXAMPLE_SEED)
    return "".join(step.text for step in Generation(loaded, "\n").local_steps(params, OWN_TOKENS)).strip()


def first_prompt(loaded: LoadedModel, text: str = "", *, most: int | None = None) -> str:
    """The encodable part of a text, cut to half the available context if it is too long. most: a further limit in
    tokens. text: "" is the model's own words, or else the example."""
    text = text or own_words(loaded) or EXAMPLE_PROMPT
    prompt, block_size = encodable_text(loaded, text), loaded.model.config.block_size
    room = block_size if most is None else min(block_size, most)
    ids = prompt_ids(loaded.tokenizer, prompt)
    return prompt if len(ids) <= room else plain_text(loaded.tokenizer, ids[: max(1, room // 2)])
