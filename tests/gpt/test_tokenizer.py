"""Encoding, decoding and streaming of arbitrary text; vocabulary files."""

from __future__ import annotations

import base64

import pytest

from gpt.tokenizer import Tokenizer, gpt2_tokenizer, incremental_decoder, load_vocabulary

TEXTS = {
    "English": "Every effort moves you, doesn't it?  Two  spaces.",
    "emoji": "a 👋🏽 wave, a 👨‍👩‍👧 family, a 🇨🇭 flag",
    "Chinese": "每一天都有新的开始。",
    "mixed scripts": "naïve Ελληνικά العربية हिन्दी ไทย 한국어",
    "whitespace": " \t\n\r\n   leading and trailing \u00a0\u3000 ",
    "NUL and controls": "a\x00b\x1b[0m\x7f",
    "markup": "<img src=x onerror=alert(1)> ${secret} <b>&amp;",
    "empty": "",
}


@pytest.fixture(params=["gpt2", "byte_tokenizer"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """GPT-2's vocabulary, and the bundled one."""
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Hello, I am", [15496, 11, 314, 716]),
        ("Every effort moves you", [6109, 3626, 6100, 345]),
        ("Every day holds a", [6109, 1110, 6622, 257]),
    ],
)
def test_gpt2_ids_are_the_published_ones(gpt2, text, ids):
    assert gpt2.encode(text) == ids
    assert gpt2.decode(ids) == text


def test_decoding_gives_the_text_back_at_once_and_in_complete_characters(tokenizer):
    for text in TEXTS.values():
        ids, decoder = tokenizer.encode(text), incremental_decoder()
        assert tokenizer.decode(ids) == text
        assert b"".join(map(tokenizer.token_bytes, ids)) == text.encode()
        assert "".join(decoder.decode(tokenizer.token_bytes(token_id)) for token_id in ids) == text
        assert decoder.decode(b"", final=True) == ""


def test_a_control_token_in_a_text_is_encoded_as_characters(tokenizer):
    text = "a<|endoftext|>b"
    ids = tokenizer.encode(text)
    assert tokenizer.eot_id not in ids
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize(
    ("text", "seen"), [("\ud83d", "\ufffd"), ("a\udc4bb", "a\ufffdb"), ("\udc4b\ud83d!", "\ufffd\ufffd!")]
)
def test_unpaired_surrogates_become_the_replacement_character(tokenizer, text, seen):
    assert tokenizer.decode(tokenizer.encode(text)) == seen


def test_an_invalid_byte_does_not_delay_the_next_character():
    decoder = incremental_decoder()
    assert decoder.decode(b"\xf0\x9f") == ""
    assert decoder.decode(b"ok\xff!") == "\ufffdok\ufffd!"


def vocabulary_lines() -> list[str]:
    return [f"{base64.b64encode(bytes([byte])).decode()} {byte}" for byte in range(256)]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda lines: ["once upon a time"], "v.tiktoken is not a tiktoken vocabulary"),
        (lambda lines: [*lines, "!!! 256"], "v.tiktoken is not a tiktoken vocabulary"),
        (lambda lines: [*lines, "YWI= many"], "v.tiktoken is not a tiktoken vocabulary"),
        (lambda lines: [*lines, "YWI= 300"], "it does not contain each id from 0 to 256 once"),
        (lambda lines: [*lines, "YWI= 7"], "it does not contain each id from 0 to 256 once"),
        (lambda lines: [*lines[:0xBF], "YWI= 191", *lines[0xC0:]], "it has no token for byte 191"),
        (lambda lines: [], "it has no token for byte 0"),
    ],
)
def test_a_file_that_is_not_a_vocabulary_is_refused(tmp_path, change, says):
    path = tmp_path / "v.tiktoken"
    path.write_text("\n".join(change(vocabulary_lines())))
    with pytest.raises(ValueError, match=says):
        load_vocabulary(path)


def test_names_of_control_tokens_are_read_as_tiktoken_reads_them_if_asked_to() -> None:
    ours = gpt2_tokenizer()
    for text in ("a<|endoftext|> b", "<|endoftext|>", "<|endoftext|><|endoftext|>é", "<|endof", ""):
        assert ours.encode_special(text) == ours.encoding.encode(text, allowed_special="all")
