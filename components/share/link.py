"""Encoding and decoding of links: the query in the page's address.

Disabled settings are omitted, and unknown parameters, such as `__theme`, are ignored. Opening the link checks whether
the values fit the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from components.i18n import LANGUAGES
from components.state.settings import INTEGERS, LIMITS, checked_number, checked_setting, params_of
from gpt import Generation, SamplingParams, Step
from gpt.documents.document import OriginKind
from gpt.errors import require
from gpt.tokenizer import prompt_text

MAX_LINK = 4000  # longest query that browsers, proxies and messengers accept, in characters
_MAX_READ = 4 * MAX_LINK  # longer values are rejected
_MAX_PARAMETERS = 64
_MAX_COUNT, _MAX_ID, _MAX_SEED = 2**16, 2**31, 10**18


@dataclass(frozen=True)
class LinkedRun:
    """Consecutive tokens with the same origin.

    ids: typed or chosen tokens. count: number of sampled tokens. params: their sampling parameters, including the seed;
    by default, the link's settings. after_space: whether a space was typed before the first of them.
    """

    kind: OriginKind
    ids: tuple[int, ...] = ()
    count: int = 0
    params: SamplingParams | None = None
    after_space: bool = False


def encode(values: Mapping[str, Any]) -> str:
    """Return a link's query without "?", in the order of PARAMETERS."""
    assert values.keys() <= PARAMETERS.keys(), values.keys() - PARAMETERS.keys()
    pairs = [(name, _WRITE.get(name, str)(values[name])) for name in PARAMETERS if name in values]
    return urlencode(pairs, quote_via=quote, errors="replace")


def decode(query: str) -> tuple[dict[str, Any], list[str]]:
    """Return a query's values and the names of its invalid parameters. Any string is accepted."""
    if not isinstance(query, str) or len(query) > _MAX_READ:
        return {}, ["link"]
    try:
        given = dict(parse_qsl(query, keep_blank_values=True, errors="replace", max_num_fields=_MAX_PARAMETERS))
    except ValueError:
        return {}, ["link"]
    values: dict[str, Any] = {}
    refused = []
    for name in PARAMETERS.keys() & given.keys():
        try:
            values[name] = PARAMETERS[name](given[name])
        except ValueError:
            refused.append(name)
    return values, sorted(refused)


def _matching(pattern: str, text: str) -> str:
    """Return the text if it matches a pattern. Raises ValueError otherwise."""
    if not re.fullmatch(pattern, text, re.DOTALL):
        raise ValueError
    return text


_name = partial(_matching, "[a-z0-9_-]{1,40}")


def _number(text: str) -> float:
    return float(_matching(r"[0-9]{1,20}(\.[0-9]{1,25})?(e-[0-9]{1,3})?", text))


def _whole(text: str, most: int = _MAX_COUNT, least: int = 0) -> int:
    return int(checked_number("number", int(_matching("[0-9]{1,19}", text)), least, most, whole=True))


def _setting(name: str, text: str) -> float | int:
    """Parse a number within the limits of the page's setting."""
    return checked_setting(name, _whole(text) if name in INTEGERS else _number(text))


def _ids(text: str) -> tuple[int, ...]:
    return tuple(_whole(part, _MAX_ID) for part in text.split("-"))


def _write_ids(ids: tuple[int, ...]) -> str:
    return "-".join(map(str, ids))


_BY_HAND: dict[str, OriginKind] = {"t": "typed", "c": "chosen"}
_LETTERS = {**{limit.letter: name for name, limit in LIMITS.items()}, "s": "seed"}
_SETTING = f"([{''.join(_LETTERS)}])([0-9.]+(?:e-[0-9]+)?)"


def _run(text: str) -> LinkedRun:
    """Parse a run of tokens: `40` are sampled, `10h` after a typed space, `10t1.2s7` at temperature 1.2 with seed 7.

    `c300` is chosen, `t5-6` are typed.
    """
    kind = _BY_HAND.get(text[:1])
    if kind is not None:
        return LinkedRun(kind, _ids(text[1:]))
    parts = re.fullmatch(f"([0-9]+)(h?)((?:{_SETTING})*)", text)
    if parts is None:
        raise ValueError
    settings: dict[str, Any] = {}
    for letter, value in re.findall(_SETTING, parts[3]):
        name = _LETTERS[letter]
        settings[name] = _whole(value, _MAX_SEED) if name in INTEGERS else _number(value)
    if settings and "seed" not in settings:
        raise ValueError
    count = _whole(parts[1], least=1)
    params = params_of(settings) if settings else None
    return LinkedRun("sampled", count=count, params=params, after_space=bool(parts[2]))


