"""Numbers and tokens as readers and widgets get them: any text stays text, and nothing is drawn as nothing."""

from __future__ import annotations

import base64
import json
import sys
import unicodedata
from types import SimpleNamespace

import numpy as np
import pytest

from components.i18n import speaking, t
from components.labels import (
    alone,
    bar_label,
    decimal,
    decimals,
    marked,
    percent,
    placed,
    power,
    quoted,
    seed_of,
    shortened,
    signed,
    unseen_names,
    visible,
)
from components.text_views import model_choices, token_lines
from components.widgets.tokens import shade_value, token_line
from gpt import get_model

# Format characters that have a glyph, such as Arabic and Syriac number signs.
PREPENDED = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}


def test_a_negative_number_has_a_real_minus():
    assert decimal(-0.16997, 4) == "−0.1700"
    assert decimal(2, 2) == "2.00"
    assert decimal(-0.00001, 4) == "0.0000"


def test_the_list_of_models_says_which_of_the_hub_are_downloaded(monkeypatch, tmp_path):
    monkeypatch.setattr("gpt.models.sources.cached_folder", lambda name: tmp_path if name == "gpt2" else None)
    labels = {name: label for label, name in model_choices()}
    assert labels["gpt2"] == "GPT-2 small · 124M, 0.5 GB, downloaded"
    assert labels["gpt2-medium"] == "GPT-2 medium · 355M, 1.4 GB, from the hub"


def test_a_number_far_from_one_is_written_as_a_power():
    assert power(-1.46e-4) == "−1.5 × 10⁻⁴"
    assert power(3e12) == "3.0 × 10¹²"
    assert power(0.0) == "0"


SHARES = (0, 0.00001, 0.0005, 0.00999, 0.032, 0.41, 0.9899, 0.994, 0.998, 0.9997, 0.99999, 1)


def test_a_probability_is_in_whole_percent_and_never_reads_as_certain_where_it_is_not():
    plain = ["0%", *["under 1%"] * 3, "3%", "41%", "99%", *["over 99%"] * 4, "100%"]
    assert [percent(p) for p in SHARES] == plain
    with speaking("zh", exact=False):
        assert [percent(p) for p in (0.005, 0.5, 0.995)] == ["不到 1%", "50%", "超过 99%"]


def test_with_all_digits_a_probability_has_as_many_as_it_takes():
    with speaking("en", exact=True):
        written = [percent(p) for p in SHARES]
    assert written == [
        "0%", "< 0.01%", "0.05%", "1.0%", "3.2%", "41%", "99%", "99%", "99.8%", "99.97%", "> 99.99%", "100%",
    ]  # fmt: skip
    assert percent(0.0005) == "under 1%"


def test_a_token_in_a_sentence_has_no_space_before_it_and_a_part_of_a_character_is_named():
    tokenizer = get_model().tokenizer
    (space,), (cat,), part = tokenizer.encode(" "), tokenizer.encode(" cat"), tokenizer.encode("狐")[0]
    assert [quoted(tokenizer, token) for token in (cat, space, part)] == ["“cat”", "“·”", "part of a character"]
    with speaking("zh", exact=False):
        assert quoted(tokenizer, part) == "半个字符"
        values = {"word": "“雨”", "token": "“wet”", "before": "9%", "after": "1%"}
        assert t("hidden.says", **values) == "遮住“雨”以后，“wet”的概率从 9% 降到 1%。"
    with speaking("en", exact=True):
        assert quoted(tokenizer, cat) == "“·cat”"
        assert "\\x" in quoted(tokenizer, part)
        assert quoted(tokenizer, tokenizer.eot_id) == "“<|endoftext|>”"
        assert (placed("“cat”", 3), seed_of(7)) == ("“cat” (position 3)", " · seed 7")
    assert quoted(tokenizer, tokenizer.eot_id) == "end of text"
    assert (placed("“cat”", 3), seed_of(7)) == ("“cat”", "")


def test_the_label_of_a_bar_has_no_quotation_marks_but_the_tokens_own():
    assert bar_label(get_model().tokenizer, get_model().tokenizer.encode(" cat")[0]) == "cat"
    assert bar_label(SimpleNamespace(token_bytes=lambda token_id: "“".encode()), 0) == "“"


def test_a_sign_stands_only_before_what_is_not_zero():
    assert [signed(value) for value in (1.234, -1.234, 0.001, -0.001)] == ["+1.23", "−1.23", "0.00", "0.00"]


def test_numbers_side_by_side_have_as_many_decimals_as_the_largest_needs() -> None:
    assert [decimals([0.1 * size, -size]) for size in (123.0, 1.2, 0.12, 0.05, 0.0034, 1e-9)] == [2, 2, 2, 3, 4, 6]
    assert decimals([]) == decimals([0.0]) == 2
    assert [signed(value, decimals([-0.0034])) for value in (-0.0034, 0.00051)] == ["−0.0034", "+0.0005"]


