"""The handlers of the Why tab: each card asks the model for what it shows, and says so where that takes time."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import gradio as gr

from components.i18n import Language, t
from components.state.example import text_state
from components.state.session import Session
from components.tabs.why import part_views as why_part_views
from components.tabs.why import reading as why_reading
from components.tabs.why import views as why_views
from components.tabs.why.patience import QUIET_SECONDS, patient
from components.tabs.why.reading import Prediction, Reading
from components.widgets.tokens import selection
from gpt import Generation
from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.heads import HeadRoles
from gpt.analysis.lens import LENS_POINTS, lens_top_tokens

if TYPE_CHECKING:
    from components.tabs.why.tab import Why

Values = dict[Any, Any]


@dataclass
class Memory:
    """What one visitor's tab remembers; changed in place.

    row: of the lens, -1 the last. shown: the document and how much of it is on the screen.
    """

    reading: Reading | None = None
    row: int = -1
    roles: dict[str, tuple[HeadRoles, int]] = field(default_factory=dict)
    shown: tuple[int, int, int] = (0, 0, 0)

    def __deepcopy__(self, memo: dict[int, object]) -> Memory:
        """Another visitor starts with nothing."""
        return Memory()


@dataclass(frozen=True)
class Asked:
    """What a card answers about."""

    session: Session
    memory: Memory
    prediction: Prediction
    language: Language
    fresh: bool  # the selection has changed

    @property
    def reading(self) -> Reading:
        """The traced text around the position."""
        return self.memory.reading

    @property
    def place(self) -> int:
        """The position within the trace."""
        return self.prediction.position - self.reading.first


class Card(NamedTuple):
    """How a card is filled, and the names of its components."""

    fill: Callable[[Why, Values, Asked], Iterator[Values]]
    outputs: tuple[str, ...]


def answer(
    ui: Why,
    values: Values,
    *,
    cards: Sequence[str],
    fresh: bool = False,
    only_changed: bool = False,
    only_opened: bool = False,
) -> Iterator[Values]:
    """Fill those cards. fresh: with the selection as it is now, about the token that follows there.

    only_changed: nothing where the text is the one that is shown, or is still being written.
    only_opened: nothing before the tab was opened.
    """
    session: Session = values[ui.playground.session]
    memory: Memory = values[ui.memory]
    document, language = session.document, values[ui.playground.frame.language]
    now = text_state(document)
    if (only_changed and now == memory.shown) or (only_opened and memory.reading is None):
        yield {ui.status: gr.skip()}
        return
    if only_changed and _grows(session):
        yield {ui.status: t("why.waits", language)}
        return
    if document is None or document.n_read == 0:
        memory.reading, memory.shown = None, now
        yield _nothing(ui, cards, language)
        return
    session.selection = session.selection.fitting(document.loaded.model.config, position=session.selection.position)
    position = session.selection.at(document)
    kept = not fresh and memory.shown == now
    prediction = why_reading.predict(document, position, _token(values[ui.token], document) if kept else None)
    before = memory.reading if memory.reading is None or memory.reading.document is document else None
    model, doing = document.loaded.model, {ui.status: t("why.doing.reading", language)}
    memory.reading = yield from patient(model, doing, lambda: why_reading.read(document, position, before))
    if memory.shown != now:
        memory.roles.clear()
    asked = Asked(session, memory, prediction, language, fresh)
    memory.shown = now
    for card in cards:
        yield from CARDS[card].fill(ui, values, asked)
    yield {ui.status: ""}


def _grows(session: Session) -> bool:
    """Whether the model is reading or writing this text."""
    document = session.document
    if document is None:
        return False
    return document.n_read == 0 or session.lock.streaming


def _token(choice: object, document: Generation) -> int | None:
    """The id that was chosen; None for what is no token, which may have been typed."""
    return choice if type(choice) is int and 0 <= choice < document.loaded.model.config.vocab_size else None


def _nothing(ui: Why, cards: Sequence[str], language: Language) -> Values:
    """An empty tab, with the reason."""
    empty = {getattr(ui, name): "" for card in cards for name in CARDS[card].outputs}
    pickers = {picker: gr.update(choices=[], value=None) for picker in (ui.token, ui.against) if picker in empty}
    return empty | pickers | ({ui.lead: t("error.no_text", language)} if ui.lead in empty else {})


def _question(ui: Why, values: Values, asked: Asked) -> Iterator[Values]:
    document, prediction = asked.session.document, asked.prediction
    yield {
        ui.lead: why_views.lead(document, prediction, asked.language),
        ui.token: gr.update(choices=why_views.choices(document, prediction), value=prediction.token),
    }


def _text(ui: Why, values: Values, asked: Asked) -> Iterator[Values]:
    document, prediction, language = asked.session.document, asked.prediction, asked.language
    method = values[ui.method]
    # The first update of a tab drops what it does not name: the words go with every value.
    strip: dict[str, Any] = {"value": why_views.strip(document), "labels": why_views.strip_words(language)}
    if asked.fresh:
        strip["selected"] = selection(prediction.position)
    yield {
        ui.method_says: why_views.method_says(document, prediction, method, language),
        ui.strip: gr.update(**strip),
        ui.trouble: "",
    }
    if method == "gradient":
        doing = {ui.status: t("why.doing.gradient", language)}
        found = yield from patient(asked.reading.model, doing, lambda: why_reading.gradient(asked.reading, prediction))
    else:
        found = yield from _left_out(ui, asked)
    yield {
        ui.strip: gr.update(shade=why_views.shade(found)),
        ui.influence: why_views.influence_bars(asked.reading, prediction, found, language) if found else "",
        ui.trouble: "" if found else why_views.no_influence(asked.reading, prediction, method, language),
    }


def _left_out(ui: Why, asked: Asked) -> Generator[Values, None, why_reading.Influence | None]:
    told = time.perf_counter()
    steps = why_reading.left_out(asked.reading, asked.prediction)
    while True:
        try:
            n, total = next(steps)
        except StopIteration as end:
            return end.value
        if time.perf_counter() - told > QUIET_SECONDS:
            told = time.perf_counter()
            yield {ui.status: t("why.doing.left_out", asked.language, n=n, total=total)}


def _lens(ui: Why, values: Values, asked: Asked) -> Iterator[Values]:
    reading, prediction, language = asked.reading, asked.prediction, asked.language
    n_layer = reading.model.config.n_layer
    row = asked.memory.row if 0 <= asked.memory.row < n_layer else n_layer - 1
    stage = values[ui.stage] if values[ui.stage] in LENS_POINTS else LENS_POINTS[-1]
    doing = {ui.status: t("why.doing.reading", language)}
    lens = yield from patient(reading.model, doing, lambda: why_reading.lens(reading, prediction.token))
    top = lens_top_tokens(reading.model, reading.trace, row, stage, asked.place)
    yield {
        ui.lens: why_views.lens_map(reading, prediction, lens, stage, row, language),
        ui.cell: why_views.cell_bars(reading, prediction, top, stage, row, language),
        ui.path_question: why_views.path_question(asked.session.document, prediction, language),
        ui.path: why_views.path(reading, prediction, lens, language),
    }


def _parts(ui: Why, values: Values, asked: Asked) -> Iterator[Values]:
    reading, prediction, language = asked.reading, asked.prediction, asked.language
    others = [each for each in why_views.choices(asked.session.document, prediction) if each[1] != prediction.token]
    against = None if asked.fresh else next((i for _, i in others if i == values[ui.against]), None)
    edits = reading.document.edits
    found = direct_logit_attribution(
        reading.model, reading.trace, asked.place, prediction.token, against=against, edits=edits
    )
    none = (t("why.against.none", language), NOTHING)
    by_layer = values[ui.order] == "layer"
    yield {
        ui.against: gr.update(choices=[none, *others], value=NOTHING if against is None else against),
        ui.parts: why_part_views.parts(reading, prediction, found, against, by_layer, language),
        ui.heads: why_part_views.head_map(found, asked.session.selection, language),
    }


def _roles(ui: Why, values: Values, asked: Asked) -> Iterator[Values]:
    reading, language, look = asked.reading, asked.language, asked.session.selection
    role, sample, known = values[ui.role], values[ui.sample], asked.memory.roles
    if sample not in known:
        measure = why_reading.roles_of_noise if sample == "noise" else why_reading.roles_of_text
        doing = {ui.status: t("why.doing.roles", language)}
        known[sample] = yield from patient(reading.model, doing, lambda: measure(reading))
    roles, n = known[sample]
    yield {
        ui.role_says: why_part_views.role_says(roles, role, language),
        ui.roles: why_part_views.roles_map(roles, n, role, look, language),
    }


def _head(ui: Why, values: Values, asked: Asked) -> Iterator[Values]:
    reading, look = asked.reading, asked.session.selection
    yield {ui.head: why_part_views.head_bars(reading, asked.prediction, look, asked.language)}


NOTHING = -1  # the choice of `against` that stands for no token
CARDS = {
    "question": Card(_question, ("lead", "token")),
    "text": Card(_text, ("method_says", "strip", "trouble", "influence")),
    "lens": Card(_lens, ("lens", "cell", "path_question", "path")),
    "parts": Card(_parts, ("against", "parts", "heads")),
    "roles": Card(_roles, ("role_says", "roles")),
    "head": Card(_head, ("head",)),
}
