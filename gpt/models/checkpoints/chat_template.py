"""Chat templates: Jinja programs that convert messages to the text format that a model was trained on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
import markupsafe

from gpt.errors import GPTError
from gpt.models.checkpoints.untrusted import read_text

TEMPLATE_FILE = "chat_template.jinja"
TEMPLATE_KEY = "chat_template"  # in tokenizer_config.json
PROGRAM = Path(__file__).with_name("render_chat.py")
FOLDERS = tuple(str(Path(str(package.__file__)).parent.parent) for package in (jinja2, markupsafe))
MAX_CPU_SECONDS, MAX_SECONDS = 1, 30
MAX_BYTES = 256 * 2**20
MAX_TEMPLATE_CHARS, MAX_TEXT_CHARS = 200_000, 1_000_000
MAX_REASON_CHARS = 200


@dataclass(frozen=True)
class ChatTemplate:
    """An untrusted chat template. tokens: names of the control tokens that it may use, by role."""

    source: str
    tokens: Mapping[str, str] = field(default_factory=dict)

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Render messages up to the start of the assistant's reply.

        The template runs in another process, with limits on time and memory. Raises ValueError if it rejects the
        messages, fails, or exceeds a limit.
        """
        if len(self.source) > MAX_TEMPLATE_CHARS:
            raise GPTError("chat.template_length", n=len(self.source), limit=MAX_TEMPLATE_CHARS)
        request = {
            "template": self.source,
            "messages": [dict(message) for message in messages],
            "variables": {**self.tokens, "add_generation_prompt": True},
        }
        answer = ask(json.dumps(request))
        if "refused" in answer:
            raise GPTError("chat.refused", reason=short(answer["refused"]))
        if "error" in answer:
            limits = {
                "time": GPTError("chat.time"),
                "memory": GPTError("chat.memory"),
                "length": GPTError("chat.length"),
            }
            raise limits.get(answer["error"]) or GPTError("chat.template", reason=short(answer["error"]))
        return answer["text"]


def ask(request: str) -> dict[str, Any]:
    """Run `render_chat.py` and return its response, or {"error": "time"} if it takes too long."""
    limits = map(str, (MAX_CPU_SECONDS, MAX_BYTES, MAX_TEXT_CHARS))
    command = [sys.executable, "-I", "-S", str(PROGRAM), *FOLDERS, *limits]
    try:
        done = subprocess.run(
            command, input=request.encode(), capture_output=True, timeout=MAX_SECONDS, env={}, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": "time"}
    if done.returncode < 0:  # killed by the CPU time limit
        return {"error": "time"}
    try:
        return json.loads(done.stdout)
    except ValueError:  # out of memory while writing the response
        return {"error": "memory"}


def short(reason: object) -> str:
    """Return the first line of a reason, truncated to MAX_REASON_CHARS."""
    return str(reason).strip().partition("\n")[0][:MAX_REASON_CHARS]


def read_chat_template(folder: Path, config: Mapping[str, Any], tokens: Mapping[str, str]) -> ChatTemplate | None:
    """Read the template from chat_template.jinja or else from `config`, the contents of tokenizer_config.json.

    If there are several templates, uses the one named "default". Returns None if there is no template.
    """
    if (folder / TEMPLATE_FILE).is_file():
        return ChatTemplate(read_text(folder / TEMPLATE_FILE), tokens)
    found = config.get(TEMPLATE_KEY)
    if isinstance(found, list):
        named = [each for each in found if isinstance(each, dict) and each.get("name") == "default"]
        found = named[0].get("template") if named else None
    return ChatTemplate(found, tokens) if isinstance(found, str) and found else None
