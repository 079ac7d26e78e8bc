"""Structured logs: one line of JSON per server event, without visitors' texts.

Modules log with `logging.getLogger(__name__)`; the message names the event, and `extra={"fields": {...}}` contains its
values. Exceptions are logged by type and location, because their messages may quote a visitor.
"""

from __future__ import annotations

import json
import logging
import traceback
from datetime import datetime, timezone
from pathlib import Path

import gpt.errors

FOLDERS = (Path(gpt.errors.__file__).parent, Path(__file__).parent)
LOGGERS = ("app", __name__.rpartition(".")[0], gpt.errors.__name__.rpartition(".")[0])


class JSONLines(logging.Formatter):
    """Formats a record as {"time", "level", "event", ...}, followed by the event's fields."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname.lower(), "event": record.getMessage()}
        return json.dumps(line | getattr(record, "fields", {}))


def start_logging() -> None:
    """Write events from LOGGERS to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JSONLines())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)


def place_of(problem: BaseException) -> str:
    """Return the file and line in this program that raised an exception, as "gpt/model.py:12"; "" if there is none."""
    places = [
        f"{path.relative_to(folder.parent).as_posix()}:{frame.lineno}"
        for frame in traceback.extract_tb(problem.__traceback__)
        for folder in FOLDERS
        if (path := Path(frame.filename)).is_relative_to(folder)
    ]
    return places[-1] if places else ""
