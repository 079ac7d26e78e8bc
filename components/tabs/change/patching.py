"""Activation patching: two prompts, two answers, and a search for the activations that restore the answer."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from typing import Any

import torch
from torch import Tensor

from components.errors import PageError
from components.figures.maps import recovery_heatmap
from components.i18n import t
from components.kit import (
    button,
    caption,
    case,
    choice,
    column,
    columns,
    picture,
    question,
    row,
    says,
    section,
    setting,
)
from components.labels import Later, decimal, percent, placed, quoted, signed, token_text, visible
from components.limits import MAX_CHARACTERS
from components.next_tokens import at_one
from components.parts import Part, pick_list, text_box
from components.state.example import language_of_model
from components.state.jobs import Job, in_thread, run_steps, stop
from components.state.session import Session
from components.tabs.change.edits import Writing, kept_edits, tab
from components.tabs.change.effect import read
from components.widgets.chart import Drawing
from gpt import LoadedModel
from gpt.analysis.patching import PatchSweep, patch_from, patch_sweep
from gpt.background import Cancelled
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


@dataclass(frozen=True)
class PromptPair:
    """Two prompts with the same number of tokens, and the two tokens whose logits are compared."""

    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    answer: int
    other: int


@dataclass(frozen=True, eq=False)
class Sweeps:
    """Activation patching results for a pair of prompts.

    logits: after the clean and the corrupted prompt, (vocab_size,) each. listed: ids of likely answers. by_name:
    sweeps, keyed by the name of the patched activation.
    """

    loaded: LoadedModel
    pair: PromptPair
    logits: tuple[Tensor, Tensor]
    listed: tuple[int, ...]
    by_name: Mapping[str, PatchSweep] = field(default_factory=dict)


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
    patched: str = setting(PATCHED[0], lambda s: {name: t(f"change.patch.{name}") for name in PATCHED})
    sweeps: Sweeps | None = None
    cell: tuple[int, int] | None = None
    trouble: Exception | None = None
    job: Job | None = None


# The prompts and the answers


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
    """Choose the "answer" or "other" token, and start the sweep.

    `value` is a list with one id or text; an empty list selects the default token.
    """
    session.change(Patching, **{name: value[0] if isinstance(value, list) and value else None})
    yield from sweep(session)


def choices(s: Any) -> list[tuple[str, int]]:
    sweeps = sweeps_of(s)
    if sweeps is None:
        return []
    pairs = zip(sweeps.logits, (sweeps.pair.clean, sweeps.pair.corrupted), strict=True)
    p, q = (s.stages(logits, ids).final for logits, ids in pairs)

    def label(token: int) -> str:
        name = visible(token_text(sweeps.loaded.tokenizer, token))
        return f"{name}  A {percent(p[token].item())} · B {percent(q[token].item())}"

    return [(label(token), token) for token in sweeps.listed]


def chosen(name: str, s: Any) -> list[Any]:
    """Return the chosen "answer" or "other" token. Ids from another model's vocabulary are not shown."""
    value = None if sweeps_of(s) is None and s[Patching].sweeps is not None else getattr(s[Patching], name)
    return [] if value is None or value == "" else [value]


# The sweep


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
    before = state.sweeps if state.sweeps is not None and state.sweeps.loaded is loaded else None
    sweeps = _prepare(loaded, texts, state, before)
    if before is not None and before.pair == sweeps.pair:
        sweeps = replace(sweeps, by_name=before.by_name)
    else:
        session.change(Patching, cell=None)
    pair, name = sweeps.pair, state.patched
    set_prompts(session, *texts)
    session.change(Patching, sweeps=sweeps, answer=pair.answer, other=pair.other)
    yield
    if name in sweeps.by_name:
        return
    work = partial(patch_sweep, loaded.model, pair.clean, pair.corrupted, pair.answer, pair.other, name=name)
    try:
        found = yield from in_thread(
            session, Patching, job, "change.patch.doing", lambda progress: work(progress=progress)
        )
    except Cancelled:
        return
    except ValueError as problem:
        answer, other = (Later(quoted, loaded.tokenizer, i) for i in (pair.answer, pair.other))
        raise PageError("change.patch.flat", answer=answer, other=other) from problem
    newest = session.state(Patching).sweeps
    if newest is not None and (newest.loaded, newest.pair) == (loaded, pair):
        session.change(Patching, sweeps=replace(newest, by_name={**newest.by_name, name: found}))


def _prepare(loaded: LoadedModel, texts: tuple[str, str], state: Patching, before: Sweeps | None) -> Sweeps:
    """Prepare the prompts, the answers and the answer choices.

    Keeps the chosen answers if the prompts are the same as in `before`. Raises ValueError if the prompts or answers
    cannot be compared.
    """
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
        logits = [
            keep_only(loaded.model.logits(read(loaded, ids)[-1]), loaded.tokenizer.ids_after(held))
            for ids, (_, held) in zip((clean, corrupted), held_back, strict=True)
        ]
    p, q = map(at_one, logits)
    answer, other = int((p - q).argmax()), int((q - p).argmax())
    if before is not None and (before.pair.clean, before.pair.corrupted) == (clean, corrupted):
        answer, other = _token(loaded, state.answer, answer), _token(loaded, state.other, other)
        if answer == other:
            raise PageError("change.patch.alike")
    n = min(N_CHOICES, len(p))
    ids = dict.fromkeys([answer, other, *p.topk(n).indices.tolist(), *q.topk(n).indices.tolist()])
    return Sweeps(loaded, PromptPair(clean, corrupted, answer, other), (logits[0], logits[1]), tuple(ids))


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


