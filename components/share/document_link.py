"""A document as link values (the prompt and each later token's origin), and the replay of such a link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from components.share.link import LinkedRun
from components.state.settings import LIMITS
from gpt import Generation, SamplingParams, Step
from gpt.tokenizer import plain_text, prompt_text


def document_values(document: Generation, params: SamplingParams) -> dict[str, Any]:
    """Return the current text as link values, with `params` as the slider settings.

    The seed is taken from `params`, or else from the last draw, so that continuing from the link repeats that draw.

    Raises:
        ValueError: If tokens have been dropped from the text.
    """
    document.check_whole()
    positions = range(document.n_prompt, len(document.ids))
    runs = [(origin, [*run]) for origin, run in groupby(positions, key=document.origin)]
    drawn = [origin.params for origin, _ in runs if origin.params is not None]
    seed = params.seed if params.seed is not None else drawn[-1].seed if drawn else None
    own = replace(params, seed=seed)
    values: dict[str, Any] = {"model": document.loaded.name, **_prompt(document), **settings(params)}
    if seed is not None:
        values["seed"] = seed
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

    Raises:
        ValueError: If an id is unknown or the context is full.
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


def settings(params: SamplingParams) -> dict[str, Any]:
    """Return the enabled settings."""
    return {name: +value for name, value in params.given().items() if name in LIMITS}  # +True is 1


def shown_prompt(document: Generation) -> str:
    ids = document.ids[: document.n_prompt]
    return plain_text(document.tokenizer, ids) + document.held_after(document.n_prompt - 1)


def _prompt(document: Generation) -> dict[str, Any]:
    """Return the prompt as text if encoding it gives the same ids, or else as ids."""
    ids = document.ids[: document.n_prompt]
    text = prompt_text(document.tokenizer, ids, document.held_after(document.n_prompt - 1))
    return {"prompt_ids": tuple(ids)} if text is None else {"prompt": text}
