import re
import subprocess
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from components.limits import markdown

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FRONT = yaml.safe_load(README.split("---")[1])


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_front_matter_is_what_a_space_needs():
    supported = re.search(r"^gradio\[mcp\](\S+)", (ROOT / "requirements.txt").read_text(), flags=re.MULTILINE).group(1)
    assert FRONT["sdk"] == "gradio"
    assert FRONT["sdk_version"] in SpecifierSet(supported)
    assert (ROOT / FRONT["app_file"]).is_file()
    assert {"title", "emoji", "colorFrom", "colorTo", "python_version", "license", "tags", "models"} <= set(FRONT)
    assert len(FRONT["short_description"]) <= 60


def test_two_commands_do_all_the_set_up():
    run, test = (block.strip() for block in blocks("bash")[:2])
    assert run.endswith("pip install -r requirements.txt && python app.py")
    assert test.endswith("pip install -r requirements-dev.txt && python -m pytest")
    assert "\n" not in run + test


EXAMPLES = [block for block in blocks("python") if "gradio_client" not in block]


@pytest.mark.parametrize("code", EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_python_examples_print_what_their_comments_say(code, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    exec(compile(code, "README.md", "exec"), {})
    said = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    assert said
    assert capsys.readouterr().out.splitlines() == said


def test_the_api_example_names_every_endpoint_as_it_is():
    (code,) = (block for block in blocks("python") if "gradio_client" in block)
    compile(code, "README", "exec")
    assert set(re.findall(r'api_name="/(\w+)"', code)) == {
        *("generate", "next_token", "tokenize", "attention", "logit_lens", "attribution", "ablate", "loss")
    }


def test_the_table_of_limits_is_that_of_the_code():
    assert f"<!-- limits -->\n{markdown()}\n<!-- /limits -->" in README


def test_every_entry_of_the_tree_exists():
    tree = re.search(r"## The files\n.*?```\n(.*?)```", README, flags=re.DOTALL).group(1)
    folder, listed = "", []
    for line in filter(str.strip, tree.splitlines()):
        name = line.split()[0]
        listed.append(folder + name if line.startswith(" ") else name)
        folder = folder if line.startswith(" ") else name
    assert [path for path in listed if not (ROOT / path).exists()] == []
    packages = {f"gpt/{path.parent.name}/" for path in (ROOT / "gpt").glob("*/__init__.py")}
    assert packages <= set(listed)


def test_every_link_and_picture_leads_to_a_file():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_no_file_is_larger_than_ten_megabytes():
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        assert (ROOT / name).stat().st_size < 10_000_000, name
