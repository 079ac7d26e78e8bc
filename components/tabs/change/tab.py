"""The "Change it" tab in Why?: edits and their effect, both models' texts side by side, and activation patching."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from components import kit
from components.errors import PageError
from components.i18n import is_exact, t
from components.labels import placed, quoted
from components.parts import Lines, Part
from components.state.admission import admitted
from components.state.jobs import Job, run_steps
from components.state.session import Session
from components.state.text import NEWEST
from components.tabs.change import edits as change
from components.tabs.change.edits import tab as tab
from components.tabs.change.effect import ReadText, read_document, summary, turned_in
from components.tabs.change.patching import patching_section
from components.text_views import TwoTexts, token_lines
from components.widgets.tokens import tokens
from gpt import Edits, Generation, SamplingParams
from gpt.documents.edit_text import edits_as_python
from gpt.documents.generation import together
from gpt.documents.snippets import loading_line, params_as_python, with_imports
from gpt.tokenizer import prompt_text

DEFAULT_LENGTH = 40  # new tokens in the program if the visitor has not generated any texts yet
DEFAULT_PARAMS = SamplingParams(temperature=0.8, seed=1)


def generate_both(session: Session) -> Iterator[None]:
    """Generate both texts from the prompt, with Write's settings and the same seed, in one slot of the queue."""
    with session.lock.reading():
        s = session.snapshot()
        if s.text is None:
            raise PageError("error.no_text")
        document, prompt, held = s.text.document, s.edits_on, ""
        if not prompt:
            prompt, held = s.text.ids[: document.n_prompt], document.held_after(document.n_prompt - 1)
    session.edits = edits = change.kept_edits(session)
    loaded, params, turned = s.text.loaded, session.settings.sampling_with_seed(), turned_in(document)
    both = replace(edits, steering=(*turned.steering, *edits.steering))
    original, edited = (Generation(loaded, prompt, held=held, edits=each) for each in (turned, both))
    texts = TwoTexts(original, edited, (params, params))
    pair = change.WrittenPair(s.text.version, params, session.settings.length, edits)
    yield from run_steps(session, change.Writing, partial(_write, session, pair, texts), problem=None)


def _write(session: Session, pair: change.WrittenPair, texts: TwoTexts, job: Job) -> Generator[None]:
    def shown() -> change.WrittenPair:
        keys, ids = zip(*((str(each.key), tuple(each.ids)) for each in texts.documents), strict=True)
        return replace(pair, keys=keys, ids=ids, lines=(texts.lines(0), texts.lines(1)))

    def show() -> None:
        session.change(change.Writing, growing=shown())

    original = texts.documents[0]
    with admitted(session, original.loaded) as waiting:
        yield from waiting
        try:
            steps = together(list(zip(texts.documents, texts.params, strict=True)), pair.length)
            yield from texts.write(waiting, job, steps, show, session.settings.pace)
        finally:
            original.read()
            complete = replace(shown(), read=read_document(original, ("written", original.key), own=True))
            at = complete.divergence_index
            session.change(change.Editing, place=(("written", original.key), NEWEST if at is None else at - 1))
            session.change(change.Writing, growing=None, written=complete)


def strip(side: int, s: Any) -> dict[str, Any]:
    """Return the data of a token strip; before there are two texts, the left one shows the text that is measured."""
    growing = s[change.Writing].growing
    pair = growing or change.written_pair(s)
    index = None if pair is None else pair.divergence_index
    shown = {"parted": -1 if index is None else index, "selected": NEWEST}
    if side == 0 and growing is None:
        read = s[change.text]
        selected = change.selected_position(s, read)
        return shown | {"doc": repr(read.source), "lines": text_lines(read), "selected": selected}
    if pair is None:
        return shown | {"doc": "", "lines": Lines()}
    return shown | {"doc": pair.keys[side], "lines": pair.lines[side]}


def text_lines(read: ReadText) -> Lines:
    measured = read.statistics.tokens
    statistics: list[tuple[float | None, int | None]] = [
        (None, None),
        *((token.probability, token.rank) for token in measured),
    ]
    statistics += [(None, None)] * (len(read.ids) - len(statistics))
    return token_lines(read.loaded.tokenizer, read.ids, statistics, n_prompt=read.n_prompt)


