"""Activation patching: two prompts, two answers, and a search for the activations that restore the answer."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from typing import Any

import torch
from torch import Tensor

from components import kit
from components.errors import NothingToShow, PageError
from components.figures.maps import recovery_heatmap
from components.i18n import t
from components.labels import Later, decimal, percent, placed, quoted, signed, token_text, visible_token
from components.limits import MAX_CHARACTERS
from components.next_tokens import at_one
from components.parts import Part, pick_list
from components.state.example import language_of_model
from components.state.jobs import Job, in_thread, run_steps
from components.state.session import Session
from components.tabs.change.edits import Writing, kept_edits, tab
from components.tabs.change.effect import read
from components.widgets.chart import Drawing
from gpt import LoadedModel
from gpt.analysis.patching import PatchSweep, patch_from, patch_sweep
from gpt.background import Cancelled, Progress
from gpt.sampling import keep_only
from gpt.tokenizer import hold_back, plain_text, prompt_ids

MAX_PROMPT_TOKENS = 64  # limits the number of forward passes per layer
N_CHOICES = 8  # likely next tokens listed for each prompt
PATCHED = ("resid_pre", "attn_out", "mlp_out")  # activations that can be patched on the page
PROMPT_PAIRS = {  # keyed by the model's language
    "en": {
        "names": ("Lily was sad. Tom gave a hug to", "Tom was sad. Lily gave a hug to"),
        "animals": ("Tom saw a big dog. He wanted to play with the", "Tom saw a big cat. He wanted to play with the"),
    },
    "zh": {
        "seasons": ("春风吹柳绿，", "秋风吹柳绿，"),
        "sides": ("日出东山上，月落", "日出南山上，月落"),
    },
}


@dataclass(frozen=True, eq=False)
class Sweeps:
    """Activation patching results for two prompts with the same number of tokens, of which two answers are compared.

    logits: after the clean and the corrupted prompt, (vocab_size,) each. listed: ids of likely answers. by_name:
    sweeps, keyed by the name of the patched activation.
    """

    loaded: LoadedModel
    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    answer: int
    other: int
    logits: tuple[Tensor, Tensor]
    listed: tuple[int, ...]
    by_name: Mapping[str, PatchSweep] = field(default_factory=dict)

    @property
    def pair(self) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
        return self.clean, self.corrupted, self.answer, self.other

    def is_about(self, other: Sweeps) -> bool:
        return self.loaded is other.loaded and self.pair == other.pair


@tab.state
class Patching:
    """prompts: the clean and the corrupted prompt, if a person has set them; edits_on: `Session.edits_on` at that time.

    answer, other: the tokens to compare. cell: selected cell in the recovery map, (layer, position). trouble: why the
    prompts cannot be compared.
    """

    prompts: tuple[str, str] | None = None
    edits_on: tuple[int, ...] = ()
    answer: Any = None
    other: Any = None
    patched: str = kit.setting(PATCHED[0], lambda s: {name: t(f"change.patch.{name}") for name in PATCHED})
    sweeps: Sweeps | None = None
    cell: tuple[int, int] | None = None
    trouble: Exception | None = None
    job: Job | None = None


def prompts(s: Any) -> tuple[str, str]:
    """Return the prompts: those that a person has set, those of a patch from a newer link, or an example."""
    state, patches = s[Patching], s.edits.patches
    is_linked = s.text is not None and bool(s.edits_on and patches)
    if state.prompts is not None and not (is_linked and s.edits_on != state.edits_on):
        return state.prompts
    if is_linked:
        return plain_text(s.text.tokenizer, patches[0].ids or ()), plain_text(s.text.tokenizer, s.edits_on)
    return next(iter(PROMPT_PAIRS[language_of_model(s.model)].values()))


def set_prompts(session: Session, clean: str, corrupted: str) -> None:
    session.change(Patching, prompts=(clean, corrupted), edits_on=session.edits_on)


def type_prompt(index: int, session: Session, value: object) -> None:
    both = [*prompts(session.snapshot())]
    both[index] = str(value or "")[:MAX_CHARACTERS]
    set_prompts(session, *both)


def take_example(pair: tuple[str, str], session: Session) -> Iterator[None]:
    set_prompts(session, *pair)
    yield from sweep(session)


def choose_answer(name: str, session: Session, value: object) -> Iterator[None]:
    """Choose the "answer" or "other" token. value: a list with one id or text; an empty list selects the default."""
    session.change(Patching, **{name: value[0] if isinstance(value, list) and value else None})
    yield from sweep(session)


def choices(s: Any) -> list[tuple[str, int]]:
    sweeps = sweeps_of(s)
    if sweeps is None:
        return []
    ids = sweeps.clean, sweeps.corrupted
    p, q = (s.stages(logits, each).final for logits, each in zip(sweeps.logits, ids, strict=True))

    def label(token: int) -> str:
        name = visible_token(sweeps.loaded.tokenizer, token)
        return f"{name}  A {percent(p[token].item())} · B {percent(q[token].item())}"

    return [(label(token), token) for token in sweeps.listed]


def chosen(name: str, s: Any) -> list[Any]:
    """Return the chosen "answer" or "other" token. Ids from another model's vocabulary are not shown."""
    value = None if sweeps_of(s) is None and s[Patching].sweeps is not None else getattr(s[Patching], name)
    return [] if value is None or value == "" else [value]


