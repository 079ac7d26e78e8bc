"""tokenizer.json of every family: ids and text match the `tokenizers` library, and the bytes of each token."""

from __future__ import annotations

from pathlib import Path
from unicodedata import normalize

import pytest
from transformers import AutoTokenizer

from gpt.models.checkpoints.hugging_face_tokenizer import HuggingFaceTokenizer
from gpt.models.checkpoints.vocabularies import find_vocabulary
from gpt.tokenizer import TextDecoder, plain_text, prompt_ids, prompt_text, start_ids
from tests.gpt.models.tokenizer_families import FAMILIES, NORMALISE, SPACE, texts, trained, write_family

N_VOCAB = 1024  # vocabulary size of the model, larger than any vocabulary here


QUICK = ("qwen", "mistral")


@pytest.fixture(params=[pytest.param(each, marks=() if each in QUICK else pytest.mark.thorough) for each in FAMILIES])
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def ours(tmp_path: Path, family: str) -> HuggingFaceTokenizer:
    write_family(tmp_path, family)
    found = find_vocabulary(tmp_path, N_VOCAB)
    assert isinstance(found, HuggingFaceTokenizer)
    return found


@pytest.mark.thorough
def test_ids_and_text_of_1000_strings_are_the_librarys(tmp_path: Path, family: str, ours: HuggingFaceTokenizer) -> None:
    theirs = write_family(tmp_path, family)
    theirs.encode_special_tokens = True
    for text in texts():
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == ids
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


def test_bytes_of_the_tokens_are_those_of_the_text(family: str, ours: HuggingFaceTokenizer) -> None:
    """Mistral adds no second space to a text that begins with one."""
    for text in texts():
        seen = normalize("NFC", text) if family in NORMALISE else text
        data = b"".join(map(ours.token_bytes, ours.encode(text)))
        first = " " if ours.strips_space and text and not (family == "mistral" and text.startswith(" ")) else ""
        assert data == (first + seen).encode()
        assert b"".join(map(ours.token_bytes, ours.encode_continuation(text))) == seen.encode()


def test_streamed_text_is_the_text(ours: HuggingFaceTokenizer) -> None:
    for text in texts()[:200]:
        ids, decoder = prompt_ids(ours, text), TextDecoder(ours)
        assert "".join(map(decoder.feed, ids)) + decoder.finish() == plain_text(ours, ids)


def test_names_of_control_tokens_in_a_text_are_characters(ours: HuggingFaceTokenizer) -> None:
    for name in {ours.token_bytes(token_id).decode() for token_id in ours.special_ids}:
        ids = ours.encode(f"a{name} {name}")
        assert ours.special_ids.isdisjoint(ids)
        assert ours.decode(ids) == f"a{name} {name}"


def test_names_of_control_tokens_are_read_as_transformers_reads_them_if_asked_to(
    tmp_path: Path, ours: HuggingFaceTokenizer
) -> None:
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for name in theirs.all_special_tokens:
        for text in (f"a{name} b", f"a {name}{name}b "):
            assert prompt_ids(ours, text, special=True) == theirs(text)["input_ids"]
            assert theirs.convert_tokens_to_ids(name) not in prompt_ids(ours, text)[len(ours.prefix_ids) :]
    start, n = ours.decode(list(ours.prefix_ids)), len(ours.prefix_ids)  # transformers adds the prefix a second time
    assert prompt_ids(ours, f"{start}a", special=True) == theirs(f"{start}a")["input_ids"][n:]


def test_a_control_token_that_merges_can_make_is_encoded_as_characters(tmp_path: Path) -> None:
    made = trained("smollm2").encode(" ".join(texts(50))).tokens
    name = next(token for token in made if token.isascii() and len(token) > 1)
    theirs = write_family(tmp_path, "smollm2", eos_token=name)
    ours = find_vocabulary(tmp_path, N_VOCAB)
    end = theirs.token_to_id(name)
    assert end in ours.eot_ids
    assert ours.encode(name) == [theirs.token_to_id(character) for character in name]


def test_a_text_begins_as_transformers_begins_it(tmp_path: Path, ours: HuggingFaceTokenizer) -> None:
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for text in ("Hello, world", " two", "你好 naïve"):
        assert prompt_ids(ours, text) == theirs(text)["input_ids"]


@pytest.mark.parametrize("add", [True, False])
def test_beside_a_tokenizer_json_the_setting_add_bos_token_does_not_count(
    tmp_path: Path, family: str, add: bool
) -> None:
    write_family(tmp_path, family, add_bos_token=add)
    ours, theirs = find_vocabulary(tmp_path, N_VOCAB), AutoTokenizer.from_pretrained(tmp_path)
    assert prompt_ids(ours, "Hello") == theirs("Hello")["input_ids"]


def test_a_prompt_is_found_again_from_its_ids(ours: HuggingFaceTokenizer, family: str) -> None:
    for text in ("Hello", " two  spaces", "a\nb"):
        ids = prompt_ids(ours, text)
        found = prompt_text(ours, ids)
        assert found is not None
        assert prompt_ids(ours, found) == ids
        assert found == (text if family != "mistral" else text.removeprefix(" "))
    assert prompt_text(ours, start_ids(ours)) == ""
    assert prompt_text(ours, [*prompt_ids(ours, "a"), min(ours.eot_ids)]) is None


def test_an_empty_prompt_begins_with_the_token_of_a_new_text(ours: HuggingFaceTokenizer, family: str) -> None:
    first = {"llama3": "<|begin_of_text|>", "llama2": "<s>", "mistral": "<s>", "gemma": "<bos>"}
    assert ours.decode(start_ids(ours)) == first.get(family, "<|endoftext|>")


def test_ids_that_the_file_lacks_are_control_tokens_with_a_name(ours: HuggingFaceTokenizer) -> None:
    assert ours.n_vocab == N_VOCAB
    assert ours.token_bytes(N_VOCAB - 1) == b"<1023>"
    assert N_VOCAB - 1 in ours.special_ids
    assert ours.decode([N_VOCAB - 1]) == "<1023>"
    for token_id in (N_VOCAB, -1):
        with pytest.raises(ValueError, match="does not exist"):
            ours.token_bytes(token_id)


def test_what_ends_a_text_is_named_by_the_settings_and_by_the_generation_config(tmp_path: Path) -> None:
    theirs = write_family(tmp_path, "qwen")
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [3, 5, 1000000, "x"]}')
    ours = find_vocabulary(tmp_path, N_VOCAB)
    assert ours.eot_id == theirs.token_to_id("<|endoftext|>")
    assert ours.eot_ids == {3, 5, ours.eot_id, theirs.token_to_id("<|im_end|>")}


def test_written_and_read_again_it_is_the_same(tmp_path: Path, ours: HuggingFaceTokenizer) -> None:
    (tmp_path / "again").mkdir()
    ours.write(tmp_path / "again")
    again = find_vocabulary(tmp_path / "again", N_VOCAB)
    assert isinstance(again, HuggingFaceTokenizer)
    assert again.bytes_of == ours.bytes_of
    assert (again.prefix_ids, again.eot_id, again.eot_ids) == (ours.prefix_ids, ours.eot_id, ours.eot_ids)
    assert [again.encode(text) for text in texts()[:100]] == [ours.encode(text) for text in texts()[:100]]


def test_a_literal_space_mark_is_a_space_for_sentence_piece(tmp_path: Path) -> None:
    theirs = write_family(tmp_path, "gemma")
    ours = find_vocabulary(tmp_path, N_VOCAB)
    assert ours.encode(f"a{SPACE}b") == theirs.encode("a b", add_special_tokens=False).ids