def first_difference(s: Any) -> str:
    pair = change.written_pair(s)
    if pair is None or s[change.Writing].growing is not None:
        return ""
    changes = summary(pair.edits, s.text.config) or t("change.no_edit")
    index = pair.divergence_index
    seed = t("change.seed", seed=pair.params.seed) if is_exact() else ""
    if index is None:
        return t("change.parted.never", changes=changes) + seed
    left, right = (quoted(s.text.tokenizer, ids[index]) for ids in pair.ids)
    return t("change.parted", changes=changes, original=placed(left, index), edited=right) + seed


def stale(s: Any) -> str:
    pair = change.written_pair(s)
    if pair is None or pair.edits == s.edits or s[change.Writing].growing is not None:
        return ""
    return t("change.stale", changes=summary(pair.edits, s.text.config) or t("change.no_edit"))


def code(s: Any) -> str:
    if kit.no_text(s):
        return ""
    read, pair = s[change.text], change.written_pair(s)
    params, length = (DEFAULT_PARAMS, DEFAULT_LENGTH) if pair is None else (pair.params, pair.length)
    return program(read, s.edits.fitting(read.config), params, length)


def program(read: ReadText, edits: Edits, params: SamplingParams, length: int) -> str:
    """Return a program that generates the text with and without the edits and prints how the predictions diverge.

    Concepts that are turned up are part of both. On the same type of machine, the program reproduces the texts on the
    page.
    """
    loaded, edits, prompt = read.loaded, read.with_turned(edits), read.ids[: read.n_prompt]
    written = prompt_text(loaded.tokenizer, prompt, read.prompt_held) or list(prompt)
    original = "" if read.turned == Edits() else f", edits={edits_as_python(read.turned)}"
    patched = [f"# patched from the text {loaded.tokenizer.decode(list(patch.ids or ()))!r}" for patch in edits.patches]
    lines = [
        loading_line(loaded),
        f"prompt = {written!r}",
        f"params = {params_as_python(params)}",
        *patched,
        f"edits = {edits_as_python(edits)}",
        "",
        f"original, edited = Generation(loaded, prompt{original}), Generation(loaded, prompt, edits=edits)",
        "for document in (original, edited):",
        f"    for step in document.steps(params, {length}):",
        "        pass",
        "    document.read()",
        '    print(document.text, end="\\n\\n")',
        "",
        "idx = torch.tensor([original.ids[: original.n_read]])",
        "with torch.inference_mode():",
        "    states = loaded.model.hidden_states(idx, edits=edits)[0]",
        "print(kl_bits(loaded.model, original.states(), states))  # bits, at each position",
    ]
    return with_imports(lines)


def texts_section() -> Part:
    select = lambda session, sent: change.select_position(session, sent.get("index"))  # noqa: E731
    original = tokens("change-original", of="original", empty="edited", on=select, draw=partial(strip, 0))
    edited = tokens("change-edited", of="edited", empty="edited", selectable=False, draw=partial(strip, 1))
    both = kit.job_buttons(
        "change-both", "compare.generate", generate_both, change.Writing, answer="change-original", ends=True
    )
    return kit.section(
        kit.title_row(kit.question("change.texts.question"), both),
        kit.row(
            kit.says("change-stale", stale, kind="caption"),
            kit.button("change-again", "change.again", generate_both, queue="model", show=lambda s: bool(stale(s))),
            classes="gb-change-stale",
        ),
        kit.columns(
            kit.column(kit.caption("strip.name.original"), original, min_width=300),
            kit.column(kit.caption("strip.name.edited"), edited, min_width=300),
        ),
        kit.says("change-parted", first_difference),
        kit.says("change-own", lambda s: t("change.own") if s[change.text].own else "", kind="caption"),
        kit.caption("change.hint"),
        kit.fold("change-python", "change.python", kit.code_text("change-code", "change.python.label", code)),
    )


divergence_section, effect_section = change.effect_sections()
tab.cards(
    kit.card(
        "change",
        kit.columns(
            kit.column(change.edits_section(), divergence_section, min_width=300),
            kit.column(effect_section, texts_section(), min_width=300),
            classes="gb-change",
        ),
        patching_section(),
        classes="",
    )
)
