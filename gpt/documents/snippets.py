"""Generate programs that reproduce a document with this package, or continue it with another engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, get_args

from gpt.documents.edit_text import edits_as_python
from gpt.documents.generation import Generation
from gpt.edits import Edits
from gpt.errors import GPTError, check_choice, require
from gpt.models.loading import LoadedModel
from gpt.models.registry import given_options
from gpt.models.sources import MODELS
from gpt.sampling import SamplingParams
from gpt.tokenizer import prompt_text

Engine = Literal["transformers", "vllm", "llama_cpp", "ctranslate2"]
IMPORTS = {  # what a program may call, by package
    "gpt": ("Edits", "Generation", "SamplingParams", "get_model", "load_model"),
    "gpt.analysis.patching": ("patch_from",),
    "gpt.analysis.predictions": ("kl_bits",),
}


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
    require(not document.dropped, "document.dropped")
    edits, trial_edits, n_prompt = document.edits or Edits(), trial_edits or Edits(), document.n_prompt
    positions = range(n_prompt, len(document.ids))
    prompt = tokens_as_python(document, range(n_prompt))
    edits_argument = "" if edits == Edits() else f", edits={edits_as_python(edits)}"
    lines = [loading_line(document.loaded), f"document = Generation(loaded, {prompt}{edits_argument})"]
    written = None
    for origin, run in groupby(positions, key=document.origin):
        places = [*run]
        if origin.params is not None:
            lines += [f"params = {params_as_python(origin.params)}"] if origin.params != written else []
            lines += [f"for _ in range({len(places)}):", "    document.step(params)"]
            written = origin.params
        elif origin.kind == "typed":
            lines.append(f"document.append_text({tokens_as_python(document, range(places[0], places[-1] + 1))})")
        else:
            ids = [document.ids[position] for position in places]
            lines += [f"document.append({token_id})  # {document.tokenizer.decode([token_id])!r}" for token_id in ids]
    lines += ["print(document.text)"]
    if hidden:
        lines += ["", "# The likeliest next token if some words are hidden from the model."]
        lines += [f"visible = document.without({hidden!r})", "visible.read()"]
        lines += ["print(loaded.tokenizer.decode([int(visible.logits(visible.n_read - 1).argmax())]))"]
    if trial_edits != Edits():
        prompt = repr(list(trial_ids)) if trial_ids else prompt
        lines += ["", "# With edits, which do not change the model itself.", f"edits = {edits_as_python(trial_edits)}"]
        lines += [f"edited = Generation(loaded, {prompt}, edits=edits)"]
        lines += [] if written else [f"params = {params_as_python(SamplingParams(temperature=0.8, seed=1))}"]
        lines += [f"for step in edited.steps(params, {max(20, len(positions))}):", "    pass", "print(edited.text)"]
    return with_imports(lines)


def with_imports(lines: Sequence[str]) -> str:
    """Return a program that consists of these lines and the imports that they need."""
    body = "\n".join(lines)
    imports = ["import torch", ""] if "torch." in body else []
    for package, names in IMPORTS.items():
        if used := [name for name in names if f"{name}(" in body]:
            imports.append(f"from {package} import {', '.join(used)}")
    return "\n".join([*imports, "", body, ""])


def loading_line(loaded: LoadedModel) -> str:
    if loaded.name in MODELS and loaded.precision == "fp32":
        return f"loaded = get_model({loaded.name!r})"
    options = "" if loaded.precision == "fp32" else f", precision={loaded.precision!r}"
    options += "".join(f", {name}={value!r}" for name, value in given_options(loaded.name).items())
    found = loaded.name in MODELS or "/" in loaded.name or Path(loaded.name).exists()
    hint = "" if found else "  # the path of that checkpoint"
    return f"loaded = load_model({loaded.name!r}{options}){hint}"


def tokens_as_python(document: Generation, positions: range) -> str:
    """Return these tokens as a Python literal: a string if it encodes to the same ids, else a list of ids."""
    ids = document.ids[positions.start : positions.stop]
    held = document.held_after(positions.stop - 1)
    text = prompt_text(document.tokenizer, ids, held, follows=positions.start > 0)
    return repr(ids if text is None else text)


def params_as_python(params: SamplingParams) -> str:
    return f"SamplingParams({as_arguments(params.given())})"


def as_arguments(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def engine_snippet(engine: str, ids: Sequence[int], params: SamplingParams, max_new_tokens: int) -> str:
    """Return a program, or for llama.cpp a request to its server, that continues a text with the same distribution.

    The draws themselves differ, because every engine has its own random numbers. Engines differ in their defaults,
    orders and windows, so that equally named settings often mean something else: see docs/sampling.md.

    engine: one of Engine. Raises ValueError if it cannot compute this distribution; the message names the setting.
    """
    check_choice("engine", engine, get_args(Engine))
    cuts = [name for name in ("top_p", "min_p") if getattr(params, name) not in (None, {"top_p": 1, "min_p": 0}[name])]
    last = params.temperature_last and bool(cuts) and params.temperature not in (0, 1)  # top-k alone commutes with it
    penalty = params.repetition_penalty if params.repetition_penalty != 1 else None
    windowed = penalty is not None and params.repetition_window is not None
    impossible = {
        "transformers": {"repetition_window": windowed},
        "vllm": {"repetition_window": windowed, "temperature_last": last, "top_p + min_p": len(cuts) == 2},
        "llama_cpp": {},
        # CTranslate2 leaves the prompt out of the penalty. vLLM applies min-p before top-p.
        "ctranslate2": {"repetition_penalty": penalty is not None, "temperature_last": last, "min_p": "min_p" in cuts},
    }[engine]
    for name, is_met in impossible.items():
        if is_met and not (params.temperature == 0 and "repetition" not in name):
            raise GPTError("snippet.engine", engine=engine, name=name)
    seed = {} if params.seed is None else {"seed": params.seed}
    shared: dict[str, Any] = {"temperature": params.temperature, "top_k": params.top_k or 0}
    shared |= {"top_p": params.top_p or 1.0, "min_p": params.min_p or 0.0}
    if engine == "llama_cpp":
        cut = ["top_k", "top_p", "min_p"]
        samplers = ["penalties", *([*cut, "temperature"] if params.temperature_last else ["temperature", *cut])]
        window = params.repetition_window or max(4096, len(ids) + max_new_tokens)
        request: dict[str, Any] = {"prompt": [*ids], "n_predict": max_new_tokens, "samplers": samplers, **shared}
        request |= {"repeat_penalty": penalty or 1.0, "repeat_last_n": window}
        return json.dumps(request | seed) + "\n"
    if engine == "vllm":
        shared |= {"repetition_penalty": penalty or 1.0, "max_tokens": max_new_tokens} | seed
        return f"""from vllm import LLM, SamplingParams