def _write_run(run: LinkedRun) -> str:
    if run.kind != "sampled":
        return {kind: letter for letter, kind in _BY_HAND.items()}[run.kind] + _write_ids(run.ids)
    count = f"{run.count}h" if run.after_space else str(run.count)
    if run.params is None:
        return count
    names = {name: letter for letter, name in _LETTERS.items()}
    return count + "".join(f"{names[name]}{+value!r}" for name, value in run.params.given().items())  # +True is 1


PARAMETERS: dict[str, Callable[[str], Any]] = {  # each parses its text, or raises ValueError
    "model": partial(_matching, ".{0,400}"),
    # Edits to the model (see gpt.documents.edit_text); they are checked when they are applied.
    "edits": partial(_matching, ".{0,2000}"),
    "edits_on": _ids,  # the prompt for the edits; defaults to the text itself
    "prompt": str,
    "prompt_ids": _ids,  # replaces a prompt whose text does not encode to the same ids
    **{name: partial(_setting, name) for name in LIMITS},
    "seed": partial(_whole, most=_MAX_SEED),
    "length": partial(_whole, least=1),  # maximum number of new tokens for the next run
    # The origin of each token after the prompt, `_run` by `_run`; defaults to a new run.
    "text": lambda text: tuple(map(_run, text.split("_"))) if text else (),
    "class": str,  # a sequence of stops (see `sequence`)
    "stop": partial(_whole, least=1),  # the current stop
    "tab": _name,
    "lesson": _name,  # opens the Lessons tab
    "challenge": _name,  # opens the Challenges tab
    "step": _name,  # opens the Machine tab
    "film": _name,  # the film's open beat
    "position": _whole,  # the selected token; defaults to the last
    "layer": _whole,
    "head": _whole,  # defaults to the average
    "hidden": _ids,  # positions of hidden words
    "attention": _name,  # "off" also shows the prediction without attention
    "shading": _name,  # the quantity that shades the strip; defaults to probability
    "lang": lambda text: text if text in LANGUAGES else "en",
}
_WRITE: dict[str, Callable[[Any], str]] = {  # those that `str` does not write
    **dict.fromkeys(("edits_on", "prompt_ids", "hidden"), _write_ids),
    "text": lambda runs: "_".join(map(_write_run, runs)),
}
# A link with only these parameters leaves the text unchanged.
VIEW = (
    *("class", "stop", "tab", "lesson", "challenge", "step", "film", "position", "layer", "head", "shading", "lang"),
    *("edits", "edits_on", "hidden", "attention"),
)


def document_values(document: Generation, params: SamplingParams) -> dict[str, Any]:
    """Return the current text as link values, with `params` as the slider settings.

    The seed is taken from `params`, or else from the last draw, so that continuing from the link repeats that draw.
    Raises ValueError if tokens have been dropped from the text.
    """
    require(not document.dropped, "document.dropped")
    positions = range(document.n_prompt, len(document.ids))
    runs = [(origin, [*run]) for origin, run in groupby(positions, key=document.origin)]
    drawn = [origin.params for origin, _ in runs if origin.params is not None]
    seed = params.seed if params.seed is not None else drawn[-1].seed if drawn else None
    own = replace(params, seed=seed)
    values = {"model": document.loaded.name, **_prompt(document)} | {name: +on for name, on in own.given().items()}
    values["text"] = tuple(
        LinkedRun(
            "sampled",
            count=len(run),
            params=None if origin.params == own else origin.params,
            after_space=bool(origin.held) and run[0] > document.n_prompt,
        )
        if origin.params is not None
        else LinkedRun(origin.kind, ids=tuple(document.ids[position] for position in run))
        for origin, run in runs
    )
    return values


def replay(document: Generation, runs: Sequence[LinkedRun], params: SamplingParams) -> Iterator[Step]:
    """Append the runs to a prompt, reproducing how each was made, and yield the sampled steps.

    params: the link's settings.
    Raises ValueError if an id is unknown or the context is full.
    """
    for run in runs:
        if run.kind == "chosen":
            document.append(*run.ids)
        elif run.kind == "typed":
            document.append_text(run.ids)
        else:
            left = run.count
            document.held = document.held or (" " if run.after_space else "")
            while left > 0:  # a run may continue after an end-of-text token
                document.check_room()
                for step in document.steps(run.params or params, left):
                    left -= 1
                    yield step


def _prompt(document: Generation) -> dict[str, Any]:
    """Return the prompt as text if encoding it gives the same ids, or else as ids."""
    ids = document.ids[: document.n_prompt]
    text = prompt_text(document.tokenizer, ids, document.held_after(document.n_prompt - 1))
    return {"prompt_ids": tuple(ids)} if text is None else {"prompt": text}
