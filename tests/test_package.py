"""What `pip install .` installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GENERATE = """
import gpt
assert gpt.__file__.startswith({target!r}), gpt.__file__
print([step.token_id for step in gpt.generate("stories", "Once upon a time", gpt.SamplingParams(temperature=0), 5)])
print(gpt.gpt2_tokenizer().encode("Hello, I am"))
"""


def run(*command: str | Path, **options: object) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip installed a copy of the tracked files, without its dependencies."""
    source, target = (tmp_path_factory.mktemp(name) for name in ("source", "target"))
    for name in filter(None, run("git", "ls-files", "-z", cwd=ROOT).split("\0")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-compile", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "install", *options, "--target", target, ".", cwd=source)
    for folder in ("gpt", "components"):
        files = {path.relative_to(source) for path in (source / folder).rglob("*") if path.is_file()}
        missing = {str(path) for path in files if not (target / path).is_file()}
        assert missing <= {"components/widgets/types.d.ts"}
    return target


def test_the_package_works_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    outside = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(installed)}}
    ids, hello = run(sys.executable, "-c", GENERATE.format(target=str(installed)), **outside).splitlines()
    here = run(sys.executable, "-c", GENERATE.format(target=str(ROOT)), cwd=ROOT).splitlines()
    assert [ids, hello] == here
    assert hello == "[15496, 11, 314, 716]"


def test_the_command_glassbox_is_that_of_app_py(installed: Path, tmp_path: Path) -> None:
    outside = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(installed)}}
    installed_help = run(sys.executable, installed / "bin" / "glassbox", "--help", **outside)
    from_source = run(sys.executable, ROOT / "app.py", "--help")
    assert installed_help.replace("glassbox", "app.py").split() == from_source.split()
