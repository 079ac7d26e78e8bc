"""The comparison of the Change tab as a Python program that needs nothing but this package."""

from __future__ import annotations

from components.tabs.change.memory import Memory
from gpt import SamplingParams, Tokenizer
from gpt.documents.edit_text import edits_as_python
from gpt.documents.snippets import loading_line, params_as_python

LENGTH = 40  # tokens, before anything was generated here
DEFAULT = SamplingParams(temperature=0.8, seed=1)


def program(memory: Memory) -> str:
    """It writes the text with the original and with the changed model, and prints how far their predictions of the
    original's text lie apart. On the same kind of machine the texts are those on the screen."""
    text, written = memory.text, memory.written
    loaded, edits = text.loaded, memory.edits
    load, loading = loading_line(loaded)
    params, length = (written.params, written.length) if written else (DEFAULT, LENGTH)
    lines = [
        "import torch",
        "",
        f"from gpt import Edits, Generation, SamplingParams, {load}",
        "from gpt.analysis.predictions import kl_bits",
    ]
    lines += ["from gpt.analysis.patching import patch_from"] if edits.patches else []
    lines += ["", loading]
    lines += [
        f"prompt = {quoted_ids(loaded.tokenizer, text.ids[: text.n_prompt])}",
        f"params = {params_as_python(params)}",
    ]
    lines += [
        *(f"# patched from the text {loaded.tokenizer.decode(list(patch.ids))!r}" for patch in edits.patches),
        f"edits = {edits_as_python(edits)}",
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