# The map


def sweeps_of(s: Any) -> Sweeps | None:
    sweeps = s[Patching].sweeps
    return sweeps if sweeps is not None and s.text is not None and sweeps.loaded is s.text.loaded else None


def shown_sweep(s: Any) -> tuple[Sweeps, PatchSweep] | None:
    """Return the result to show in the map, or None if it is missing or cannot be measured."""
    sweeps, name = sweeps_of(s), s[Patching].patched
    if s[Patching].trouble is not None or sweeps is None or name not in sweeps.by_name:
        return None
    return sweeps, sweeps.by_name[name]


def recovery_map(s: Any) -> Drawing:
    shown = shown_sweep(s)
    if shown is None:
        return None
    sweeps, sweep = shown
    tokenizer, pair, recovered = sweeps.loaded.tokenizer, sweeps.pair, sweep.recovered.float().cpu().numpy()
    figure = recovery_heatmap(
        recovered,
        [token_text(tokenizer, i) for i in pair.clean],
        [token_text(tokenizer, i) for i in pair.corrupted],
        cell=s[Patching].cell,
        layer_title=t("attention.layer"),
        value_title=t("change.patch.scale"),
    )
    layer, position = divmod(int(recovered.argmax()), recovered.shape[1])
    sentence = t(
        "change.patch.map",
        answer=quoted(tokenizer, pair.answer),
        other=quoted(tokenizer, pair.other),
        clean=signed(sweep.clean),
        corrupted=signed(sweep.corrupted),
        name=t(f"change.patch.{s[Patching].patched}"),
        layer=layer,
        token=placed(quoted(tokenizer, pair.corrupted[position]), position),
        share=_share(recovered[layer, position]),
    )
    return figure, sentence, t("change.patch.note")


def choose_cell(session: Session, sent: dict[str, Any]) -> None:
    position, layer, shown = sent.get("x"), sent.get("y"), shown_sweep(session.snapshot())
    if shown is None or type(position) is not int or type(layer) is not int:
        return
    n_layer, n = shown[1].recovered.shape
    if 0 <= layer < n_layer and 0 <= position < n:
        session.change(Patching, cell=(layer, position))


def cell(s: Any) -> str:
    shown = shown_sweep(s)
    if shown is None or s[Patching].cell is None:
        return ""
    (sweeps, sweep), (layer, position) = shown, s[Patching].cell
    share = float(sweep.recovered[layer, position])
    return t(
        "change.patch.cell",
        layer=layer,
        token=placed(quoted(sweeps.loaded.tokenizer, sweeps.pair.corrupted[position]), position),
        name=t(f"change.patch.{s[Patching].patched}"),
        corrupted=signed(sweep.corrupted),
        value=signed(sweep.corrupted + share * (sweep.clean - sweep.corrupted)),
        share=_share(share),
        clean=signed(sweep.clean),
    )


def _share(value: float) -> str:
    return f"{decimal(100 * value, 0)}%"


def keep(session: Session) -> None:
    s = session.snapshot()
    shown, cell = shown_sweep(s), s[Patching].cell
    if shown is None or cell is None:
        return
    sweeps, _ = shown
    patch = patch_from(sweeps.loaded.model, sweeps.pair.clean, s[Patching].patched, *cell)
    session.edits = replace(kept_edits(session), patches=(patch,))
    session.edits_on = sweeps.pair.corrupted
    session.change(Writing, written=None)


# The controls


def patching_section() -> Part:
    examples = case(
        "change-patch-examples",
        lambda s: language_of_model(s.model),
        {
            language: row(*starmap(_example, pairs.items()), classes="gb-small")
            for language, pairs in PROMPT_PAIRS.items()
        },
    )
    boxes = [
        text_box(
            f"change-{name}",
            max_length=MAX_CHARACTERS,
            label=f"change.patch.{name}",
            value=partial(_prompt, i),
            on=partial(type_prompt, i),
        )
        for i, name in enumerate(("clean", "corrupted"))
    ]
    answers = [
        pick_list(
            f"change-{name}",
            choices=choices,
            most=1,
            label=f"change.patch.{name}",
            info="change.patch.found",
            value=partial(chosen, name),
            on=partial(choose_answer, name),
            queue="model",
        )
        for name in ("answer", "other")
    ]
    return section(
        question("change.patch.question"),
        caption("change.patch.says"),
        examples,
        columns(*(column(box) for box in boxes)),
        columns(*(column(answer) for answer in answers)),
        row(
            choice(Patching.patched, "change.patch.name", on=choose_activation, queue="model"),
            button(
                "change-measure",
                "change.patch.measure",
                sweep,
                queue="model",
                enabled=_rests,
                primary=True,
                answer="change-map",
            ),
            button("change-patch-stop", "stop", partial(stop, Patching), enabled=lambda s: not _rests(s)),
        ),
        says("change-patch-status", lambda s: s[Patching].job and s[Patching].job.progress, kind="status"),
        says("change-trouble", lambda s: s[Patching].trouble, kind="notice"),
        picture("change-map", recovery_map, clickable=True, on=choose_cell),
        says("change-cell", cell),
        row(button("change-keep", "change.patch.keep", keep, show=lambda s: bool(cell(s)))),
    )


def _example(name: str, pair: tuple[str, str]) -> Part:
    return button(
        f"change-patch-{name}",
        f"change.patch.example.{name}",
        partial(take_example, pair),
        queue="model",
        answer="change-map",
    )


def _prompt(i: int, s: Any) -> str:
    return prompts(s)[i]


def _rests(s: Any) -> bool:
    return s[Patching].job is None
