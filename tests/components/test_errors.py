"""Errors and settings: every sentence in each language, and numbers out of their range."""

import ast
import json
import math
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import components
from components.errors import PageError, localize_error
from components.events import error
from components.i18n.catalogue import CATALOGUES, FOLDER
from components.state.settings import LIMITS, checked_number, clamped, max_new_tokens, sampling_params
from gpt import SamplingParams
from gpt.errors import GPTError
from tests.components.drawing import spoken_in
from tests.error_calls import SENTENCES, fields

FULL = GPTError("context.full", SENTENCES["context.full"], limit=8)
SOURCES = sorted(Path(components.__file__).parent.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(Path(components.__file__).parents[1]).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def value_for(spec: str | None, number: int) -> object:
    return number if spec else f"«{number}»"


def test_every_error_has_a_chinese_sentence_with_the_same_placeholders_and_no_other_sentence_is_there():
    own = {key for key in json.loads((FOLDER / "en.json").read_text(encoding="utf-8")) if key.startswith("error.")}
    chinese = {key: text for key, text in CATALOGUES["zh"].items() if key.startswith("error.") and key not in own}
    assert chinese.keys() == {f"error.{key}" for key in SENTENCES}
    for key, english in SENTENCES.items():
        assert fields(chinese[f"error.{key}"]) == fields(english), key


@pytest.mark.parametrize("key", SENTENCES)
def test_what_stands_in_the_sentence_stands_in_the_other(key):
    sentence = SENTENCES[key]
    values = {name: value_for(spec, i) for i, (name, (spec, _)) in enumerate(fields(sentence).items(), start=1)}
    problem = GPTError(key, sentence, **values)
    chinese = spoken_in("zh", localize_error, problem)
    assert re.search("[\u4e00-\u9fff]", chinese)
    assert sorted(re.findall("«.»", chinese)) == sorted(re.findall("«.»", str(problem)))
    assert localize_error(problem) == str(problem)


def test_an_error_among_the_values_is_said_in_the_same_language():
    problem = GPTError("file.damaged", SENTENCES["file.damaged"], file="a.json", reason=FULL)
    assert str(problem) == "a.json is damaged or cut short: the context of 8 tokens is full"
    assert spoken_in("zh", localize_error, problem) == "a.json 已损坏或不完整：上下文已满，最多 8 个词元"


def keys(node: ast.expr, module: ModuleType) -> list[str]:
    """Return the keys an expression can evaluate to: a constant, either branch, a table's values, or all f-string
    matches.
    """
    if isinstance(node, ast.IfExp):
        return keys(node.body, module) + keys(node.orelse, module)
    if isinstance(node, ast.Subscript):
        return list(getattr(module, ast.unparse(node.value)).values())
    if isinstance(node, ast.JoinedStr):
        parts = (re.escape(part.value) if isinstance(part, ast.Constant) else r"\w+" for part in node.values)
        pattern = re.compile("".join(parts))
        return [key for key in CATALOGUES["en"] if pattern.fullmatch(key)]
    assert isinstance(node, ast.Constant)
    return [node.value]


def test_every_page_error_has_a_key_of_the_catalogues_and_its_values_and_no_other_sentence_is_raised():
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "raise " in source or "PageError" in source else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "PageError":
                given = {keyword.arg for keyword in node.keywords}
                for key in keys(node.args[0], import_module(module_name(path))):
                    assert None in given or given == fields(CATALOGUES["en"][key]).keys(), (path, key)
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                assert ast.unparse(node.exc.func) != "ValueError", f"{path}:{node.lineno}"


def test_what_the_page_shows_at_its_edge_is_in_its_language_and_holds_no_tag():
    problem = GPTError("file.unknown", SENTENCES["file.unknown"], path="<b>x</b>")
    assert spoken_in("zh", error, problem).message == "找不到文件或文件夹 &lt;b&gt;x&lt;/b&gt;"
    assert error(problem).message == "There is no file or folder &lt;b&gt;x&lt;/b&gt;"


def test_a_page_error_is_a_sentence_of_the_catalogues():
    problem = PageError("shapes.error.rotary", width=6, heads=2, size=3)
    assert str(problem) == localize_error(problem) != spoken_in("zh", localize_error, problem)
    with pytest.raises(KeyError):
        PageError("context.full", limit=8)


@pytest.mark.parametrize("name", LIMITS)
def test_both_ends_of_a_range_are_allowed_and_what_lies_beyond_is_refused_by_name(name):
    limit = LIMITS[name]
    assert checked_number(name, limit.low, limit.low, limit.high) == limit.low
    assert checked_number(name, limit.high, limit.low, limit.high) == limit.high
    for outside in (limit.low - 0.5, limit.high + 0.5, None, "1", True, math.nan, math.inf, [1], {}):
        with pytest.raises(ValueError, match=name):
            checked_number(name, outside, limit.low, limit.high)


@pytest.mark.parametrize(
    ("name", "value", "low", "high", "english", "chinese"),
    [
        ("temperature", "x", 0, 2, "a number between 0 and 2, not str", " 0 到 2 的数，不能是 str"),
        ("top_k", 1.5, 0, 100, "a whole number between 0 and 100, not 1.5", " 0 到 100 的整数，不能是 1.5"),
        ("seed", -1, 0, math.inf, "a whole number of at least 0, not -1", "不小于 0 的整数，不能是 -1"),
        ("x", -(10**30), 0, math.inf, "a number of at least 0, not < −10²⁰", "不小于 0 的数，不能是 < −10²⁰"),
    ],
)
def test_a_number_out_of_its_range_is_refused_in_each_language(name, value, low, high, english, chinese):
    with pytest.raises(ValueError, match=name) as problem:
        checked_number(name, value, low, high)
    assert localize_error(problem.value) == f"{name} must be {english}"
    assert spoken_in("zh", localize_error, problem.value) == f"{name} 必须是{chinese}"


def test_the_values_that_mean_off_become_none():
    assert sampling_params(temperature=1) == SamplingParams(temperature=1.0)
    given = {"temperature": 0.5, "top_k": 3, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.2, "seed": 0}
    assert sampling_params(**given) == SamplingParams(**given)
    disabled = {name: limit.off for name, limit in LIMITS.items() if limit.off is not None}
    assert sampling_params(temperature=1, **disabled) == SamplingParams()


def test_a_number_typed_beside_a_slider_is_where_the_slider_stands():
    assert [clamped("top_k", value) for value in (2.4, 99999, -3)] == [2, 200, 0]
    assert clamped("temperature", 0.333) == 0.333
    assert max_new_tokens(12.6) == 13
    for odd in ("7", None, True, math.nan, math.inf):
        assert clamped("top_k", odd) is odd