def choose_activation(session: Session, value: object) -> Iterator[None]:
    Patching.patched.set(session, value)  # type: ignore[attr-defined]
    yield from sweep(session)


def sweep(session: Session) -> Iterator[None]:
    """Patch each layer and position, unless this has already been done for these prompts and answers."""
    yield from run_steps(session, Patching, partial(_sweep, session), problem="trouble")


def _sweep(session: Session, job: Job) -> Generator[None]:
    if session.document is None:
        raise PageError("error.no_text")
    loaded, state, texts = session.document.loaded, session.state(Patching), prompts(session.snapshot())
    before, name = state.sweeps, state.patched
    sweeps = _prepare(loaded, texts, state)
    if before is not None and before.is_about(sweeps):
        sweeps, cell = replace(sweeps, by_name=before.by_name), state.cell
    else:
        cell = None
    set_prompts(session, *texts)
    session.change(Patching, sweeps=sweeps, cell=cell, answer=sweeps.answer, other=sweeps.other)
    yield
    if name in sweeps.by_name:
        return

    def work(progress: Progress) -> PatchSweep:
        return patch_sweep(loaded.model, *sweeps.pair, name=name, progress=progress)

    try:
        found = yield from in_thread(session, Patching, job, "change.patch.doing", work)
    except Cancelled:
        return
    except ValueError as problem:
        answer, other = (Later(quoted, loaded.tokenizer, i) for i in (sweeps.answer, sweeps.other))
        raise PageError("change.patch.flat", answer=answer, other=other) from problem
    newest = session.state(Patching).sweeps
    if newest is not None and newest.is_about(sweeps):
        session.change(Patching, sweeps=replace(newest, by_name={**newest.by_name, name: found}))


def _prepare(loaded: LoadedModel, texts: tuple[str, str], state: Patching) -> Sweeps:
    """Keep the answers if the prompts are as before. Raises ValueError if prompts or answers can't be compared."""
    held_back = [hold_back(loaded.tokenizer, text) for text in texts]
    clean, corrupted = (tuple(prompt_ids(loaded.tokenizer, text)) for text, _ in held_back)
    limit = min(MAX_PROMPT_TOKENS, loaded.model.config.block_size)
    if not clean or not corrupted:
        raise PageError("change.patch.empty")
    if len(clean) != len(corrupted):
        raise PageError("change.patch.lengths", a=len(clean), b=len(corrupted))
    if len(clean) > limit:
        raise PageError("change.patch.long", n=len(clean), limit=limit)
    if clean == corrupted:
        raise PageError("change.patch.same")
    with torch.inference_mode():
        first, second = (
            keep_only(loaded.model.logits(read(loaded, ids)[-1]), loaded.tokenizer.ids_after(held))
            for ids, (_, held) in zip((clean, corrupted), held_back, strict=True)
        )
    p, q = at_one(first), at_one(second)
    answer, other = int((p - q).argmax()), int((q - p).argmax())
    before = state.sweeps
    if before is not None and (before.loaded, before.clean, before.corrupted) == (loaded, clean, corrupted):
        answer, other = _token(loaded, state.answer, answer), _token(loaded, state.other, other)
        if answer == other:
            raise PageError("change.patch.alike")
    n = min(N_CHOICES, len(p))
    ids = dict.fromkeys([answer, other, *p.topk(n).indices.tolist(), *q.topk(n).indices.tolist()])
    return Sweeps(loaded, clean, corrupted, answer, other, (first, second), tuple(ids))


def _token(loaded: LoadedModel, chosen: object, default: int) -> int:
    """Return the id of a listed token, or of a typed token with or without a leading space."""
    if chosen is None or chosen == "":
        return default
    if type(chosen) is int and 0 <= chosen < loaded.model.config.vocab_size:
        return chosen
    for text in (f" {chosen}", str(chosen)):
        try:
            ids = loaded.tokenizer.encode_continuation(text[:MAX_CHARACTERS])
        except ValueError:
            continue
        if len(ids) == 1:
            return ids[0]
    raise PageError("change.patch.token", text=str(chosen)[:40])


def sweeps_of(s: Any) -> Sweeps | None:
    sweeps = s[Patching].sweeps
    return sweeps if sweeps is not None and s.text is not None and sweeps.loaded is s.text.loaded else None


