"""Chat templates: Jinja programs, stored with a model, that write the messages of a chat as a text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

import jinja2
import jinja2.ext
import jinja2.sandbox

from gpt.errors import GPTError

MAX_REASON_CHARS = 200


class GenerationTag(jinja2.ext.Extension):
    """The {% generation %} block, which marks text written by the assistant. It renders its content."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: jinja2.parser.Parser) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def raise_exception(message: object) -> None:
    raise GPTError("chat.refused", reason=first_line(message))


def first_line(message: object) -> str:
    return str(message).strip().partition("\n")[0][:MAX_REASON_CHARS]


def tojson(value: object, ensure_ascii: bool = False, **options: Any) -> str:
    """Convert a value to JSON without escaping HTML, unlike Jinja's own filter."""
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


@lru_cache(maxsize=16)
def compiled(source: str) -> jinja2.Template:
    """Return a template that runs in Jinja's sandbox, as in transformers (utils/chat_template_utils.py)."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(source)


@dataclass(frozen=True)
class ChatTemplate:
    """A Jinja program that converts messages to the text format that a model was trained on."""

    source: str
    tokens: Mapping[str, str] = field(default_factory=dict)

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Render messages up to the assistant's reply. Raises ValueError if the template rejects them or fails."""
        given = {"messages": [dict(message) for message in messages], "tools": None, "documents": None}
        try:
            return compiled(self.source).render(**given, **self.tokens, add_generation_prompt=True)
        except GPTError:
            raise
        except Exception as error:  # a template can raise any exception
            raise GPTError("chat.template", reason=f"{type(error).__name__}: {first_line(error)}") from None
