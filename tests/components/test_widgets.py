"""Widget data: it only grows, carries any text, and is never mistaken for markup."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from components.text_views import token_lines
from components.widgets.tokens import shade_value, token_line

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


def test_shades_of_nothing_are_nothing() -> None:
    assert shade_value(np.zeros(0)) == "0:"
    assert shade_value(np.zeros(3)) == f"0:{base64.b64encode(bytes(6)).decode()}"


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
    lines = token_lines(Pieces(*pieces), range(len(pieces)), [(None, None)] * len(pieces), 0)
    assert [(line[1], line[5] if len(line) > 5 else "") for line in map(json.loads, lines)] == shown
