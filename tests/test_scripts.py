"""Runs the scripts' own tests, and checks that Python and the scripts agree. Needs Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from components.assets import bundles
from components.i18n import speaking, t
from components.labels import MARKS, decimal, marked, percent, visible

ROOT = Path(__file__).parent.parent
WRITE = """
import { readFileSync } from "node:fs";
import { t } from "./components/widgets/i18n.js";
import { decimal, marked, percent, setExact, visible } from "./components/widgets/labels.js";
import { speak } from "./tests/js/catalogue.js";
const { shares, numbers, texts, sentences, marks } = JSON.parse(readFileSync(0));
const spoken = ["en", "zh"].map((language) => {
  speak(language, marks);
  return sentences.map(([key, values]) => t(key, values));
});
speak("en", marks);
const plain = shares.map(percent);
setExact(true);
const written = [plain, shares.map(percent), numbers.map((number) => decimal(number, 3))];
console.log(JSON.stringify([...written, texts.map(visible), texts.map(marked), ...spoken]));
"""

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed; .ci/run requires it")


def run_node(*arguments: str, given: str = "") -> str:
    """Run Node.js and return its output. Fails with all of it if the exit code is not 0."""
    done = subprocess.run(["node", *arguments], cwd=ROOT, capture_output=True, text=True, input=given)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_scripts_pass_their_tests() -> None:
    files = sorted(str(path) for path in (ROOT / "tests" / "js").glob("*.test.js"))
    assert len(files) > 3
    run_node("--test", "--test-reporter=spec", *files)


def test_each_bundle_is_valid(tmp_path: Path) -> None:
    for name, text in bundles().items():
        (tmp_path / name).with_suffix(".mjs").write_text(text, encoding="utf-8")
        run_node("--check", str((tmp_path / name).with_suffix(".mjs")))


def test_the_browser_writes_numbers_and_tokens_as_python_does() -> None:
    random = np.random.default_rng(0)
    shares = [
        0.0,
        1.0,
        *random.random(500),
        *(10 ** random.uniform(-6, 0, 500)),
        *(1 - 10 ** random.uniform(-7, 0, 500)),
    ]
    numbers = [0.0, *random.normal(size=500), *(random.normal(size=100) * 1e-3)]
    texts = [" a\n\t\r\0·狐", "\xa0" * 3 + "\U000e0100" * 2 + " שלום\u202e", "e\u0301\ud83d"]
    # Assigned characters that Python knows: all of the first blocks, and every seventh of the others.
    places = [*range(0x3000), *range(0x3000, sys.maxunicode + 1, 7)]
    texts += [chr(i) for i in places if unicodedata.category(chr(i)) != "Cn"]
    words = [{"token": word, "layer": 1, "head": 2, "p": "1%"} for word in ("雨", "“rain”", "雨 a", "a 雨")]
    sentences = [("why.flow.read.off", values) for values in words] + [("bpe.parts", {"n": n}) for n in (1, "1", 2)]
    given = json.dumps({"shares": shares, "numbers": numbers, "texts": texts, "sentences": sentences, "marks": MARKS})
    written = json.loads(run_node("--input-type=module", "-e", WRITE, given=given))
    assert written[0] == [percent(p) for p in shares]
    with speaking("en", exact=True):
        assert written[1:3] == [[percent(p) for p in shares], [decimal(x, 3) for x in numbers]]
    assert written[3:5] == [[visible(text) for text in texts], [marked(text) for text in texts]]
    for language, spoken in zip(("en", "zh"), written[5:], strict=True):
        with speaking(language, exact=False):
            assert spoken == [t(key, **values) for key, values in sentences]
