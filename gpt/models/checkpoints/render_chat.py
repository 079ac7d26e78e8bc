"""Render a chat template in a separate process with limited resources. `chat_template.py` runs this program.

Reads JSON from standard input, {"template", "messages", "variables"}, and writes {"text"}, {"refused": reason} or
{"error": reason}. Like transformers (utils/chat_template_utils.py), it runs templates in Jinja's sandbox. Arguments:
folders with jinja2 and markupsafe, limits on CPU time (seconds), memory (bytes) and length of the text (characters).
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from datetime import datetime
from typing import Any

with suppress(ImportError):  # not on Windows
    import resource


def limit_resources(seconds: int, n_bytes: int) -> None:
    """Limit this process's CPU time in seconds and its memory in bytes, and prevent it from writing files."""
    if "resource" in globals():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        with suppress(OSError, ValueError):  # macOS
            resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))


def render(request: dict[str, Any], max_chars: int) -> dict[str, Any]:
    """Return the rendered messages, or the reason why they cannot be rendered."""
    import jinja2  # noqa: PLC0415 - its folder is a command-line argument
    import jinja2.ext  # noqa: PLC0415
    import jinja2.sandbox  # noqa: PLC0415

    class Refused(jinja2.TemplateError):
        """Raised when the template calls raise_exception."""

    def raise_exception(message: object) -> None:
        raise Refused(str(message))

    def tojson(
        value: object,
        ensure_ascii: bool = False,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:
        """Convert a value to JSON without escaping HTML, unlike Jinja's own filter."""
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    class Generation(jinja2.ext.Extension):
        """The {% generation %} block, which marks text written by the assistant. It renders its content."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: jinja2.parser.Parser) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    class Dict:
        """Replacement for dict that does not expose the attributes of the class."""

        def __call__(self, *args: Any, **values: Any) -> dict[Any, Any]:
            return dict(*args, **values)

    class Namespace(jinja2.utils.Namespace):
        """A namespace that rejects attribute names with a leading underscore, which Python uses internally."""

        def __setitem__(self, name: str, value: Any) -> None:
            if str(name).startswith("_"):
                raise jinja2.exceptions.SecurityError(f"a namespace cannot have an attribute {name!r}")
            super().__setitem__(name, value)

    def namespace(*args: Any, **values: Any) -> Namespace:
        made = Namespace()
        for name, value in dict(*args, **values).items():
            made[name] = value
        return made

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals = {
        "range": environment.globals["range"],
        "dict": Dict(),
        "namespace": namespace,
        "raise_exception": raise_exception,
        "strftime_now": lambda format: datetime.now().strftime(format),
    }
    try:
        template = environment.from_string(request["template"])
        text = template.render(messages=request["messages"], tools=None, documents=None, **request["variables"])
    except Refused as error:
        return {"refused": str(error)}
    except MemoryError:
        return {"error": "memory"}
    except Exception as error:  # a template can raise any exception
        return {"error": f"{type(error).__name__}: {error}"}
    return {"text": text} if len(text) <= max_chars else {"error": "length"}


def main(arguments: list[str]) -> None:
    """Read one request from standard input and write the response."""
    *folders, seconds, n_bytes, max_chars = arguments
    sys.path += folders
    request = json.load(sys.stdin)
    limit_resources(int(seconds), int(n_bytes))
    json.dump(render(request, int(max_chars)), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
