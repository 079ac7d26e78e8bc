"""The prompt, the token strip and its status, the sampling of a token, and the search results."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from components.concepts import turned_names
from components.i18n import is_exact, t
from components.labels import listed, marked, percent, placed, quoted, token_text, visible
from components.limits import MAX_CHARACTERS
from components.render import Lines, View
from components.state.knowledge import fitting_model, is_known_to
from components.state.selection import NEWEST
from components.state.snapshot import Snapshot
from components.state.text import Text
from components.state.typed_text import name_spans
from components.tabs.playground.state import PlaygroundState
from components.text_views import (
    attention_shade,
    count_sentence,
    document_lines,
    head_name,
    place_after,
    prompt_lines,
)
from components.widgets.choices import Choice, choices_data
from components.widgets.draw import Piece, draw_data
from components.widgets.sentence import sentence_data
from components.words import word_name, words_of
from gpt import distribution, list_models
from gpt.analysis.sampling_stages import cumulative_draw
from gpt.analysis.vocabulary_search import search_vocabulary
from gpt.models.sources import POEMS, STORIES, corpus_of
from gpt.tokenizer import plain_text, prompt_ids

MAX_PROMPT_TOKENS = 600  # tokens shown while a long prompt is typed
MAX_DROPPED = 60  # dropped tokens that are quoted
MAX_PIECES = 48  # tokens shown individually in the draw
MIN_PIECE_SHARE = 0.004  # minimum probability of a token shown individually
MAX_HITS = 8
MAX_NAMED = 3  # hidden words named
STEERED = ("playground", "inside", "why", "concepts", "change", "activations")  # tabs in which concepts are turned up


def strip(s: Snapshot) -> dict[str, Any]:
    """Show the text as a strip of tokens."""
    if s.text is None:
        return {
            "lines": Lines(),
            "doc": "",
            "selected": NEWEST,
            "shade": "",
            "by": s.selection.shading,
        }
    return {
        "lines": document_lines(s.text.document, s.token_statistics),
        "doc": str(s.text.document.key),
        "selected": NEWEST if s.selection.position == NEWEST else s.text.framed(s.selection),
        "shade": attention_shade(s.text, s.selection),
        "by": s.selection.shading,
    }


def selected(s: Snapshot) -> dict[str, Any]:
    """Describe the selected token, layer and head."""
    if s.text is None:
        return {"text": ""}
    head = head_name(s.selection.head)
    position = s.text.framed(s.selection)
    token = placed(quoted(s.text.tokenizer, s.text.ids[position]), position)
    return {"text": t("selected", token=token, layer=s.selection.layer, head=head)}


def in_force(s: Snapshot) -> dict[str, Any]:
    """Name the hidden words and the concepts that are turned up or down, or state that the open tab ignores them."""
    if s.written is None:
        return {"text": ""}
    words = [word for word in words_of(s.written.tokenizer, s.written.ids) if word.start in s.hidden]
    names = [word_name(s.written.tokenizer, s.written.ids, word) for word in words]
    if len(names) > MAX_NAMED:
        names = [t("hidden.words", n=len(names))]
    said = []
    for key, each, tabs in (("hidden", names, (*STEERED, "lessons")), ("turned", turned_names(s), STEERED)):
        if each:
            key = f"in_force.{key}" if s.tab in tabs else f"in_force.{key}.ignored"
            said.append(t(key, names=listed(each)))
    return {"text": " · ".join(said)}


def dropped(s: Snapshot) -> dict[str, Any]:
    """Show the tokens that no longer fit into the context."""
    ids = [] if s.written is None else s.written.document.dropped
    if s.written is None or not ids:
        return {"text": ""}
    end = marked(s.written.tokenizer.decode(ids[-MAX_DROPPED:]).replace("\n", " "))
    shown = end if len(ids) <= MAX_DROPPED else f"…{end}"
    return {"text": t("strip.dropped", n=len(ids), text=shown, limit=s.written.document.block_size)}


def prompt_strip(s: Snapshot) -> dict[str, Any]:
    """Show the text's tokens with their ids."""
    lines = Lines()
    if s.written is not None:
        lines = prompt_lines(s.written.tokenizer, s.written.ids[:MAX_PROMPT_TOKENS])
    return {"lines": lines, "doc": "prompt"}


