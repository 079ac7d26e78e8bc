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

ROOT = Path(__file__).parents[1]
LOGGERS = ("app", "components", "gpt")


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
    """File and line of this program, relative to its folder, in which an exception was raised; "" for none."""
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if is_own(Path(frame.filename))]
    return f"{Path(frames[-1].filename).relative_to(ROOT).as_posix()}:{frames[-1].lineno}" if frames else ""


def is_own(path: Path) -> bool:
    """Whether a file belongs to this program."""
    return path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0].removesuffix(".py") in LOGGERS
