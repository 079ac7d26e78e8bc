"""Canaries: tests that tell when a Gradio workaround is no longer needed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import gradio as gr
from playwright.sync_api import TimeoutError as TimedOut


@contextmanager
def lacking(lack: str, workaround: str) -> Iterator[None]:
    """Assert inside the block what Gradio lacks. If an assertion fails, warn that the workaround may go.

    A Gradio improvement must not fail the suite, so never assert inside the block what users need.
    """
    try:
        yield
    except (AssertionError, TimedOut):
        warnings.warn(
            f"gradio {gr.__version__}: no longer true that {lack}. See whether {workaround} can go.", stacklevel=3
        )
