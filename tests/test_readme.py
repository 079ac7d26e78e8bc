"""README and docs match the code."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

import gpt
from gpt.models.checkpoints.checkpoint import READERS
from gpt.models.checkpoints.files import NAMES, STARTS
from gpt.models.checkpoints.other_formats import ADAPTER_FORMAT

ROOT = Path(__file__).parent.parent
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.glob("docs/*.md")}
README, API = (ROOT / "README.md").read_text(encoding="utf-8"), PAGES["docs/api.md"]
PAGES |= {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")}
FRONT = yaml.safe_load(README.split("---")[1])


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_front_matter_is_what_a_space_needs():
    supported = re.search(r"^gradio\[mcp\](\S+)", (ROOT / "requirements.txt").read_text(), flags=re.MULTILINE).group(1)
    assert FRONT["sdk"] == "gradio"
    assert FRONT["sdk_version"] in SpecifierSet(supported)
    assert (ROOT / FRONT["app_file"]).is_file()
    assert {"title", "emoji", "colorFrom", "colorTo", "python_version", "license", "tags", "models"} <= set(FRONT)
    assert len(FRONT["short_description"]) <= 60


def test_two_commands_do_all_the_set_up():
    run = blocks(README, "bash")[0].strip()
    test = blocks(README.partition("<!-- test command -->\n")[2], "bash")[0].strip()
    assert run.endswith("pip install -r requirements.txt && python app.py")
    assert test.endswith("pip install -r requirements-dev.txt && python -m pytest")
    assert "\n" not in run + test


EXAMPLES = [
    pytest.param(code, id=f"{name}-{number}", marks=[pytest.mark.thorough] if "n=200" in code else [])
    for name, text in PAGES.items()
    for number, code in enumerate(blocks(text, "python"))
    if "gradio_client" not in code
    and name not in ("docs/kit.md", "docs/peers.md")  # see components/test_kit.py, parity/test_peers.py
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_python_examples_print_what_their_comments_say(code, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    exec(compile(code, "example", "exec"), {})
    said = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    assert said
    assert capsys.readouterr().out.splitlines() == said


def test_the_api_example_names_every_endpoint_as_it_is():
    (code,) = blocks(API, "python")
    compile(code, "docs/api.md", "exec")
    assert set(re.findall(r'api_name="/(\w+)"', code)) == {
        *("generate", "next_token", "tokenize", "attention", "logit_lens", "attribution", "ablate", "loss"),
        *("hidden_state", "patch", "steer", "list_models"),
    }


def test_the_readme_and_the_page_of_the_api_give_agents_the_same_address():
    assert blocks(README, "json") == blocks(API, "json")


def formats_table() -> str:
    """Return the table of formats in Markdown: what is opened, and what is not."""
    opened = ADAPTER_FORMAT | {name: how for reader in READERS for name, how in reader.formats.items()}
    others: dict[tuple[str, str], list[str]] = {}
    for names, row in NAMES.items():
        others.setdefault(row, []).extend(f"`{name}`" for name in names.split())
    for row in STARTS.values():
        others.setdefault(row, []).append("the first bytes")
    lines = ["| Format | Recognised by | |", "|---|---|---|"]
    lines += [f"| {name} | {how} | opened |" for name, how in opened.items()]
    lines += [f"| {name} | {', '.join(how)} | not read: convert it with {to} |" for (name, to), how in others.items()]
    return "\n".join(lines)


def test_the_table_of_formats_is_that_of_the_readers():
    assert f"<!-- formats -->\n{formats_table()}\n<!-- /formats -->" in PAGES["docs/checkpoints.md"]


def test_the_api_reference_has_every_public_name():
    reference = PAGES["docs/reference.md"]
    assert [name for name in gpt.__all__ if not re.search(rf"\b{name}\b", reference)] == []


def test_every_entry_of_the_tree_exists():
    tree = re.search(r"## The files\n.*?```\n(.*?)```", PAGES["docs/architecture.md"], flags=re.DOTALL).group(1)
    folder, listed = "", []
    for line in filter(str.strip, tree.splitlines()):
        name = line.split()[0]
        listed.append(folder + name if line.startswith(" ") else name)
        folder = folder if line.startswith(" ") else name
    assert [path for path in listed if not (ROOT / path).exists()] == []
    packages = {f"gpt/{path.parent.name}/" for path in (ROOT / "gpt").glob("*/__init__.py")}
    assert packages <= set(listed)


@pytest.mark.parametrize("name", PAGES)
def test_every_link_and_picture_leads_to_a_file(name):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", PAGES[name]):
        assert (ROOT / name).parent.joinpath(target).exists(), target


def test_no_file_is_larger_than_ten_megabytes():
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        assert (ROOT / name).stat().st_size < 10_000_000, name
