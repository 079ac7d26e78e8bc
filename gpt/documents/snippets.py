"""A document as a Python program that writes it again, with nothing but this package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import groupby
from pathlib import Path

from gpt.documents.branches import Origin
from gpt.documents.edit_text import edits_as_python
from gpt.documents.generation import Generation
from gpt.edits import Edits
from gpt.models.loading import LoadedModel
from gpt.models.registry import given_heads
from gpt.models.sources import MODELS
from gpt.sampling import SamplingParams


def python_snippet(document: Generation, tried: Edits | None = None, tried_on: Sequence[int] = ()) -> str:
    """The program that makes the current text: same model, prompt, settings, seeds, and choices by hand.

    It prints the text. A model that is no name of the list is loaded by its path. On the same kind of machine the
    text is the same. tried: edits with which the program then writes on from the prompt, or from the tokens `tried_on`.
    Raises ValueError for patched activations that are from no text.
    """
    edits, tried = document.edits or Edits(), tried or Edits()
    changed, trying = edits != Edits(), tried != Edits()
    n_prompt = document.n_prompt
    positions = range(n_prompt, len(document.ids))
    runs = [(origin, list(run)) for origin, run in groupby(positions, key=document.origin)]
    needed = {"Edits": changed or trying, "SamplingParams": trying or any(origin.params for origin, _ in runs)}
    names = {"Generation", *(name for name in needed if needed[name])}
    loaded = document.loaded
    load, loading = loading_line(loaded)
    told_edits = f", edits={edits_as_python(edits)}" if changed else ""
    lines = [
        f"from gpt import {', '.join(sorted({*names, load}))}",
        *(["from gpt.analysis.patching import patch_from"] if edits.patches or tried.patches else []),
        "",
        loading,
        f"document = Generation(loaded, {source(document, range(n_prompt), prompt=True)}{told_edits})",
    ]
    written = None
    for origin, run in runs:
        if origin.params is not None and origin.params != written:
            lines.append(f"params = {settings(origin.params)}")
            written = origin.params
        lines += told(document, origin, run)
    lines += ["print(document.text)"]
    if trying:
        prompt = source(document, range(n_prompt), prompt=True) if not tried_on else repr(list(tried_on))
        lines += ["", "# The model changed for this text alone.", f"edits = {edits_as_python(tried)}"]
        lines += [f"edited = Generation(loaded, {prompt}, edits=edits)"]
        lines += [] if written else [f"params = {settings(SamplingParams(temperature=0.8, seed=1))}"]
        lines += [f"for step in edited.steps(params, {max(20, len(positions))}):", "    pass", "print(edited.text)"]
    return "\n".join([*lines, ""])


def loading_line(loaded: LoadedModel) -> tuple[str, str]:
    """What is to be imported to load a model, and the line that loads it."""
    if loaded.name in MODELS and loaded.precision == "fp32":
        return "get_model", f"loaded = get_model({loaded.name!r})"
    heads = given_heads(loaded.name)
    options = "" if loaded.precision == "fp32" else f", precision={loaded.precision!r}"
    options += "" if heads is None else f", n_head={heads}"
    found = loaded.name in MODELS or "/" in loaded.name or Path(loaded.name).exists()
    hint = "" if found else "  # the path of that checkpoint"
    return "load_model", f"loaded = load_model({loaded.name!r}{options}){hint}"


def told(document: Generation, origin: Origin, run: list[int]) -> list[str]:
    """The lines that add a run of tokens of one origin."""
    if origin.how == "sampled":
        return [f"for _ in range({len(run)}):", "    document.step(params)"]
    if origin.how == "typed":
        return [f"document.append_text({source(document, range(run[0], run[-1] + 1))})"]
    return [
        f"document.append({document.ids[position]})  # {document.tokenizer.decode([document.ids[position]])!r}"
        for position in run
    ]


def source(document: Generation, positions: range, *, prompt: bool = False) -> str:
    """These tokens as a text in quotes, where encoding it gives them back, else as a list of ids."""
    ids = document.ids[positions.start : positions.stop]
    if prompt and ids == [document.tokenizer.eot_id]:
        return '""'
    try:
        text = document.tokenizer.decode(ids)
        same = document.tokenizer.encode(text) == ids
    except ValueError:  # bytes that are no text, or a character that this vocabulary lacks
        same = False
    return repr(text) if same else repr(ids)


def settings(params: SamplingParams) -> str:
    """The settings as Python; those that are off are left out."""
    given = {field.name: getattr(params, field.name) for field in fields(params)}
    parts = [f"{name}={value!r}" for name, value in given.items() if value is not None]
    return f"SamplingParams({', '.join(parts)})"
