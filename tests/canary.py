"""Canaries: tests that say when something that gradio lacks need not be made up for any more."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import gradio as gr
from playwright.sync_api import TimeoutError as TimedOut


@contextmanager
def lacking(lack: str, workaround: str) -> Iterator[None]:
    """What is asserted inside holds while gradio lacks something; where it fails, warn that the workaround may go.

    A suite is not to fail because gradio has improved, so nothing that a person needs belongs inside.
    """
    try:
        yield
    except (AssertionError, TimedOut):
        warnings.warn(
            f"gradio {gr.__version__}: no longer true that {lack}. See whether {workaround} can go.", stacklevel=3
        )
