"""`python deploy/space.py` with a local server in place of the hub."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.balancers import free_ports

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
SPACE, TOKEN = "someone/gpt", "hf_of_someone"
EXPECTED = ("app.py", "gpt/*", "components/*", "requirements.txt", "README.md", "LICENSE")
MAX_FILE_BYTES = 10_000_000  # the hub's limit for files in git


class Hub(ThreadingHTTPServer):
    """A hub with one user. `files` are those of the Space; None before it is created."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] | None = None
        self.settings: list[tuple[str, Any]] = []  # settings in the order they were made
        self.may_write = True
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def reply(self, answer: object, status: int = 200) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        hub, path = self.server, self.path.partition("?")[0]
        if not self.is_known():
            self.reply({"error": "Invalid username or password."}, 401)
        elif path == "/api/whoami-v2":
            self.reply({"type": "user", "name": "someone"})
        elif hub.files is None:
            self.reply({"error": "Repository not found"}, 404)
        elif path.startswith(f"/api/spaces/{SPACE}/tree/"):
            self.reply([{"type": "file", "path": name, "size": 1, "oid": "0" * 40} for name in hub.files])
        else:
            siblings = [{"rfilename": name} for name in hub.files]
            self.reply({"id": SPACE, "sha": "a" * 40, "siblings": siblings})

    def do_POST(self) -> None:
        hub, path = self.server, self.path.partition("?")[0]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.is_known():
            self.reply({"error": "Invalid username or password."}, 401)
        elif not hub.may_write:
            self.reply({"error": "You don't have the rights to create this Space"}, 403)
        elif path == "/api/validate-yaml":
            self.reply({"errors": [], "warnings": []})
        elif path == "/api/repos/create":
            self.create(json.loads(body))
        elif path.endswith("/preupload/main"):
            names = [file["path"] for file in json.loads(body)["files"]]
            self.reply({"files": [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]})
        elif path.endswith("/commit/main"):
            self.commit([json.loads(line) for line in body.splitlines()])
        else:
            self.set(path.rpartition("/")[2], json.loads(body))

    do_PUT = do_POST

    def is_known(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def create(self, asked: dict[str, Any]) -> None:
        hub = self.server
        assert (asked["type"], asked["sdk"], asked["organization"], asked["name"]) == (
            "space",
            "gradio",
            "someone",
            "gpt",
        )
        is_new = hub.files is None
        if is_new:
            hub.files = {".gitattributes": b""}
            # The name depends on the hub's version.
            is_private = asked.get("private") or asked.get("visibility") == "private"
            hub.settings.append(("private", bool(is_private)))
        self.reply({"url": f"{hub.url}/spaces/{SPACE}"}, 200 if is_new else 409)

    def commit(self, operations: list[dict[str, Any]]) -> None:
        hub = self.server
        assert operations[0]["key"] == "header"
        for operation in operations[1:]:
            value = operation["value"]
            if operation["key"] == "deletedFile":
                del hub.files[value["path"]]
            else:
                assert (operation["key"], value["encoding"]) == ("file", "base64")
                hub.files[value["path"]] = base64.b64decode(value["content"])
        hub.settings.append(("commit", operations[0]["value"]["summary"]))
        self.reply({"commitUrl": f"{hub.url}/spaces/{SPACE}/commit/{'a' * 40}", "commitOid": "a" * 40})

    def set(self, kind: str, value: dict[str, Any]) -> None:
        self.server.settings.append((kind, value))
        runtime = {"stage": "BUILDING", "hardware": {"current": None, "requested": value.get("flavor")}}
        answers = {"variables": {value.get("key"): {"value": value.get("value")}}, "hardware": runtime}
        self.reply(answers.get(kind, {}))


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def deploy(hub: Hub, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`deploy(*arguments, **environment)` runs the script."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        own = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HOME": str(tmp_path)}
        command = [sys.executable, ROOT / "deploy" / "space.py", SPACE, *arguments]
        environment = {name: value for name, value in (inherited | own | environment).items() if value}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)

    return run


