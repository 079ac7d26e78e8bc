"""Export the comparison in the "Change it" tab as a Python program."""

from __future__ import annotations

from components.tabs.change.effect import ReadText
from gpt import Edits, SamplingParams
from gpt.documents.edit_text import edits_as_python
from gpt.documents.snippets import loading_line, params_as_python
from gpt.tokenizer import Vocabulary, prompt_text

DEFAULT_LENGTH = 40  # new tokens if the visitor has not generated any texts yet
DEFAULT_PARAMS = SamplingParams(temperature=0.8, seed=1)


def program(text: ReadText, edits: Edits, params: SamplingParams, length: int) -> str:
    """Return a program that generates the text with and without the edits and prints how the predictions diverge.

    Concepts that are turned up are part of both. On the same type of machine, the program reproduces the texts on the
    page.
    """
    loaded, edits, prompt = text.loaded, text.with_turned(edits), text.ids[: text.n_prompt]
    load, loading = loading_line(loaded)
    original = "" if text.turned == Edits() else f", edits={edits_as_python(text.turned)}"
    imports = ["from gpt.analysis.patching import patch_from"] if edits.patches else []
    patched = [f"# patched from the text {loaded.tokenizer.decode(list(patch.ids or ()))!r}" for patch in edits.patches]
    lines = [
        "import torch",
        "",
        f"from gpt import Edits, Generation, SamplingParams, {load}",
        "from gpt.analysis.predictions import kl_bits",
        *imports,
        "",
        loading,
        f"prompt = {prompt_as_python(loaded.tokenizer, prompt, text.prompt_held)}",
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
    return "\n".join([*lines, ""])


def prompt_as_python(tokenizer: Vocabulary, ids: tuple[int, ...], held: str) -> str:
    """Return a string literal that encodes to these ids or, failing that, a list of ids.

    held: white space typed after them.
    """
    text = prompt_text(tokenizer, ids, held)
    return repr(text or list(ids))