def prompt_count(s: Snapshot) -> dict[str, Any]:
    """Show the number of tokens in the box, or why its text cannot be encoded."""
    if s.loaded is None:
        return {"text": ""}
    limit = s.loaded.model.config.block_size
    if s.unwritten is None:
        return {"text": count_sentence(0 if s.written is None else len(s.written.ids), limit)}
    try:
        ids = prompt_ids(s.loaded.tokenizer, s.unwritten[:MAX_CHARACTERS])
    except ValueError as problem:
        return sentence_data(problem)
    return {"text": count_sentence(len(ids), limit)}


def status(s: Snapshot) -> dict[str, Any]:
    """Show the line below the text: the progress, the run, the last action or, if there is none, what words can do."""
    return {"text": status_text(s)}


def status_text(s: Snapshot) -> str:
    if s.progress is not None:
        return t(s.progress.key, **s.progress.values)
    if s.text is None:
        return ""
    if s.throughput is not None:
        rate = s.throughput.tokens_per_second
        text = t(
            "status.running.exact" if s.numbers else "status.running",
            n=s.throughput.count,
            rate="–" if rate is None else f"{rate:.0f}",
            first=f"{1000 * s.throughput.first_seconds:.0f}",
            seed=s.throughput.seed,
        )
        if s.finish_reason is None:
            return text
        return f"{text} · {t(f'finish.{s.finish_reason}', limit=s.text.config.block_size)}"
    if s.last_action is None or s.last_action.key == "status.ready":
        return t("prompt.hint")
    return t(s.last_action.key, **s.last_action.values)


def notice(s: Snapshot) -> dict[str, Any]:
    """Show the notice about the text, or the error."""
    too_long = s.state(PlaygroundState).too_long
    if too_long and s.loaded is not None:
        return {"text": count_sentence(too_long, s.loaded.model.config.block_size)}
    return sentence_data(s.notice)


def knows(s: Snapshot) -> dict[str, Any]:
    """Point out that the model was not trained on texts like this one."""
    if s.loaded is None or is_known_to(s.loaded.name, s.next_prompt):
        return {"text": ""}
    corpus = corpus_of(s.loaded.name)
    read = "stories" if corpus == STORIES else "poems" if corpus == POEMS else "english"
    return {"text": t(f"knows.{read}")}


def literal(s: Snapshot) -> dict[str, Any]:
    """Point out that the name of a control token in the text is read as characters."""
    name = None if s.special else s.cached(named)
    return {"text": "" if name is None else t("special.literal", name=name)}


def named(s: Snapshot) -> str | None:
    """Return the name of a control token that the text contains as characters, unless the text is a chat."""
    if s.written is None or s.chat:
        return None
    tokenizer = s.written.tokenizer
    text = plain_text(tokenizer, s.written.ids) if s.unwritten is None else s.unwritten
    return next((text[start:end] for start, end in name_spans(tokenizer, text)), None)


def offered_model(s: Snapshot) -> str | None:
    """Return a listed model that was trained on texts like this one, if the current model was not."""
    if s.loaded is None or is_known_to(s.loaded.name, s.next_prompt):
        return None
    return fitting_model(list_models(), s.next_prompt)


def hint(s: Snapshot) -> dict[str, Any]:
    """Explain the shading."""
    shading = s.selection.shading
    if s.text is None:
        return {"text": ""}
    if shading != "attention" or s.text.n_read == 0:
        return {"text": t(f"strip.hint.{shading}") if shading != "attention" else ""}
    token = quoted(s.text.tokenizer, s.text.ids[s.text.at(s.selection)])
    return {"text": t("strip.hint.attention", token=token)}


