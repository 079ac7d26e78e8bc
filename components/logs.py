"""Structured logs: one JSON object a line for each event of the server, without what visitors write.

Modules log with `logging.getLogger(__name__)`: the message is the kind of event, `extra={"fields": {...}}` its values.
An exception is logged by its type and its place: its message may quote a visitor.
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
    """{"time", "level", "event", ...}: the fields of the event follow."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname.lower(), "event": record.getMessage()}
        return json.dumps(line | getattr(record, "fields", {}))


def start_logging() -> None:
    """Write the events of LOGGERS to the standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JSONLines())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)


def place_of(problem: BaseException) -> str:
    """File and line of this program in which an exception was raised, as "gpt/model.py:12"; "" for none."""
    places = [
        f"{path.relative_to(folder.parent).as_posix()}:{frame.lineno}"
        for frame in traceback.extract_tb(problem.__traceback__)
        for folder in FOLDERS
        if (path := Path(frame.filename)).is_relative_to(folder)
    ]
    return places[-1] if places else ""
