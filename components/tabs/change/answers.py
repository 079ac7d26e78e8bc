"""The handlers of the Change tab that edit the model and look at what it does to the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import gradio as gr

from components.errors import PageError, localize_error
from components.i18n import Language, t
from components.state.session import Session
from components.tabs.change import views as change_views
from components.tabs.change.effect import head_costs, measure, text_of, text_of_ids
from components.tabs.change.experiments import EXPERIMENTS, summary
from components.tabs.change.memory import Memory
from components.tabs.change.program import program
from components.tabs.change.work import watched
from components.widgets.tokens import selection
from gpt import Edits, Generation, encode_prompt
from gpt.analysis.patching import is_patch_of_model
from gpt.config import Activation
from gpt.documents.comparison import divergence_index
from gpt.documents.edit_text import parse_edits

if TYPE_CHECKING:
    from components.tabs.change.tab import Change

Values = dict[Any, Any]
NOWHERE = -1  # where texts part that do not


def follow(ui: Change, values: Values, *, only_changed: bool = False, only_opened: bool = False) -> Values:
    """Everything about the text of the Playground, or the one made here as long as that stays the same.

    only_changed: nothing where it is the one that is shown. only_opened: nothing before the tab was opened.
    """
    session: Session = values[ui.playground.session]
    memory: Memory = values[ui.memory]
    language, document = values[ui.playground.frame.language], session.document
    state = _state(document)
    asked = session.edits is not memory.edits  # by a link
    if (only_changed and state == memory.seen and not asked) or (only_opened and memory.seen is None):
        return {ui.status: gr.skip()}
    if only_changed and _grows(session):
        return {ui.status: t("change.waits", language)}
    if asked:
        memory.edits = session.edits
    if document is None or document.n_read == 0:
        memory.look_at(None, own=False)
        memory.seen, memory.written = state, None
        return nothing(ui, language)
    notice, prompts = "", {}
    if asked or state != memory.seen:
        notice = _take(memory, document, session, language)
        memory.seen = state
        session.edits_on = session.edits_on if asked else ()
        if session.edits_on:
            prompts = _try_on(ui, memory, session)
    elif not memory.own:
        memory.position = session.selection.position
    session.edits = memory.edits
    return everything(ui, memory, language) | {ui.notice: notice, **prompts}


def _try_on(ui: Change, memory: Memory, session: Session) -> Values:
    """Selection at the prompt of a link instead of the document; it is prompt B where a patch is from another text."""
    loaded = memory.text.loaded
    try:
        ids = encode_prompt(loaded, list(session.edits_on))
    except ValueError:  # of another vocabulary
        session.edits_on = ()
        return {}
    memory.look_at(text_of_ids(loaded, ids), own=True)
    texts = [patch.ids for patch in memory.edits.patches[:1]] + [session.edits_on]
    boxes = zip((ui.clean, ui.corrupted), (loaded.tokenizer.decode(list(text)) for text in texts), strict=False)
    return dict(boxes) if len(texts) == 2 else {}


def _state(document: Generation | None) -> tuple[int, ...]:
    """Differs where another text is shown, or the model has read more of it."""
    return () if document is None else (document.key, document.n_read, *document.path[document.n_read - 1 :][:1])


def _grows(session: Session) -> bool:
    """Whether the model is reading or writing the text of the Playground."""
    document = session.document
    if document is None:
        return False
    return document.n_read == 0 or (session.throughput is not None and session.finish_reason is None)


def _take(memory: Memory, document: Generation, session: Session, language: Language) -> str:
    """Selection at the Playground's text; what is said where changes do not fit its model."""
    said, text = "", text_of(document)
    kept, before, old = memory.edits.fitting(text.config), memory.edits, memory.text
    patches = tuple(patch for patch in kept.patches if is_patch_of_model(text.loaded.model, patch))
    kept = replace(kept, patches=patches)
    if old is None or old.loaded.model is not text.loaded.model:
        memory.pair = memory.cell = None
        memory.sweeps.clear()
    dropped = Edits(
        {at: x for at, x in before.head_scale.items() if at not in kept.head_scale},
        {layer: x for layer, x in before.attn_scale.items() if layer not in kept.attn_scale},
        {layer: x for layer, x in before.mlp_scale.items() if layer not in kept.mlp_scale},
        patches=tuple(patch for patch in before.patches if not any(patch is other for other in patches)),
    )
    if dropped != Edits():
        said = t("change.dropped", language, changes=summary(dropped, (old or text).config, language))
        memory.edits = kept
    memory.look_at(text, own=False, position=session.selection.position)
    memory.written = None
    return said


def nothing(ui: Change, language: Language) -> Values:
    """An empty tab, with the reason."""
    empty = (ui.notice, ui.status, ui.switches, ui.edited, ui.parted, ui.bars, ui.divergence, ui.code, ui.own)
    original = gr.update(value="", parted=str(NOWHERE), labels=change_views.strip_words("original", language))
    return dict.fromkeys(empty, "") | {ui.original: original, ui.lead: t("error.no_text", language)}


