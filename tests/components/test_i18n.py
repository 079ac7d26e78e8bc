import json
import re
import shutil
import string
from pathlib import Path

import pytest

import components
from components.assets import browser_catalogue, named_keys
from components.i18n import t
from components.i18n.catalogue import CATALOGUES, FOLDER, GLOSSARY, load_catalogues
from components.state.settings import LIMITS
from tests.components.drawing import spoken_in
from tests.error_calls import SENTENCES

FILES = [path for path in Path(components.__file__).parent.rglob("*") if path.suffix in (".py", ".js")]
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
TRANSLATIONS = {language: texts for language, texts in CATALOGUES.items() if language != "en"}


def fields(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


@pytest.mark.parametrize("language", TRANSLATIONS)
def test_every_language_has_the_keys_and_the_placeholders_of_english(language):
    texts = {key: text for key, text in CATALOGUES[language].items() if not key.startswith("language.")}
    english = {key: text for key, text in CATALOGUES["en"].items() if not key.startswith("language.")}
    texts = {key: text for key, text in texts.items() if key not in {f"error.{key}" for key in SENTENCES}}
    assert texts.keys() == english.keys()
    assert {key: fields(text) for key, text in texts.items()} == {key: fields(text) for key, text in english.items()}
    assert all(texts.values())


def test_chinese_is_written_in_chinese():
    names = {*LIMITS, "x", "activations.x", "page.title", "page.api"}
    for key, chinese in CATALOGUES["zh"].items():
        formula = not re.search(r"[a-z]{2}", re.sub(r"{\w+}|softmax|tanh|exp|ln", "", chinese))
        assert key in names or key.startswith("language.") or formula or re.search("[\u4e00-\u9fff]", chinese), key


def test_every_text_is_used_somewhere():
    prefixes = {
        *re.findall(r"""(?:f["']|`)([\w.]+\.)\$?\{""", SOURCES),
        *re.findall(r"""["']([\w.]+\.)["']""", SOURCES),
    }
    families = tuple(prefixes - {"error."})
    suffixes = set(re.findall(r"""f["']\{\w+\}(\.[\w.]+)["']""", SOURCES))
    names = set(re.findall(r"""["'](\w+)["']""", SOURCES))
    families += tuple(name + suffix for name in names for suffix in suffixes)
    for key in json.loads((FOLDER / "en.json").read_text(encoding="utf-8")):
        named = {key, key.removesuffix(".info"), key.removesuffix(".one")}
        assert key.startswith(families) or any(f'"{name}"' in SOURCES for name in named), key


def test_the_browser_has_each_text_that_a_script_names_and_few_others():
    keys, beginnings = named_keys()
    assert keys - CATALOGUES["en"].keys() == {"layer.feature", "language.spacing"}
    for language in CATALOGUES:
        texts = browser_catalogue(language)["texts"]
        assert texts.keys() >= (keys & CATALOGUES["en"].keys()) | {"path.layers.one"}
        assert len(texts) < len(CATALOGUES["en"]) / 6
        assert all(any(key.startswith(beginning) for key in texts) for beginning in beginnings - {"card.", "live."})


def test_one_of_a_thing_is_told_in_the_singular():
    assert t("bpe.parts", n=1) == "1 token"
    assert t("bpe.parts", n=2) == "2 tokens"
    status = [t("shapes.status", n="12", seconds="1", tokens=n) for n in (2, 1)]
    assert status == [f"12 random weights drawn in 1 s · {n}" for n in ("2 tokens", "1 token")]


def test_another_language_is_another_file(tmp_path):
    for path in FOLDER.glob("*.json"):
        shutil.copy(path, tmp_path)
    pseudo = {key: f"[{text}]" for key, text in CATALOGUES["en"].items()}
    (tmp_path / "qps.json").write_text(json.dumps(pseudo | {"language.name": "Pseudo"}), encoding="utf-8")
    catalogues = load_catalogues(tmp_path)
    assert next(iter(catalogues)) == "en"
    assert catalogues["qps"]["generate"] == "[Continue]"


def test_a_space_stands_between_chinese_and_what_is_not():
    assert spoken_in("zh", t, "loss.says", model="故事模型", choices="12").startswith(
        "故事模型的把握，相当于在 12 个词元里"
    )
    assert spoken_in("zh", t, "loss.says", model="GPT-2", choices="12").startswith("GPT-2 的把握，相当于在 12 个词元里")


def test_each_technical_word_has_one_line_in_each_language():
    for terms in GLOSSARY.values():
        assert [len(term["says"]) > 8 and "\n" not in term["says"] for term in terms] == [True] * len(GLOSSARY["en"])
        forms = [form for term in terms for form in term["forms"]]
        assert len(forms) == len(set(forms))
    explained = {form for term in GLOSSARY["en"] for form in term["forms"]}
    assert explained >= {"logit", "nats", "held-out", "induction", "entropy", "surprisal", "perplexity", "pre-norm"}
    assert explained >= {"residual stream", "checkpoint"}
