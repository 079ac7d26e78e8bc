"""The Machine tab: the path of one prediction, the numbers of one layer, all heads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from components import kit
from components.downloads import offer
from components.errors import PageError
from components.i18n import t
from components.limits import MAX_TRACE_BYTES
from components.state.session import Session
from components.tabs.inside import film, heads, machine, path
from components.tabs.inside.heads import stages
from components.tabs.inside.scene import STEPS, Chosen, has_text, recorded, select, tab
from components.widgets.flow import flow
from components.widgets.heads import heads as heads_picture
from components.widgets.simple import machine_path
from gpt.analysis.tracing import trace_window
from gpt.models.memory import format_bytes


@tab.state
class Saved:
    """The last file with all activations: its text's version, the first and last saved positions, and its size."""

    version: tuple[int, int] | None = None
    first: int = 0
    last: int = 0
    n_bytes: int = 0


def save_trace(session: Session) -> Iterator[None]:
    """Offer a file with all activations of the text, or only of its end if it would exceed the size limit."""
    text = session.snapshot().text
    if text is None or text.n_read == 0:
        raise PageError("error.no_text")
    config, n = text.config, text.n_read
    heads = (config.n_head + 2 * config.kv_heads) * config.head_size
    neurons = (3 if config.gated else 2) * config.ff_size
    bytes_per_position = 4 * config.n_layer * (5 * config.n_embd + heads + neurons + config.n_head * n)
    first = max(0, n - max(1, MAX_TRACE_BYTES // bytes_per_position))

    def write(folder: Path) -> Path:
        path = folder / "trace.npz"
        trace_window(text.loaded.model, text.ids[:n], first, n, text.document.edits).save(path)
        session.change(Saved, version=text.version, first=first, last=n - 1, n_bytes=path.stat().st_size)
        return path

    yield from offer(session, write)


def saved(s: Any) -> str | None:
    file = s[Saved]
    if s.text is None or file.version != s.text.version:
        return None
    return t("trace.saved", first=file.first, last=file.last, size=format_bytes(file.n_bytes))


def notice(s: Any) -> str | None:
    if s.text is None:
        return t("error.no_text")
    recording = s.ready(recorded)
    if recording is None or s.text.n_read <= recording.limit:
        return None
    memory = format_bytes(recording.max_bytes)
    return t("inside.too_long", n=recording.limit, total=s.text.n_read, memory=memory)


def open_step(session: Session, step: object) -> bool:
    """Open one of STEPS, if it exists. step: from a link."""
    if step in STEPS:
        session.change(Chosen, step=step)
    return step in STEPS


def select_in_path(session: Session, sent: dict[str, Any]) -> None:
    select(session, sent)
    session.change(Chosen, step="numbers")


def _shows_numbers(s: Any) -> bool:
    return bool(s[Chosen].step != "path")


tab.cards(
    kit.card("inside-film", kit.says("inside-notice", notice, kind="notice"), classes=""),
    kit.card(
        "inside-machine",
        kit.section(
            kit.title_row(
                kit.question("inside.question"),
                kit.choice(Chosen.step, "inside.step"),
                kit.button("follow", "film.open", film.open_film),
            ),
            kit.column(
                kit.says("path-says", path.says),
                machine_path("path", draw=path.draw, on=select_in_path),
                name="path-step",
                show=lambda s: not _shows_numbers(s),
            ),
            kit.column(
                kit.says("flow-lead", machine.lead),
                kit.says("flow-family", machine.family, kind="caption"),
                flow("flow", draw=machine.draw_flow, on=machine.select_in_flow),
                name="numbers-step",
                show=_shows_numbers,
            ),
            classes="dark gb-stage",
        ),
        kit.column(
            kit.section(
                kit.question("inside.heads.question"),
                heads_picture("heads", hint="tabs", draw=heads.draw_heads, on=select),
                classes="dark gb-stage",
            ),
            kit.section(
                kit.question("stages.question"),
                kit.caption("stages.lead"),
                stages("stages", draw=heads.draw_stages, on=select),
                classes="dark gb-stage",
            ),
            kit.row(
                kit.button("trace-save", "trace.save", save_trace, queue="model"),
                kit.says("trace-said", saved, kind="caption"),
            ),
            name="heads-step",
            show=lambda s: s[Chosen].step == "heads",
        ),
        classes="",
        opened=has_text,
    ),
)
