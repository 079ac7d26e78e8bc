"""The wheel contains one package, `glassbox_gpt`, which coexists with anything named like the repository's modules."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import gpt

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parent.parent
MAX_WHEEL_BYTES = 40_000_000
GENERATE = """
import json, sys
import glassbox_gpt as gb
ids = [step.token_id for step in gb.generate("stories", "Once upon a time", gb.SamplingParams(temperature=0), 5)]
strangers = sorted({"gpt", "components"} & set(sys.modules))
print(json.dumps([ids, gb.gpt2_tokenizer().encode("Hello, I am"), gb.__version__, strangers]))
"""

LESSONS = """
from glassbox_gpt.components.tabs.lessons.code_view import excerpt, printed
from glassbox_gpt.components.tabs.lessons.course import LESSONS
for lesson in LESSONS:
    for code in lesson.code.split():
        printed(lesson.key)
        assert excerpt(code).file.startswith("glassbox_gpt/"), excerpt(code).file
"""


def run(*command: str | Path, **options: object) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the wheel, without its dependencies."""
    folder, target = (tmp_path_factory.mktemp(name) for name in ("wheel", "target"))
    quiet = ("--quiet", "--no-deps", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "wheel", *quiet, "--no-build-isolation", "--wheel-dir", folder, ROOT)
    (wheel,) = folder.iterdir()
    assert wheel.stat().st_size < MAX_WHEEL_BYTES
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {
        "glassbox_gpt",
        f"glassbox_gpt-{gpt.__version__}.dist-info",
    }
    assert not [name for name in names if re.search(r"assets/training/.*safetensors|__pycache__", name)]
    run(sys.executable, "-m", "pip", "install", *quiet, "--no-compile", "--target", target, wheel)
    return target


@pytest.fixture
def elsewhere(installed: Path, tmp_path: Path) -> dict[str, object]:
    """A working directory that contains a tutorial's gpt.py, a project's components and an app.py."""
    (tmp_path / "components").mkdir()
    for name in ("gpt.py", "components/__init__.py", "app.py"):
        (tmp_path / name).write_text("raise RuntimeError('this is not Glassbox GPT')\n")
    return {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(installed), "COLUMNS": "500"}}


@pytest.fixture
def page(installed: Path, elsewhere: dict[str, object]) -> Iterator[str]:
    """Run the installed page and return its address."""
    process = subprocess.Popen(
        [sys.executable, installed / "bin" / "glassbox", "--no-mcp"], stdout=subprocess.PIPE, text=True, **elsewhere
    )
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait(60)


def test_it_writes_the_same_text_under_its_own_name(elsewhere: dict[str, object]) -> None:
    greedy = gpt.SamplingParams(temperature=0)
    ids = [step.token_id for step in gpt.generate("stories", "Once upon a time", greedy, 5)]
    found = json.loads(run(sys.executable, "-c", GENERATE, **elsewhere))
    assert found == [ids, [15496, 11, 314, 716], gpt.__version__, []]


def test_its_commands_are_those_of_the_checkout(installed: Path, elsewhere: dict[str, object]) -> None:
    glassbox = installed / "bin" / "glassbox"
    assert run(sys.executable, glassbox, "--version", **elsewhere) == f"Glassbox GPT {gpt.__version__}\n"
    here = run(sys.executable, "-m", "gpt.training", "--help", cwd=ROOT, env=os.environ | {"COLUMNS": "500"})
    there = run(sys.executable, "-m", "glassbox_gpt.training", "--help", **elsewhere)
    assert there.replace("glassbox_gpt.", "gpt.").split() == here.split()
    assert run(sys.executable, glassbox, "training", "--help", **elsewhere) == there
    assert "glassbox course" in run(sys.executable, glassbox, "course", "--help", **elsewhere)


def test_the_page_is_served(page: str) -> None:
    assert "Glassbox GPT" in httpx.get(page).text


def test_no_name_is_left_over_or_undefined(installed: Path) -> None:
    run(
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select",
        "F821",
        "--no-cache",
        installed / "glassbox_gpt",
    )
    sources = {path: path.read_text(encoding="utf-8") for path in (installed / "glassbox_gpt").rglob("*.py")}
    assert not [path for path, text in sources.items() if re.search(r"\b(from|import|-m) (gpt|components)\b", text)]


def test_the_lessons_show_the_source_of_the_package(elsewhere: dict[str, object]) -> None:
    run(sys.executable, "-c", LESSONS, **elsewhere)


def test_requirements_name_the_packages_of_the_metadata_and_the_newest_torch_that_was_tested(installed: Path) -> None:
    (metadata,) = Distribution.discover(path=[str(installed)])
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    stated, listed = (
        {(canonicalize_name(each.name), str(each.specifier)) for each in map(Requirement, requirements)}
        for requirements in (metadata.requires, (line for line in lines if line[0] != "#"))
    )
    assert stated ^ listed == {("torch", ">=2.9"), ("torch", "<2.14,>=2.9")}
    assert metadata.metadata["Description"].startswith("# Glassbox GPT")
