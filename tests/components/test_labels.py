import sys
import unicodedata
from types import SimpleNamespace

import pytest

from components.i18n import speaking
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
from gpt import get_model

# Format characters that have a glyph, such as Arabic and Syriac number signs.
PREPENDED = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}


def test_a_negative_number_has_a_real_minus():
    assert decimal(-0.16997, 4) == "−0.1700"
    assert decimal(2, 2) == "2.00"
    assert decimal(-0.00001, 4) == "0.0000"


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


def test_visible_characters_are_unchanged() -> None:
    for character in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(character)[0] in "LNPS" and unicodedata.decomposition(character)[:8] != "<compat>":
            assert visible(character).strip("\u2068\u2069") == character or unicodedata.name(character).endswith(
                ("FILLER", "BLANK", "NULL NOTEHEAD", "REPLACEMENT CHARACTER")
            ), repr(character)


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
