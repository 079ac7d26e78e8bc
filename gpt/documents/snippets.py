"""Generate Python programs that reproduce a document with this package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import groupby
from pathlib import Path

from gpt.documents.document import Origin
from gpt.documents.edit_text import edits_as_python
from gpt.documents.generation import Generation
from gpt.edits import Edits
from gpt.models.loading import LoadedModel
from gpt.models.registry import given_options
from gpt.models.sources import MODELS
from gpt.sampling import SamplingParams
from gpt.tokenizer import continuation_text, prompt_text


def python_snippet(
    document: Generation,
    trial_edits: Edits | None = None,
    trial_ids: Sequence[int] = (),
    hidden: Sequence[int] = (),
) -> str:
    """Return a program that reproduces the current text from its model, prompt, settings, seeds and chosen tokens.

    The program loads an unlisted model from its path. trial_edits: edits for a second text, which is generated from the
    tokens `trial_ids` or, if there are none, from the prompt. hidden: positions of tokens; the program also predicts
    the next token without them. Raises ValueError for a patch without ids or a text with dropped tokens.
    """
    document.check_whole()
    edits, trial_edits = document.edits or Edits(), trial_edits or Edits()
    changed, has_trial = edits != Edits(), trial_edits != Edits()
    n_prompt = document.n_prompt
    positions = range(n_prompt, len(document.ids))
    runs = [(origin, list(run)) for origin, run in groupby(positions, key=document.origin)]
    needed = {"Edits": changed or has_trial, "SamplingParams": has_trial or any(origin.params for origin, _ in runs)}
    names = {"Generation", *(name for name in needed if needed[name])}
    loaded = document.loaded
    load, loading = loading_line(loaded)
    edits_argument = f", edits={edits_as_python(edits)}" if changed else ""
    lines = [
        f"from gpt import {', '.join(sorted({*names, load}))}",
        *(["from gpt.analysis.patching import patch_from"] if edits.patches or trial_edits.patches else []),
        "",
        loading,
        f"document = Generation(loaded, {tokens_as_python(document, range(n_prompt), prompt=True)}{edits_argument})",
    ]
    written = None
    for origin, run in runs:
        if origin.params is not None and origin.params != written:
            lines.append(f"params = {params_as_python(origin.params)}")
            written = origin.params
        lines += run_lines(document, origin, run)
    lines += ["print(document.text)"]
    if hidden:
        lines += ["", "# The likeliest next token if some words are hidden from the model."]
        lines += [f"visible = document.without({hidden!r})", "visible.read()"]
        lines += ["print(loaded.tokenizer.decode([int(visible.logits(visible.n_read - 1).argmax())]))"]
    if has_trial:
        prompt = tokens_as_python(document, range(n_prompt), prompt=True) if not trial_ids else repr(list(trial_ids))
        lines += ["", "# With edits, which do not change the model itself.", f"edits = {edits_as_python(trial_edits)}"]
        lines += [f"edited = Generation(loaded, {prompt}, edits=edits)"]
        lines += [] if written else [f"params = {params_as_python(SamplingParams(temperature=0.8, seed=1))}"]
        lines += [f"for step in edited.steps(params, {max(20, len(positions))}):", "    pass", "print(edited.text)"]
    return "\n".join([*lines, ""])


def loading_line(loaded: LoadedModel) -> tuple[str, str]:
    """Return the name to import from gpt and the line that loads the model."""
    if loaded.name in MODELS and loaded.precision == "fp32":
        return "get_model", f"loaded = get_model({loaded.name!r})"
    options = "" if loaded.precision == "fp32" else f", precision={loaded.precision!r}"
    options += "".join(f", {name}={value!r}" for name, value in given_options(loaded.name).items())
    found = loaded.name in MODELS or "/" in loaded.name or Path(loaded.name).exists()
    hint = "" if found else "  # the path of that checkpoint"
    return "load_model", f"loaded = load_model({loaded.name!r}{options}){hint}"


def run_lines(document: Generation, origin: Origin, run: list[int]) -> list[str]:
    """Return the lines that append a run of tokens with the same origin."""
    if origin.kind == "sampled":
        return [f"for _ in range({len(run)}):", "    document.step(params)"]
    if origin.kind == "typed":
        return [f"document.append_text({tokens_as_python(document, range(run[0], run[-1] + 1))})"]
    return [
        f"document.append({document.ids[position]})  # {document.tokenizer.decode([document.ids[position]])!r}"
        for position in run
    ]


def tokens_as_python(document: Generation, positions: range, *, prompt: bool = False) -> str:
    """Return these tokens as a Python literal: a string if it encodes to the same ids, else a list of ids."""
    ids = document.ids[positions.start : positions.stop]
    held = document.held_after(positions.stop - 1)
    text = (prompt_text if prompt else continuation_text)(document.tokenizer, ids, held)
    return repr(ids if text is None else text)


def params_as_python(params: SamplingParams) -> str:
    """Return the settings that are not None as Python code."""
    values = {field.name: getattr(params, field.name) for field in fields(params)}
    parts = [f"{name}={value!r}" for name, value in values.items() if value is not None]
    return f"SamplingParams({', '.join(parts)})"