def tracked_files() -> set[str]:
    """Return the app's files that are tracked by git."""
    git = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name for name in listed.split("\0") if any(fnmatch(name, pattern) for pattern in EXPECTED)}


def test_the_commit_has_the_app_and_nothing_else(hub, deploy):
    done = deploy()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Deployed to {hub.url}/spaces/{SPACE}. The Space is now building.\n"
    assert {*hub.files} == {".gitattributes", *tracked_files()}
    assert all(content == (ROOT / name).read_bytes() for name, content in hub.files.items() if name != ".gitattributes")
    assert max(map(len, hub.files.values())) < MAX_FILE_BYTES
    assert hub.settings == [("private", False), ("commit", "Deploy")]


def test_the_readme_tells_the_hub_how_to_run_the_app():
    front = re.match(r"---\n(.*?)\n---\n", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL).group(1)
    fields = dict(line.split(": ", 1) for line in front.splitlines() if ": " in line)
    assert fields["sdk"] == "gradio"
    assert (ROOT / fields["app_file"]).is_file()
    required = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    least, below = re.search(r"^gradio\[mcp\]>=([\d.]+),<(\d+)$", required, re.MULTILINE).groups()
    version = [int(part) for part in fields["sdk_version"].split(".")]
    assert [*map(int, least.split("."))] <= version < [int(below)]


def test_options_are_set_before_the_files_change(hub, deploy):
    options = ["--hardware", "zero-a10g", "--bucket", "someone/models", "--private", "--secret", "KEY"]
    given = ["--options=--model gpt2 --precision int8", "--variable", "A=b=c", "--message", "New"]
    done = deploy(*options, *given, KEY="hidden")
    assert (done.returncode, done.stderr) == (0, "")
    volume = {"type": "bucket", "source": "someone/models", "mountPath": "/data"}
    assert hub.settings == [
        ("private", True),
        ("volumes", {"volumes": [volume]}),
        ("variables", {"key": "A", "value": "b=c"}),
        ("variables", {"key": "GLASSBOX_OPTIONS", "value": "--model gpt2 --precision int8"}),
        ("variables", {"key": "HF_HOME", "value": "/data/huggingface"}),
        ("secrets", {"key": "KEY", "value": "hidden"}),
        ("hardware", {"flavor": "zero-a10g"}),
        ("commit", "New"),
    ]


def test_a_second_time_what_is_no_longer_there_is_deleted(hub, deploy):
    hub.files = {".gitattributes": b"", "gpt/old.py": b"", "app.py": b"old"}
    assert deploy().returncode == 0
    assert "gpt/old.py" not in hub.files
    assert hub.files["app.py"] == (ROOT / "app.py").read_bytes()


def test_a_token_that_is_missing_unknown_or_read_only_is_one_sentence(hub, deploy):
    refused = "The Space could not be deployed: "
    missing, unknown = deploy(HF_TOKEN=""), deploy(HF_TOKEN="hf_of_nobody")
    hub.may_write = False
    hub.files = {}
    read_only = deploy()
    assert missing.stderr == f"{refused}no token found: log in with `hf auth login`, or set HF_TOKEN\n"
    assert unknown.stderr.startswith(f"{refused}the hub rejected the token")
    assert read_only.stderr == f"{refused}the token has no write access to {SPACE}: it needs the role write\n"
    assert {each.returncode for each in (missing, unknown, read_only)} == {1}
    assert hub.settings == []


def test_a_hub_that_cannot_be_reached_is_one_sentence(deploy):
    done = deploy(HF_ENDPOINT=f"http://127.0.0.1:{free_ports(1)[0]}")
    assert done.returncode == 1
    assert re.fullmatch(r"The Space could not be deployed: the hub is unreachable: .+\n", done.stderr)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--variable", "A"], "must be NAME=VALUE, got 'A'"),
        (["--secret", "NOT_SET_HERE"], "NOT_SET_HERE is not set in this environment"),
        (["--hardware", "abacus"], "invalid choice: 'abacus'"),
    ],
)
def test_wrong_arguments_are_refused(hub, deploy, arguments, said):
    done = deploy(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert hub.files is None