@pytest.mark.thorough
def test_no_character_is_drawn_as_nothing() -> None:
    selectors = {chr(i) for i in [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]}
    fillers = set("\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\u2800")
    for character in map(chr, range(sys.maxunicode + 1)):
        kind = unicodedata.category(character)
        unseen = kind in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp") and ord(character) not in PREPENDED
        if unseen or character in selectors | fillers:
            shown = visible(character)
            assert shown != character
            assert all(unicodedata.category(each)[0] in "LNPS" for each in shown), repr(character)


def test_marks_are_short_and_keep_the_characters_beside_them() -> None:
    assert visible(" a\n\t\r\0") == "·a⏎⇥[CR][NUL]"
    assert marked("a b\n\x1b[0m\x7f") == "a b⏎[ESC][0m[DEL]"
    assert visible("\xa0" * 16 + "\u3000x") == "[NBSP×16][U+3000]x"
    assert visible("\u0301") == "◌\u0301"
    assert visible("e\u0301") == "e\u0301"


def test_a_text_is_cut_between_two_marks() -> None:
    assert shortened("\u200bab\u200ccd", 14) == "[ZWSP]ab…"
    assert shortened("\u200bab\u200c", 14) == "[ZWSP]ab[ZWNJ]"
    assert shortened("\U000e0100a", 5) == "[U+E0100]…"


def test_right_to_left_letters_do_not_reorder_their_neighbours() -> None:
    first, second = visible(" שלום"), visible("سلام")
    for shown in (first, second):
        assert [unicodedata.bidirectional(shown[i]) for i in (0, -1)] == ["FSI", "PDI"]
    assert "\u202e" not in visible("\u202eabc")
    assert alone(" שלום") == "·שלום"


def test_invisible_characters_are_named() -> None:
    assert unseen_names("a \n\t\u200b\u200b\ufe0f\x1b") == [
        ("U+200B", "ZERO WIDTH SPACE"),
        ("U+FE0F", "VARIATION SELECTOR-16"),
        ("U+001B", "[ESC]"),
    ]


HOSTILE = ["<script>alert(1)</script>", "${alert(1)}", "{{x}}", '"\\\n', "\ud800", "\x00", "\u2028", "狐"]


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_travels_as_one_line_of_ascii_without_markup(text: str) -> None:
    line = token_line(7, text, 0.25, 3, "g")
    assert line.isascii()
    assert line.index("\n") == len(line) - 1
    assert "<" not in line
    assert json.loads(line)[:5] == [7, text, 0.25, 3, "g"]


def test_a_token_that_is_no_whole_character_carries_its_bytes() -> None:
    assert json.loads(token_line(7, "", None, None, "p", b"\xe7\x8b")) == [7, "", None, None, "p", r"\xe7\x8b"]


def test_a_token_with_invisible_characters_carries_their_names() -> None:
    assert json.loads(token_line(7, " a\xad", None, None, "p"))[5:] == ["", None, [["U+00AD", "SOFT HYPHEN"]]]
    assert json.loads(token_line(7, "\t", 0.5, 1, "g", entropy=1.5))[5:] == ["", 1.5]


def test_shades_are_relative_to_the_largest_weight() -> None:
    largest, data = shade_value(np.array([0.1, 0.4, 0.0, 0.2])).split(":")
    assert float(largest) == pytest.approx(0.4)
    levels = np.frombuffer(base64.b64decode(data), "<u2")
    np.testing.assert_allclose(levels / 65535, [0.25, 1, 0, 0.5], atol=0.5 / 65535)


class Pieces:
    """A vocabulary of these tokens."""

    special_ids = frozenset()

    def __init__(self, *pieces: bytes) -> None:
        self.token_bytes = pieces.__getitem__


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        ((b"a", b" b"), [("a", ""), (" b", "")]),
        ((b" \xe5", b"\xb0", b"\x8f"), [(" ", r"\xe5"), ("", r"\xb0"), ("小", "")]),  # how GPT-2 encodes " 小"
        ((b" \xf0\x9f", b"\x90", b"\xb6 \xe5"), [(" ", r"\xf0\x9f"), ("", r"\x90"), ("🐶 ", r"\xe5")]),
        ((b"\xe5", b"x"), [("", r"\xe5"), ("x", "")]),
        ((b"\xb0", b"\xc3\xa9"), [("", r"\xb0"), ("é", "")]),
    ],
)
def test_every_byte_of_a_token_is_shown_on_a_chip(pieces: tuple[bytes, ...], shown: list[tuple[str, str]]) -> None:
    lines = token_lines(Pieces(*pieces), range(len(pieces)), n_prompt=0)
    assert [(line[1], line[5] if len(line) > 5 else "") for line in map(json.loads, lines)] == shown
