import importlib
import pkgutil
import re
import string
from pathlib import Path

import gradio as gr

import components
from components.i18n import Words, say
from components.texts import TEXTS

FILES = [path for path in Path(components.__file__).parent.rglob("*.py") if not path.name.endswith("texts.py")]
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in FILES)


def fields(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


def test_both_languages_have_the_same_values_to_fill_in():
    for key, (english, chinese) in TEXTS.items():
        assert english, key
        assert chinese, key
        assert fields(english) == fields(chinese), key


def test_chinese_is_written_in_chinese():
    names = {"top_k", "top_p", "min_p", "x", "activations.x"}
    for key, (_, chinese) in TEXTS.items():
        formula = not re.search(r"[a-z]{2}", re.sub(r"{\w+}|softmax|exp|ln", "", chinese))
        assert key in names or formula or re.search("[\u4e00-\u9fff]", chinese), key


def test_every_text_is_used_somewhere():
    families = tuple(re.findall(r"""f["']([\w.]+\.)\{""", SOURCES) + re.findall(r"""["']([\w.]+\.)["'] \+""", SOURCES))
    for key in TEXTS:
        assert f'"{key}"' in SOURCES or key.startswith(families) or key.removesuffix(".info") in TEXTS, key


def test_a_component_gets_its_words_again_in_the_other_language():
    words = Words()
    with gr.Blocks():
        button = words.build(gr.Button, {"value": "generate"}, elem_id="b")
        radio = words.build(gr.Radio, {"label": "language", "choices": lambda lang: [(say("stop", lang), 1)]})
    assert (button.value, radio.choices) == ("Generate", [("Stop", 1)])
    updates = words.updates("zh")
    assert words.components == [button, radio]
    assert updates[0]["value"] == "生成"
    assert updates[1]["choices"] == [("停止", 1)]


def test_no_two_parts_of_the_page_use_one_key():
    said: dict[str, tuple[str, str]] = {}
    for module in pkgutil.walk_packages(components.__path__, "components."):
        if not module.name.endswith("texts"):
            continue
        for name, table in vars(importlib.import_module(module.name)).items():
            for key, texts in table.items() if name.isupper() and isinstance(table, dict) else ():
                assert said.setdefault(key, texts) == texts, f"{key} in {module.name}"


def test_a_space_stands_between_chinese_and_what_is_not():
    assert say("loss.says", "zh", model="故事模型", choices="12").startswith("故事模型的把握相当于在 12 个词元中")
    assert say("loss.says", "zh", model="GPT-2", choices="12").startswith("GPT-2 的把握相当于在 12 个词元中")