def shown_sweep(s: Any) -> tuple[Sweeps, PatchSweep]:
    """Return the result to show in the map. Raises NothingToShow if it is missing or cannot be measured."""
    sweeps, name = sweeps_of(s), s[Patching].patched
    if s[Patching].trouble is not None or sweeps is None or name not in sweeps.by_name:
        raise NothingToShow
    return sweeps, sweeps.by_name[name]


def recovery_map(s: Any) -> Drawing:
    sweeps, sweep = shown_sweep(s)
    tokenizer, recovered = sweeps.loaded.tokenizer, sweep.recovered.float().cpu().numpy()
    figure = recovery_heatmap(
        recovered,
        [token_text(tokenizer, i) for i in sweeps.clean],
        [token_text(tokenizer, i) for i in sweeps.corrupted],
        cell=s[Patching].cell,
    )
    layer, position = divmod(int(recovered.argmax()), recovered.shape[1])
    sentence = t(
        "change.patch.map",
        answer=quoted(tokenizer, sweeps.answer),
        other=quoted(tokenizer, sweeps.other),
        clean=signed(sweep.clean),
        **_of_cell(s, layer, position),
    )
    return figure, sentence, t("change.patch.note")


def _of_cell(s: Any, layer: int, position: int) -> dict[str, object]:
    sweeps, sweep = shown_sweep(s)
    token = quoted(sweeps.loaded.tokenizer, sweeps.corrupted[position])
    return {
        "name": t(f"change.patch.{s[Patching].patched}"),
        "layer": layer,
        "token": placed(token, position),
        "corrupted": signed(sweep.corrupted),
        "share": f"{decimal(100 * float(sweep.recovered[layer, position]), 0)}%",
    }


def choose_cell(session: Session, sent: dict[str, Any]) -> None:
    position, layer, sweeps = sent.get("x"), sent.get("y"), sweeps_of(session.snapshot())
    if sweeps is None or type(position) is not int or type(layer) is not int:
        return
    if 0 <= layer < sweeps.loaded.model.config.n_layer and 0 <= position < len(sweeps.clean):
        session.change(Patching, cell=(layer, position))


def cell(s: Any) -> str:
    (_, sweep), at = shown_sweep(s), s[Patching].cell
    if at is None:
        return ""
    value = sweep.corrupted + float(sweep.recovered[at]) * (sweep.clean - sweep.corrupted)
    return t("change.patch.cell", value=signed(value), clean=signed(sweep.clean), **_of_cell(s, *at))


def keep(session: Session) -> None:
    s = session.snapshot()
    sweeps, cell = sweeps_of(s), s[Patching].cell
    if sweeps is None or cell is None:
        return
    patch = patch_from(sweeps.loaded.model, sweeps.clean, s[Patching].patched, *cell)
    session.edits = replace(kept_edits(session), patches=(patch,))
    session.edits_on = sweeps.corrupted
    session.change(Writing, written=None)


def can_keep(s: Any) -> bool:
    with suppress(NothingToShow):
        return shown_sweep(s) is not None and s[Patching].cell is not None
    return False


def patching_section() -> Part:
    def example(name: str, pair: tuple[str, str]) -> Part:
        key, take = f"change.patch.example.{name}", partial(take_example, pair)
        return kit.button(f"change-patch-{name}", key, take, queue="model", answer="change-map")

    examples = {
        each: kit.row(*starmap(example, PROMPT_PAIRS[each].items()), classes="gb-small") for each in PROMPT_PAIRS
    }
    boxes = [
        kit.text_box(
            f"change-{name}",
            f"change.patch.{name}",
            max_length=MAX_CHARACTERS,
            value=partial(lambda i, s: prompts(s)[i], i),
            on=partial(type_prompt, i),
        )
        for i, name in enumerate(("clean", "corrupted"))
    ]
    answers = [
        pick_list(
            f"change-{name}",
            f"change.patch.{name}",
            choices=choices,
            most=1,
            info="change.patch.found",
            value=partial(chosen, name),
            on=partial(choose_answer, name),
            queue="model",
        )
        for name in ("answer", "other")
    ]
    return kit.section(
        kit.question("change.patch.question"),
        kit.caption("change.patch.says"),
        kit.case("change-patch-examples", lambda s: language_of_model(s.model), examples),
        kit.columns(*map(kit.column, boxes)),
        kit.columns(*map(kit.column, answers)),
        kit.row(
            kit.choice(Patching.patched, "change.patch.name", on=choose_activation, queue="model"),
            kit.job_buttons("change-patch", "loss.measure", sweep, Patching, answer="change-map", ends=True),
        ),
        kit.says("change-patch-status", lambda s: s[Patching].job and s[Patching].job.progress, kind="status"),
        kit.says("change-trouble", lambda s: s[Patching].trouble, kind="notice"),
        kit.picture("change-map", recovery_map, clickable=True, on=choose_cell),
        kit.says("change-cell", cell),
        kit.row(kit.button("change-keep", "change.patch.keep", keep, show=can_keep)),
    )
