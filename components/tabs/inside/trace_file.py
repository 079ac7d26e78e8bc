"""Every number of the text as a file: what a pass through the model leaves behind, for numpy."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.utils import get_upload_folder

from components.i18n import Language, t
from components.legacy import LOOKING, Playground
from components.localized import Words
from components.widgets.sentence import sentence
from gpt import Generation
from gpt.analysis.tracing import trace_window
from gpt.models.memory import format_bytes

LARGEST = 2**26  # bytes of the file; of a longer text only its end
_FETCH = "() => { document.querySelector('#trace-file a, #trace-file button')?.click(); }"


def build_trace_file(words: Words, playground: Playground) -> None:
    """A quiet button; the file is made when it is pressed."""
    with gr.Row(elem_classes="gb-trace-file"):
        button = words.build(gr.Button, {"value": "trace.save"}, size="sm", min_width=0, elem_id="trace-save")
        said = sentence(kind="caption", elem_id="trace-said")
        file = gr.DownloadButton(elem_id="trace-file", elem_classes="gb-hidden")

    def save(values: dict[Any, Any]) -> dict[Any, Any]:
        document, language = values[playground.session].document, values[playground.frame.language]
        if document is None or document.n_read == 0:
            return {said: t("error.no_text", language)}
        path, says = save_trace(document, language)
        return {file: path, said: says}

    pressed = button.click(save, {playground.session, playground.frame.language}, [file, said], **LOOKING)
    pressed.success(None, None, None, js=_FETCH)


def save_trace(document: Generation, language: Language) -> tuple[str, str]:
    """Every number of the text as an .npz file, or of as much of its end as is allowed: (path, what is said of it)."""
    config, n = document.loaded.model.config, document.n_read
    each = 4 * config.n_layer * (8 * config.n_embd + 2 * config.ff_size + config.n_head * n)
    start = max(0, n - max(1, LARGEST // each))
    trace = trace_window(document.loaded.model, tuple(document.ids[:n]), start, n, document.edits)
    cache = Path(get_upload_folder())
    cache.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(dir=cache)) / "trace.npz"
    trace.save(path)
    size = format_bytes(path.stat().st_size)
    return str(path), t("trace.saved", language, first=start, last=n - 1, size=size)