params = SamplingParams({as_arguments(shared)})
outputs = LLM("path/to/model").generate({{"prompt_token_ids": {[*ids]!r}}}, params)
print(outputs[0].outputs[0].text)
"""
    if engine == "ctranslate2":
        top_k = 1 if params.temperature == 0 else params.top_k or 0  # 1 is its default
        settings: dict[str, Any] = {"max_length": max_new_tokens, "sampling_topk": top_k}
        settings |= {"sampling_topp": params.top_p or 1.0}
        settings |= {"sampling_temperature": params.temperature or 1.0, "include_prompt_in_result": False}
        return f"""import ctranslate2
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("path/to/model")
tokens = tokenizer.convert_ids_to_tokens({[*ids]!r})
results = ctranslate2.Generator("path/to/converted-model").generate_batch([tokens], {as_arguments(settings)})
print(tokenizer.decode(results[0].sequences_ids[0]))
"""
    options: dict[str, Any] = {"max_new_tokens": max_new_tokens, "do_sample": params.temperature != 0}
    options |= {"repetition_penalty": penalty or 1.0}
    arguments, seeding = "", "" if params.seed is None else f"torch.manual_seed({params.seed})\n"
    if last:
        order = [name for name in ("top_k", *cuts, "temperature") if getattr(params, name) is not None]
        classes = [f"transformers.{name.title().replace('_', '')}LogitsWarper" for name in order]
        warpers = ", ".join(f"{each}({getattr(params, name)!r})" for each, name in zip(classes, order, strict=True))
        arguments = f", logits_processor=transformers.LogitsProcessorList([{warpers}])"
        options |= {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
    elif options["do_sample"]:
        options |= {name: value for name, value in shared.items() if name != "min_p" or value}
    return f"""import torch
import transformers

ids = torch.tensor([{[*ids]!r}])
{seeding}model = transformers.AutoModelForCausalLM.from_pretrained("path/to/model")
written = model.generate(ids, attention_mask=ids * 0 + 1, {as_arguments(options)}{arguments})
print(written[0].tolist())
"""
