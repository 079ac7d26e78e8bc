"""The page's initial text, and prompts that a model's vocabulary can encode."""

from __future__ import annotations

from functools import partial

import numpy as np

from components.state.session import Session
from components.state.settings import LIMITS, sampling_params
from components.state.text import Selection
from gpt import Generation, LoadedModel
from gpt.documents.document import History
from gpt.models.sources import corpus_of
from gpt.tokenizer import plain_text, prompt_ids, start_ids

EXAMPLES = {  # prompts by the model's language; the page opens with the first one
    "en": {
        "example.story": "It was raining. Tom was sad",
        "example.dialogue": 'Tom saw a big dog in the park. "Hello, dog!" Tom said. The dog',
        "example.who": "Lily and Tom went to the zoo. Tom was scared of the lion, so Lily held his",
        "example.repeat": "cold spoon bird door blue tree king cold spoon bird",
    },
    "zh": {
        "example.verse": "春风吹细雨，",
        "example.title": "《秋夜》\n",
        "example.couplet": "白日依山尽，黄河入海流。\n",
        "example.farewell": "《送友人》\n",
    },
}
OPENINGS = {"en": (5, 81), "zh": (17, 8)}  # (tokens, seed) of the first example's continuation
OWN_TOKENS = 16
FALLBACK_TOKENS = 3  # number of tokens to use if a text cannot be encoded at all


def language_of_model(name: str) -> str:
    corpus = corpus_of(name)
    return "en" if corpus is None or "en" in corpus.languages else corpus.languages[0]


def examples_of(name: str) -> dict[str, str]:
    return EXAMPLES[language_of_model(name)]


def fitting_text(loaded: LoadedModel, text: str) -> str:
    """Replace an example in another language by the model's own, and leave of other texts what it can encode."""
    own = examples_of(loaded.name).values()
    pairs = (pair for prompts in EXAMPLES.values() for pair in zip(prompts.values(), own, strict=True))
    return encodable_text(loaded, dict(pairs).get(text, text))


def example(loaded: LoadedModel) -> Generation:
    """Return a finished text, generated once at startup and never changed."""
    document = Generation(loaded, first_prompt(loaded))
    length, seed = OPENINGS[language_of_model(loaded.name)]
    params = sampling_params(temperature=LIMITS["temperature"].default, seed=seed)
    for _ in document.steps(params, length, local=True):  # runs locally, because the cluster may not be running yet
        pass
    document.read()
    document.history = History()  # an empty history, so there is nothing to undo
    return document


def opening(document: Generation) -> Session:
    """Return the session that visitors start with: the example, with a sharp head selected."""
    layer, head = sharpest_head(document)
    session = Session(document, shown_prompt(document), Selection(layer=layer, head=head))
    session.token_statistics.of(document)
    return session


def sharpest_head(document: Generation) -> tuple[int, int]:
    """Return (layer, head) for the sharpest head in the middle layer.

    Sharpness is the mean, over all tokens, of the largest weight on an earlier token other than the first.
    """
    config = document.loaded.model.config
    layer = (config.n_layer - 1) // 2
    sharpness = []
    for head in range(config.n_head):
        weights = document.attn_weights(layer, head).float().tril(-1)[1:, 1:]  # (n_read - 1, n_read - 1)
        sharpness.append(float(weights.max(dim=1).values.mean()) if len(weights) else 0.0)
    return layer, int(np.argmax(sharpness))


def shown_prompt(document: Generation) -> str:
    ids = document.ids[: document.n_prompt]
    return plain_text(document.tokenizer, ids) + document.held_after(document.n_prompt - 1)


def encodable_text(loaded: LoadedModel, text: str) -> str:
    """Return the text if the model can encode it, or else its encodable words, the model's example, or a few tokens."""
    tokenizer = loaded.tokenizer
    is_encodable = partial(can_encode, loaded)
    if is_encodable(text) or (not text and start_ids(tokenizer)):
        return text
    kept = " ".join(word for word in text.split() if is_encodable(word))
    tokens = tokenizer.decode([i % tokenizer.n_vocab for i in range(FALLBACK_TOKENS)])
    return next((each for each in (kept, *examples_of(loaded.name).values()) if is_encodable(each)), tokens)


def can_encode(loaded: LoadedModel, text: str) -> bool:
    """Return whether a text is not empty and the vocabulary encodes most of it as tokens other than <unk>."""
    try:
        ids = loaded.tokenizer.encode(text)
    except ValueError:
        return False
    unknown = getattr(loaded.tokenizer, "unknown_id", None)
    return bool(ids) and sum(i == unknown for i in ids) * 2 < len(ids)


def own_words(loaded: LoadedModel) -> str:
    """Return what a model trained on a single text writes after a newline, or "" if it has an end-of-text token."""
    if start_ids(loaded.tokenizer) or not can_encode(loaded, "\n"):
        return ""
    params = sampling_params(temperature=LIMITS["temperature"].default, seed=OPENINGS["en"][1])
    return "".join(step.text for step in Generation(loaded, "\n").steps(params, OWN_TOKENS, local=True)).strip()


def first_prompt(loaded: LoadedModel, text: str = "", *, most: int | None = None) -> str:
    """Return the encodable part of a text, truncated to half the available context if it is too long.

    text: defaults to the model's own words, or to the example if it has none. most: an additional limit in tokens.
    """
    text = text or own_words(loaded) or next(iter(examples_of(loaded.name).values()))
    prompt, block_size = encodable_text(loaded, text), loaded.model.config.block_size
    room = block_size if most is None else min(block_size, most)
    ids = prompt_ids(loaded.tokenizer, prompt)
    return prompt if len(ids) <= room else plain_text(loaded.tokenizer, ids[: max(1, room // 2)])
