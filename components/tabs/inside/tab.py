"""The Inside tab: four parts that share one selection, each a row of cards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from components.cards.card import add_cards
from components.downloads import offer
from components.errors import PageError
from components.events import Events
from components.i18n import t
from components.kit import (
    button,
    caption,
    card,
    layer_select,
    no_text,
    picture,
    question,
    row,
    says,
    section,
    title_row,
)
from components.limits import MAX_TRACE_BYTES
from components.state.session import Session
from components.state.text import Text
from components.tabs.inside import film, heads, machine, stream
from components.tabs.inside.scene import PARTS, Chosen, recorded, select, tab
from components.widgets.flow import flow
from components.widgets.heads import heads as heads_picture
from components.widgets.simple import table
from components.widgets.stages import stages
from components.widgets.tokens import tokens
from gpt.analysis.tracing import trace_window
from gpt.models.memory import format_bytes


@dataclass(frozen=True)
class TraceFile:
    """A saved file. `version` is its text's version; `first` and `last` are the first and last saved positions."""

    version: tuple[int, int]
    first: int
    last: int
    n_bytes: int

    @classmethod
    def write(cls, text: Text, path: Path) -> TraceFile:
        """Trace the text, or only its end if the file would exceed the size limit, and write the file."""
        config, n = text.config, text.n_read
        heads = (config.n_head + 2 * config.kv_heads) * config.head_size
        neurons = (3 if config.gated else 2) * config.ff_size
        bytes_per_position = 4 * config.n_layer * (5 * config.n_embd + heads + neurons + config.n_head * n)
        first = max(0, n - max(1, MAX_TRACE_BYTES // bytes_per_position))
        trace = trace_window(text.loaded.model, text.ids[:n], first, n, text.document.edits)
        trace.save(path)
        return cls(text.version, first, n - 1, path.stat().st_size)


@tab.state
class Saved:
    """file: the last file with all activations."""

    file: TraceFile | None = None


def save_trace(session: Session) -> Iterator[None]:
    """Offer all activations of the text for download."""
    with session.lock.reading():
        text = session.snapshot().text
    if text is None or text.n_read == 0:
        raise PageError("error.no_text")

    def write(folder: Path) -> Path:
        path = folder / "trace.npz"
        session.change(Saved, file=TraceFile.write(text, path))
        return path

    yield from offer(session, write)


def saved(s: Any) -> str | None:
    """Describe the saved file until the text changes."""
    file = s[Saved].file
    if file is None or s.text is None or file.version != s.text.version:
        return None
    return t("trace.saved", first=file.first, last=file.last, size=format_bytes(file.n_bytes))


def notice(s: Any) -> str | None:
    """Explain why the text is missing or only partly shown."""
    if s.text is None:
        return t("error.no_text")
    recording = s.ready(recorded)
    if recording is None:
        return None
    if recording.reading:
        return t("inside.reading", n=f"{recording.reading:,}")
    if s.text.n_read <= recording.limit:
        return None
    memory = format_bytes(recording.max_bytes)
    return t("inside.too_long", n=recording.limit, total=s.text.n_read, memory=memory)


def open_part(session: Session, sent: dict[str, Any]) -> None:
    """Open the part whose title was clicked. Only the open part is computed."""
    index = sent.get("index")
    if type(index) is int and 0 <= index < len(PARTS):
        session.change(Chosen, part=PARTS[index])


def _is_open(part: str, s: Any) -> bool:
    return s[Chosen].part == part and no_text(s) is None


def _tab_id(part: str) -> str:
    return f"inside-{part.replace('_', '-')}"


NOTICE = card("inside-film", says("inside-notice", notice, kind="notice"), classes="")
TRACE_FILE = card(
    "inside-trace",
    row(button("trace-save", "trace.save", save_trace, queue="model"), says("trace-said", saved, kind="caption")),
    classes="",
)
CARDS = {
    "machine": card(
        "inside-machine",
        section(
            title_row(question("inside.question"), button("follow", "film.open", film.open_film)),
            says("flow-lead", machine.lead),
            says("flow-family", machine.family, kind="caption"),
            flow(
                "flow",
                draw=film.draw_flow,
                on=film.select_in_flow,
                on_input=film.write_next,
                input_queue="model",
            ),
        ),
        section(
            question("inside.heads.question"),
            heads_picture("heads", hint="tabs", draw=heads.draw_heads, on=select, on_input=heads.magnify_head),
        ),
        classes="",
        opened=partial(_is_open, "machine"),
    ),
    "one_head": card(
        "inside-head",
        section(
            question("stages.question"),
            caption("stages.lead"),
            stages("stages", draw=heads.draw_stages, on=heads.select_pair),
        ),
        classes="",
        opened=partial(_is_open, "one_head"),
    ),
    "stream": card(
        "inside-stream",
        section(
            title_row(
                question("stream.tokens.question"),
                layer_select("stream-layer", beside=True),
            ),
            says("stream-tokens-says", stream.tokens_sentence, kind="caption"),
            tokens("stream-tokens", shade="length", draw=stream.tokens, on=stream.select_token),
        ),
        row(
            section(
                question("stream.question"),
                picture("stream-norms", stream.norms, clickable=True, on=stream.select_layer),
                grow=1,
            ),
            section(
                question("stream.shares.question"),
                picture("stream-shares", stream.shares, clickable=True, on=stream.select_layer),
                grow=1,
            ),
            classes="gb-cards",
        ),
        section(
            question("neurons.question"),
            picture("neurons", stream.neurons),
            table("neurons-table", draw=stream.neurons_table, words_from=4),
        ),
        classes="",
        opened=partial(_is_open, "stream"),
    ),
    "embeddings": card(
        "inside-embeddings",
        row(
            section(question("embeddings.question"), picture("nearest-tokens", stream.nearest), grow=1),
            section(
                question("places.question"),
                picture("position-similarity", stream.positions),
                says("no-positions", stream.no_positions, kind="caption"),
                grow=1,
            ),
            classes="gb-cards",
        ),
        classes="",
        opened=partial(_is_open, "embeddings"),
    ),
}
tab.cards(NOTICE, *CARDS.values(), TRACE_FILE)


def build_inside(events: Events) -> None:
    """Build and wire the tab."""
    cards = [NOTICE()]
    with gr.Tabs(elem_id="inside-parts") as parts:
        for part, build in CARDS.items():
            with gr.Tab(t(f"inside.{part}"), id=_tab_id(part)) as opened:
                events.show(opened, partial(_label, f"inside.{part}"))
                cards.append(build())
    cards.append(TRACE_FILE())
    add_cards(events, {tab.name: cards})
    events.show(parts, lambda s: {"selected": _tab_id(s[Chosen].part)})
    events.on(parts.select, open_part, payload=True)


def _label(key: str, s: Any) -> dict[str, str]:
    return {"label": t(key)}