def draw(s: Snapshot) -> dict[str, Any]:
    """Show how the selected token was sampled, or explain why there is nothing to show."""
    if s.written is None:
        return draw_data("")
    document, tokenizer = s.written.document, s.written.tokenizer
    position = s.written.framed(s.selection)
    origin, token = document.origin(position), quoted(tokenizer, document.ids[position])
    if position < document.n_prompt:
        return draw_data(t("draw.prompt", token=token))
    number = document.draw(position)
    if origin.params is None or number is None:
        return draw_data(t(f"draw.{origin.kind}", token=token))
    if position > s.written.n_read:
        return draw_data("")
    if document.dropped and position < len(document.ids) - 1:
        return draw_data(t("draw.dropped", token=token))
    stages = distribution(document.logits(position - 1), origin.params, previous_ids=document.ids[:position])
    if origin.params.temperature == 0:
        return draw_data(t("draw.greedy", token=token))
    drawn_strip = cumulative_draw(stages.final, number)
    start, end = drawn_strip.bounds
    text = t(
        "draw.says.exact" if is_exact() else "draw.says",
        token=token,
        number=f"{number:.4f}",
        start=f"{start:.4f}",
        end=f"{end:.4f}",
        seed=origin.params.seed,
        position=len(document.dropped) + position,
        temperature=f"{origin.params.temperature:g}",
    )
    if replace(origin.params, seed=None) != s.settings.sampling():
        text += t("draw.then", temperature=f"{origin.params.temperature:g}")
    if any(hidden < position for hidden in s.hidden):
        text += t("draw.visible")
    pieces, drawn = _pieces(s.written, drawn_strip.ids, drawn_strip.ends, drawn_strip.index)
    return draw_data(text, pieces, number=number, place=drawn, mark=t("draw.mark", number=f"{number:.2f}"))


def _pieces(text: Text, ids: np.ndarray, ends: np.ndarray, drawn: int) -> tuple[list[Piece], int]:
    """Return the pieces and the index of the drawn one. Small intervals are combined, except for the drawn one."""
    starts = np.concatenate(([0.0], ends[:-1]))
    broad = min(MAX_PIECES, int((ends - starts >= MIN_PIECE_SHARE).sum()))
    cuts = sorted({*range(broad + 1), drawn, drawn + 1, len(ids)})
    pieces: list[Piece] = []
    number = 0
    for first, after in pairwise(cuts):
        if first == drawn:
            number = len(pieces)
        span = f"{starts[first]:.4f} – {ends[after - 1]:.4f} " if is_exact() else ""
        if after - first == 1:
            name = quoted(text.tokenizer, int(ids[first]))
        else:
            name = t("draw.others", n=f"{after - first:,}")
        says = f"{name} {span}({percent(ends[after - 1] - starts[first])})"
        pieces.append(Piece(float(ends[after - 1]), says, after - first > 1))
    return pieces, number


def hits(s: Snapshot) -> dict[str, Any]:
    """List candidates to insert after the selected token: the query itself, and tokens that contain it."""
    nothing = choices_data("", (), [])
    if not s.query or s.text is None or s.written is None or s.text.n_read == 0:
        return nothing
    query = s.query
    position, tokenizer = s.text.at(s.selection), s.text.tokenizer
    here = place_after(s.written.document, s.written.at(s.selection))
    lines = []
    try:
        n = len(tokenizer.encode_continuation(query))
    except ValueError:  # a character outside the vocabulary
        n = 0
    if n:
        lines.append(Choice((t("box.text", text=visible(query), n=n),), here | {"text": query}))
    logits = s.text.document.logits(position)
    final = s.stages(logits, s.text.ids[: position + 1]).final
    for hit in search_vocabulary(tokenizer, logits, query, limit=MAX_HITS):
        name = visible(token_text(tokenizer, hit.token_id)) + (f"  {hit.token_id}" if is_exact() else "")
        cells = (name, f"{hit.rank:,}", percent(final[hit.token_id].item()))
        lines.append(Choice(cells, here | {"token": hit.token_id}))
    if not lines:
        return nothing
    head = (t("box.token"), t("strip.rank"), t("pipeline.probability"))
    return choices_data(t("box.name"), head, lines)


SHARED_VIEWS = (  # shown in every tab
    View("strip", strip),
    View("selected", selected),
    View("in-force", in_force),
)
VIEWS = (
    View("dropped", dropped),
    View("prompt-strip", prompt_strip),
    View("prompt-count", prompt_count),
    View("status", status),
    View("notice", notice),
    View("knows", knows),
    View("literal", literal),
    View("hint", hint),
    View("draw", draw),
    View("hits", hits),
)
