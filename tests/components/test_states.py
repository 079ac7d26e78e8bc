"""What every visitor costs before doing anything: gradio looks at all components, and copies dataclasses whole."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import gradio as gr
import torch

from gpt import Generation


def heavy(value: object) -> bool:
    """Whether `dataclasses.asdict` would copy a model, a document or a tensor."""
    if is_dataclass(value):
        return any(heavy(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, (list, tuple, set)):
        return any(map(heavy, value))
    if isinstance(value, dict):
        return any(map(heavy, value.values()))
    return isinstance(value, (torch.nn.Module, torch.Tensor, Generation))


def test_no_state_holds_what_gradio_would_copy_for_every_visitor(built_page: gr.Blocks) -> None:
    states = [block.value for block in built_page.blocks.values() if isinstance(block, gr.State)]
    assert states
    assert [type(value) for value in states if is_dataclass(value) and heavy(value)] == []
