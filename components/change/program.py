"""The comparison of the Change tab as a Python program that needs nothing but this package."""

from __future__ import annotations

from dataclasses import replace

from components.change.memory import Memory
from gpt import SamplingParams, Tokenizer
from gpt.documents.edit_text import edits_as_python
from gpt.documents.snippets import settings
from gpt.registry import MODELS

LENGTH = 40  # tokens, before anything was generated here
DEFAULT = SamplingParams(temperature=0.8, seed=1)


def program(memory: Memory) -> str:
    """It writes the text with the original and with the changed model, and prints how far their predictions of the
    original's text lie apart. On the same kind of machine the texts are those on the screen."""
    text, written = memory.text, memory.written
    loaded, patched = text.loaded, memory.patched
    known = loaded.name in MODELS and loaded.precision == "fp32"
    load = "get_model" if known else "load_model"
    precision = "" if loaded.precision == "fp32" else f", precision={loaded.precision!r}"
    params, length = (written.params, written.length) if written else (DEFAULT, LENGTH)
    edits = edits_as_python(replace(memory.edits, patches=()))
    lines = [
        "import torch",
        "",
        f"from gpt import Edits, Generation, SamplingParams, {load}",
        "from gpt.analysis import kl_bits" + (", trace_text" if patched else ""),
    ]
    lines += ["from gpt.edits import Patch"] if patched else []
    lines += ["", f"loaded = {load}({loaded.name!r}{precision})"]
    lines += [f"prompt = {quoted_ids(loaded.tokenizer, text.ids[: text.n_prompt])}", f"params = {settings(params)}"]
    if patched:
        lines += [
            f"clean = {list(patched.ids)!r}  # {loaded.tokenizer.decode(list(patched.ids))!r}",
            f"value = trace_text(loaded.model, clean).layers[{patched.layer}].{patched.name}[0, {patched.position}]",
            f"patch = Patch({patched.name!r}, {patched.layer}, {patched.position}, value)",
        ]
        inside = edits.removeprefix("Edits(").removesuffix(")")
        edits = f"Edits({inside}{', ' if inside else ''}patches=(patch,))"
    lines += [
        f"edits = {edits}",
        "",
        "original, edited = Generation(loaded, prompt), Generation(loaded, prompt, edits=edits)",
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
    return "\n".join([*lines, ""])


def quoted_ids(tokenizer: Tokenizer, ids: tuple[int, ...]) -> str:
    """These ids as a text in quotes where encoding it gives them back, else as a list."""
    try:
        text = tokenizer.decode(list(ids))
        same = bool(ids) and tokenizer.encode(text) == list(ids)
    except ValueError:  # bytes that are no text, or a character that this vocabulary lacks
        same = False
    return repr(text) if same else repr(list(ids))