def everything(ui: Change, memory: Memory, language: Language) -> Values:
    """All but the patching: the controls as they are, both texts, and what the edits do."""
    written = memory.written
    at = None if written is None else divergence_index(written.original, written.edited)
    place = str(NOWHERE if at is None else at)
    # The first update of a tab drops what it does not name: the words go with every value.
    labels = {side: change_views.strip_words(side, language) for side in ("original", "edited")}
    original = gr.update(
        value=change_views.strip(memory.text),
        selected=selection(memory.at()),
        parted=place,
        labels=labels["original"],
    )
    edited = gr.update(value="", parted=str(NOWHERE), labels=labels["edited"])
    switches = gr.update(value=change_views.switch_state(memory), labels=change_views.switch_labels(language))
    config = memory.text.config
    return {
        **effects(ui, memory, language),
        ui.switches: switches,
        ui.activation: memory.edits.activation or config.activation,
        ui.positions: memory.edits.drop_positions,
        ui.original: original,
        ui.own: t("change.own", language) if memory.own else "",
        ui.parted: "" if written is None else change_views.parted(memory, language),
    } | ({ui.edited: edited} if written is None else {})


def effects(ui: Change, memory: Memory, language: Language) -> Values:
    """What changes with every switch: the words, the bars, the divergence, the program."""
    if memory.effect is None or memory.effect.edits is not memory.edits:
        memory.effect = measure(memory.text, memory.edits)
    position = memory.at()
    return {
        ui.lead: change_views.changed(memory, language),
        ui.notice: "",
        ui.status: "",
        ui.bars: change_views.bars(memory.effect, position, language),
        ui.divergence: change_views.divergence(memory.effect, position, language),
        ui.code: program(memory),
    }


def edit(ui: Change, values: Values, edits: Edits) -> None:
    """Other edits, for this tab and for a link."""
    values[ui.memory].edits = values[ui.playground.session].edits = edits


def switch(ui: Change, values: Values, sent: Values) -> Values:
    """After a click on the switches: all their factors anew. The browser may have sent anything."""
    memory, language = values[ui.memory], values[ui.playground.frame.language]
    if memory.text is None:
        return gr.skip()
    try:
        asked = sent.get("edits")
        factors = parse_edits(asked if isinstance(asked, str) else "?")
        if factors.activation or factors.drop_positions:
            raise PageError("error.no_switch", edits=asked)
        factors.check(memory.text.config)
    except ValueError as problem:
        said = t("change.not_edits", language, problem=localize_error(problem, language))
        return {ui.notice: said, ui.switches: change_views.switch_state(memory)}
    scales = {name: getattr(factors, name) for name in ("head_scale", "attn_scale", "mlp_scale")}
    edit(ui, values, replace(memory.edits, **scales))
    return effects(ui, memory, language)


def choose_activation(ui: Change, values: Values) -> Values:
    """Another activation in every layer; the model's own is no change."""
    memory: Memory = values[ui.memory]
    chosen = values[ui.activation]
    if memory.text is None or chosen not in get_args(Activation):
        return gr.skip()
    own = chosen == memory.text.config.activation
    edit(ui, values, replace(memory.edits, activation=None if own else chosen))
    return effects(ui, memory, values[ui.playground.frame.language])


def drop_positions(ui: Change, values: Values) -> Values:
    """With positions or without."""
    memory: Memory = values[ui.memory]
    if memory.text is None:
        return gr.skip()
    edit(ui, values, replace(memory.edits, drop_positions=values[ui.positions] is True))
    return effects(ui, memory, values[ui.playground.frame.language])


def experiment(ui: Change, values: Values, name: str) -> Values:
    """One of the experiments in place of all that was changed."""
    memory: Memory = values[ui.memory]
    if memory.text is None:
        return gr.skip()
    language = values[ui.playground.frame.language]
    edit(ui, values, EXPERIMENTS[name](memory.text.config))
    return everything(ui, memory, language) | {ui.status: t(f"change.try.{name}.says", language)}


def costliest(ui: Change, values: Values) -> Iterator[Values]:
    """Switch off the head whose removal changes most on this text, after measuring all of them."""
    memory, language = values[ui.memory], values[ui.playground.frame.language]
    text = memory.text
    if text is None:
        return
    yield {ui.costs_stop: gr.update(visible=True)}
    if memory.costs is None:

        def told(n: int, total: int) -> Values:
            return {ui.status: t("change.costs.doing", language, n=n, total=total)}

        costs = yield from watched(lambda progress: head_costs(text, progress), told)
        if memory.text is not text:
            return
        memory.costs = costs
    layer, head = divmod(int(memory.costs.argmax()), text.config.n_head)
    edit(ui, values, Edits(head_scale={(layer, head): 0.0}))
    yield everything(ui, memory, language)


def measured(ui: Change, values: Values) -> Values:
    """After the measuring, however it ended."""
    return {ui.costs_stop: gr.update(visible=False), ui.status: ""}


def reset(ui: Change, values: Values) -> Values:
    """The model as it is, and the text of the Playground."""
    memory: Memory = values[ui.memory]
    edit(ui, values, Edits())
    memory.seen = None
    return follow(ui, values)


def select(ui: Change, values: Values, index: object) -> Values:
    """Selection from another position; where the text is the Playground's, in every tab. index may be anything."""
    memory, session = values[ui.memory], values[ui.playground.session]
    if memory.text is None or type(index) is not int or not 0 <= index < memory.text.n_read:
        return gr.skip()
    memory.position = index
    if not memory.own:
        session.selection = replace(session.selection, position=index)
    update = effects(ui, memory, values[ui.playground.frame.language])
    return update | {ui.original: gr.update(selected=selection(index))}


def select_token(ui: Change, values: Values, sent: Values) -> Values:
    """The token that was clicked."""
    return select(ui, values, sent.get("index"))


def select_bar(ui: Change, values: Values, sent: Values) -> Values:
    """The token whose bar was clicked; a long text is shown by a part."""
    memory, x = values[ui.memory], sent.get("x")
    if memory.text is None or type(x) is not int:
        return gr.skip()
    return select(ui, values, x + change_views.window(memory.text.n_read, memory.at())[0])
