"""A damaged, hostile or unsuitable tokenizer.json is rejected with a sentence, without long computations."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from gpt.models.checkpoints.tokenizer_json import check_pattern
from gpt.models.checkpoints.vocabularies import find_vocabulary
from tests.gpt.models.tokenizer_families import LLAMA3_PATTERN, QWEN_PATTERN, trained, write_family

N_VOCAB = 1024
O200K_PATTERN = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)  # gpt-oss's, according to tiktoken


def changed(family: str, place: tuple[str, ...], value: object) -> dict[str, Any]:
    """Return a family's tokenizer.json with one value changed."""
    whole = part = json.loads(trained(family).to_str())
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    return whole


def nested(depth: int) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "NFC"}
    for _ in range(depth):
        part = {"type": "Sequence", "normalizers": [part]}
    return part


def byte_levels(n: int) -> dict[str, Any]:
    """Return parts that each make a text longer: "é" would become 2**n characters."""
    part = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"type": "Sequence", "pretokenizers": [part] * n}


LONG_MAP = base64.b64encode(bytes(4) + b"a" * 1000).decode()  # a map that makes characters 1000 bytes long


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("model",), None, "must contain tokens and merges"),
        (("model", "type"), "Unigram", "must contain tokens and merges"),
        (("model", "type"), "Morfessor", "not implemented: Morfessor"),
        (("model", "max_input_chars_per_word"), 10**6, "not implemented: max_input_chars_per_word 1000000"),
        (("pre_tokenizer",), byte_levels(20), "not implemented: ByteLevel, ByteLevel"),
        (("model", "vocab"), {}, "give each token an id"),
        (("model", "vocab"), [["a", 0.1]], "must contain tokens and merges"),
        (("model", "vocab"), {"a": 0, "b": 0}, "give each token an id"),
        (("model", "vocab"), {"a": True}, "give each token an id"),
        (("model", "vocab"), {"a": -1}, "give each token an id"),
        (("model", "vocab"), {"a": 10**30}, "do not belong together"),
        (("model", "vocab"), {"a": 1024}, "1,025 tokens, but the model has 1,024"),
        (("model", "vocab"), {"a": 0}, "is not a vocabulary"),
        (("model", "merges"), [["no", "such"]], "is not a vocabulary"),
        (("model", "merges"), 7, "must contain tokens and merges"),
        (("added_tokens",), {"a": 1}, "must contain tokens and merges"),
        (("added_tokens",), ["<s>"], "must contain tokens and merges"),
        (("added_tokens",), [{"special": False, "content": "hello"}], "missing field `id`"),
        (("normalizer",), {"type": "Uppercase"}, "not implemented: Uppercase"),
        (("added_tokens",), [{"content": ""}], "must contain tokens and merges"),
        (("added_tokens",), [{"content": "<s>", "id": "0"}], "is not a vocabulary"),
        (("normalizer",), "NFC", "must contain tokens and merges"),
        (("normalizer",), {"type": 1}, "must contain tokens and merges"),
        (("normalizer",), {"type": "Sequence"}, "must contain tokens and merges"),
        (("normalizer",), {"type": "Precompiled", "precompiled_charsmap": LONG_MAP}, "not implemented: Precompiled"),
        (("normalizer",), {"type": "Precompiled", "precompiled_charsmap": "?"}, "not implemented: Precompiled"),
        (("normalizer",), {"type": "Prepend", "prepend": "a" * 10**6}, "not implemented: Prepend"),
        (
            ("normalizer",),
            {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"},
            "not implemented: Replace",
        ),
        (
            ("normalizer",),
            {"type": "Replace", "pattern": {"Regex": "(a+)+b"}, "content": "▁"},
            "not implemented: Replace",
        ),
        (("normalizer",), nested(40), "must contain tokens and merges"),
        (
            ("pre_tokenizer",),
            {"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "Isolated", "invert": False},
            "could take minutes",
        ),
        (
            ("pre_tokenizer",),
            {"type": "Split", "pattern": {"Regex": "["}, "behavior": "Isolated", "invert": False},
            "could take minutes",
        ),
        (("post_processor",), {"type": "TemplateProcessing", "single": "x"}, "is not a vocabulary"),
    ],
)
def test_a_file_of_another_kind_or_a_damaged_one_is_refused(
    tmp_path: Path, place: tuple[str, ...], value: object, said: str
) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(changed("gemma", place, value)))
    with pytest.raises(ValueError, match=said):
        find_vocabulary(tmp_path, N_VOCAB)


def test_settings_of_other_types_are_as_none(tmp_path: Path) -> None:
    write_family(tmp_path, "gemma", bos_token=5, eos_token={"content": 7}, unk_token=["<unk>"], pad_token={})
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": {"a": 1}}')
    found = find_vocabulary(tmp_path, N_VOCAB)
    assert found.eot_ids == frozenset()
    assert found.decode(list(found.prefix_ids)) == "<bos>"


def test_added_tokens_beyond_the_models_are_left_out(tmp_path: Path) -> None:
    """Gemma 3's tokenizer.json has one more than the text model, and many fine-tunes have an unused [PAD]."""
    theirs = write_family(tmp_path, "gemma")
    theirs.add_special_tokens(["<image_soft_token>"])
    theirs.save(str(tmp_path / "tokenizer.json"))
    n_vocab = theirs.token_to_id("<image_soft_token>")
    found = find_vocabulary(tmp_path, n_vocab)
    assert found.n_vocab == n_vocab
    assert found.decode(found.encode("<image_soft_token>")) == "<image_soft_token>"
    theirs.add_tokens(["ordinary"])
    theirs.save(str(tmp_path / "tokenizer.json"))
    found = find_vocabulary(tmp_path, n_vocab)
    assert found.decode(found.encode("ordinary")) == "ordinary"
    assert find_vocabulary(tmp_path, n_vocab + 2).encode("ordinary") == [n_vocab + 1]


def test_settings_of_the_file_that_cut_or_pad_texts_do_not_count(tmp_path: Path) -> None:
    theirs = write_family(tmp_path, "qwen")
    ids = theirs.encode("one two three four").ids
    theirs.enable_truncation(2)
    theirs.enable_padding(length=10**6)
    theirs.save(str(tmp_path / "tokenizer.json"))
    found = find_vocabulary(tmp_path, N_VOCAB)
    assert found.encode("one two three four") == ids


@pytest.mark.parametrize("pattern", [LLAMA3_PATTERN, QWEN_PATTERN, O200K_PATTERN, r"\p{N}{1,3}", "[一-龥]+"])
def test_published_patterns_are_accepted(pattern: str) -> None:
    check_pattern(pattern, "tokenizer.json")


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a|a)*b", r"(?:\s+)+x", r"(\w)\1", r"(?<n>a)\k<n>", r"(?R)", r"a?" * 30 + "a" * 30, "(a|a)" * 30, 
        "a{1,9}" * 9,        r"\s*\s*\s*x", "(?x) (a|a) * b", "(?#)", "a" * 2000, "(", "(?P<n>a)",
    ],
)  # fmt: skip
def test_patterns_that_could_take_long_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="could take minutes"):
        check_pattern(pattern, "tokenizer.json")
