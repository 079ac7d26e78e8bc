"""Vocabulary files in the wild: missing bytes, added words, separate settings, and file pairs of each family."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, pre_tokenizers, trainers
from transformers import AutoTokenizer

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints import save_hugging_face, save_model, tokenizer_formats
from gpt.models.checkpoints.hugging_face_tokenizer import HuggingFaceTokenizer
from gpt.models.checkpoints.vocabularies import find_vocabulary
from gpt.models.sources import load_model
from gpt.tokenizer import TextDecoder, Vocabulary, gpt2_tokenizer, prompt_ids, prompt_text, save_vocabulary, start_ids
from tests.gpt.models.tokenizer_families import byte_level, corpus, sentence_piece, texts, trained

pytestmark = pytest.mark.thorough

N_VOCAB = 1024
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}{{ eos_token }}{% endfor %}"
NEVER_IN_UTF8 = [0xC0, 0xC1, *range(0xF5, 0x100)]


def without(tokenizer: Tokenizer, names: list[str]) -> Tokenizer:
    """Return a tokenizer without these tokens and what is merged from them, with new ids."""
    content = json.loads(tokenizer.to_str())
    model, added = content["model"], content["added_tokens"]
    kept = [token for token in model["vocab"] if not any(name in token for name in names)]
    kept += [each["content"] for each in added if each["content"] not in kept]
    ids = {token: i for i, token in enumerate(kept)}
    content["added_tokens"] = [each | {"id": ids[each["content"]]} for each in added]
    model["vocab"] = {token: ids[token] for token in model["vocab"] if token in ids}
    model["merges"] = [pair for pair in model["merges"] if "".join(pair) in ids and set(pair) <= ids.keys()]
    content["post_processor"] = None
    return Tokenizer.from_str(json.dumps(content))


def letter(byte: int) -> str:
    return next(letter for letter, each in tokenizer_formats.byte_letters().items() if each == byte)


def gpt2_like() -> Tokenizer:
    """Return a tokenizer.json of GPT-2's kind, with everything that tiktoken can read."""
    tokenizer = byte_level(None)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def prefixed() -> Tokenizer:
    """Return a vocabulary that prepends a space to a text."""
    tokenizer = gpt2_like()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return tokenizer


def check_equal(ours: Vocabulary, theirs: Tokenizer) -> None:
    """Assert that ids and text of many strings are equal."""
    theirs.encode_special_tokens = True
    for text in texts():
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == ids
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize(
    ("kind", "lacking"),
    [
        ("pythia", [letter(byte) for byte in NEVER_IN_UTF8]),
        ("smollm2", [letter(byte) for byte in (*NEVER_IN_UTF8, 0xE4, 0x0A, 0x7F)]),
        ("gpt2", [letter(byte) for byte in range(0x80, 0x100)]),
        ("gemma", ["<0x0A>", "<0xF0>"]),
        ("llama2", ["<0xC0>"]),
    ],
)
def test_what_a_vocabulary_cannot_write_is_dropped_as_the_library_drops_it(
    tmp_path: Path, kind: str, lacking: list[str]
) -> None:
    theirs = without(gpt2_like() if kind == "gpt2" else trained(kind), lacking)
    theirs.save(str(tmp_path / "tokenizer.json"))
    check_equal(find_vocabulary(tmp_path, N_VOCAB), theirs)


def test_a_tiktoken_vocabulary_without_some_bytes_is_read(tmp_path: Path) -> None:
    present = [bytes([byte]) for byte in range(256) if byte not in (0x0A, 0xE4)] + [b" t", b" th", b" the"]
    save_vocabulary({token: i for i, token in enumerate(present)}, tmp_path / "vocab.tiktoken")
    found = find_vocabulary(tmp_path, 300)
    assert found.decode(found.encode("the the\nthe 你")) == "the thethe " + "你".encode()[1:].decode("utf-8", "replace")
    assert found.encode(" the") == [256]
    assert found.eot_id == 257


@pytest.mark.parametrize("listed", [3, [3, 5, 1_000_000], None])
def test_eos_ids_of_a_folder_of_gpt2s_kind_end_a_generation(tmp_path: Path, listed: Any) -> None:
    theirs = gpt2_like()
    theirs.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text('{"eos_token_id": 7}')
    end = theirs.token_to_id("<|endoftext|>")
    assert find_vocabulary(tmp_path, N_VOCAB).eot_ids == {end, 7}
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": listed}))
    expected = {3: {3}, None: {7}}.get(listed if listed in (3, None) else -1, {3, 5})
    assert find_vocabulary(tmp_path, N_VOCAB).eot_ids == {end, *expected}


@pytest.mark.parametrize("beside", ["tokenizer_config.json", "chat_template.jinja"])
def test_a_folder_of_gpt2s_kind_can_have_a_chat_template(tmp_path: Path, beside: str) -> None:
    gpt2_like().save(str(tmp_path / "tokenizer.json"))
    settings = {"eos_token": "<|endoftext|>"} | ({"chat_template": TEMPLATE} if beside.endswith("json") else {})
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    if beside.endswith("jinja"):
        (tmp_path / beside).write_text(TEMPLATE)
    found = find_vocabulary(tmp_path, N_VOCAB)
    assert found.is_chat
    assert found.encode_chat([{"role": "user", "content": "Hi"}]) == [*found.encode("user: Hi"), found.eot_id]


def test_an_added_word_is_one_token_and_no_control_token(tmp_path: Path) -> None:
    theirs = gpt2_like()
    theirs.add_tokens(["Glassbox", AddedToken("<think>", special=False)])
    theirs.save(str(tmp_path / "tokenizer.json"))
    found = find_vocabulary(tmp_path, N_VOCAB)
    check_equal(found, theirs)
    word = theirs.token_to_id("Glassbox")
    assert word in found.encode("a Glassbox!")
    assert word not in found.special_ids
    assert found.token_bytes(word) == b"Glassbox"


def test_a_token_that_the_settings_name_is_a_control_token_even_if_the_file_lists_it_as_a_word(tmp_path: Path) -> None:
    theirs = gpt2_like()
    theirs.add_tokens(["<|im_end|>"])
    theirs.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}')
    found, end = find_vocabulary(tmp_path, N_VOCAB), theirs.token_to_id("<|im_end|>")
    assert end in found.special_ids
    assert end not in found.encode("a <|im_end|>")


def test_a_chat_template_needs_no_control_tokens(tmp_path: Path) -> None:
    byte_level(None).save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }}!")
    found = find_vocabulary(tmp_path, 600)
    assert found.special_ids == frozenset()
    assert (
        found.encode_chat([{"role": "user", "content": "abc"}]) == found.encode_message("abc") == found.encode("abc!")
    )


def test_added_tokens_keep_their_ids_after_a_gap(tmp_path: Path) -> None:
    """The library would assign the next free ids."""
    content = json.loads(gpt2_like().to_str())
    form = content["added_tokens"][0]
    content["added_tokens"] += [form | {"id": 900, "content": "<gap>"}, form | {"id": 905, "content": "<more>"}]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    found = find_vocabulary(tmp_path, N_VOCAB)
    assert [found.token_bytes(i) for i in (900, 905)] == [b"<gap>", b"<more>"]
    assert found.token_bytes(601) == b"<601>"
    assert {900, 905} <= found.special_ids


# A space prepended by the pre-tokenizer


def test_a_byte_level_vocabulary_puts_a_space_only_before_a_text(tmp_path: Path) -> None:
    theirs = prefixed()
    theirs.save(str(tmp_path / "tokenizer.json"))
    found, plain = find_vocabulary(tmp_path, N_VOCAB), gpt2_like()
    plain.encode_special_tokens = theirs.encode_special_tokens = True
    for text in texts(300):
        ids = found.encode(text)
        assert ids == theirs.encode(text, add_special_tokens=False).ids
        assert found.encode_continuation(text) == plain.encode(text, add_special_tokens=False).ids
        assert found.decode(ids) == theirs.decode(ids).removeprefix(" ") == text.removeprefix(" ")
        decoder = TextDecoder(found)
        assert "".join(map(decoder.feed, ids)) == text.removeprefix(" ")
    assert prompt_text(found, prompt_ids(found, "Hello")) == "Hello"


# vocab.json and merges.txt


def write_pair(folder: Path, tokenizer: Tokenizer, **settings: Any) -> Path:
    """Write the two files of a vocabulary, and tokenizer_config.json if settings are given."""
    content = json.loads(tokenizer.to_str())
    tokens = {token["content"]: token["id"] for token in content["added_tokens"]}
    (folder / "vocab.json").write_text(json.dumps(content["model"]["vocab"] | tokens))
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in content["model"]["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]), encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("model_type", ["gpt2", "phi", "codegen", "gptj", "gpt_neox", "olmo", "qwen2", "qwen3"])
def test_two_files_are_split_as_the_models_family_splits_texts(tmp_path: Path, model_type: str) -> None:
    write_pair(tmp_path, gpt2_like())
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type, "vocab_size": N_VOCAB}))
    found = find_vocabulary(tmp_path, N_VOCAB)
    check_equal(found, AutoTokenizer.from_pretrained(tmp_path).backend_tokenizer)


@pytest.mark.parametrize("named", ["GPT2Tokenizer", "GPT2TokenizerFast", "Qwen2Tokenizer", "GPTNeoXTokenizerFast"])
def test_the_class_in_the_settings_comes_before_the_family(tmp_path: Path, named: str) -> None:
    write_pair(tmp_path, gpt2_like(), tokenizer_class=named, add_prefix_space=False)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    found = find_vocabulary(tmp_path, N_VOCAB)
    check_equal(found, AutoTokenizer.from_pretrained(tmp_path).backend_tokenizer)


def test_opt_begins_each_text_with_its_end_token(tmp_path: Path) -> None:
    tokenizer = byte_level(None)
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>"])
    end = tokenizer.token_to_id("</s>")
    write_pair(tmp_path, tokenizer)
    (tmp_path / "config.json").write_text('{"model_type": "opt"}')
    for settings in (None, {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "</s>"}):
        if settings:
            (tmp_path / "tokenizer_config.json").write_text(json.dumps({**settings, "eos_token": "</s>"}))
            assert AutoTokenizer.from_pretrained(tmp_path)("Hello")["input_ids"][0] == end
        found = find_vocabulary(tmp_path, N_VOCAB)
        assert (found.prefix_ids, found.eot_id, found.eot_ids) == ((end,), end, {end})
        assert start_ids(found) == [end]


def test_merges_without_digits_come_from_digits_that_were_split_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SmolLM and StarCoder 2 declare GPT-2's tokenizer class but split off digits."""
    monkeypatch.setattr(tokenizer_formats, "MANY_MERGES", 100)
    write_pair(tmp_path, trained("smollm2"), tokenizer_class="GPT2Tokenizer")
    check_equal(find_vocabulary(tmp_path, N_VOCAB), trained("smollm2"))
    tokenizer = byte_level(None)
    tokenizer.train_from_iterator([*corpus(), "a1 2024 2024 2024"], trainers.BpeTrainer(vocab_size=600))
    write_pair(tmp_path, tokenizer, tokenizer_class="GPT2Tokenizer")
    check_equal(find_vocabulary(tmp_path, N_VOCAB), tokenizer)


@pytest.mark.parametrize("modern", [True, False])
def test_added_tokens_beside_the_two_files_count(tmp_path: Path, modern: bool) -> None:
    tokenizer = byte_level(None)
    write_pair(tmp_path, tokenizer)
    ids = {"<|endoftext|>": 600, "<|im_end|>": 601, "word": 605, "[PAD]": 2000}
    special = {name: name != "word" for name in ids}
    settings: dict[str, Any] = {"tokenizer_class": "Qwen2Tokenizer"}
    names = {"eos_token": "<|im_end|>", "pad_token": {"content": "[PAD]"}}
    if modern:
        forms = {str(i): {"content": name, "special": special[name], "lstrip": False} for name, i in ids.items()}
        settings |= names | {"added_tokens_decoder": forms}
    else:
        (tmp_path / "added_tokens.json").write_text(json.dumps(ids))
        more = {"additional_special_tokens": ["<|endoftext|>"]}
        (tmp_path / "special_tokens_map.json").write_text(json.dumps(names | more))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    found = find_vocabulary(tmp_path, N_VOCAB)
    assert found.encode("a word") == [*found.encode("a "), 605]
    assert {600, 601} <= found.special_ids
    assert 605 not in found.special_ids
    assert found.eot_ids == {600, 601}
    assert found.decode(found.encode("[PAD] <|im_end|>")) == "[PAD] <|im_end|>"


def test_two_files_of_an_unknown_class_are_refused(tmp_path: Path) -> None:
    write_pair(tmp_path, gpt2_like(), tokenizer_class="BlenderbotTokenizer")
    with pytest.raises(ValueError, match=r"merges\.txt does not specify how BlenderbotTokenizer splits"):
        find_vocabulary(tmp_path, N_VOCAB)
    (tmp_path / "vocab.txt").write_text("[UNK]")
    (tmp_path / "merges.txt").rename(tmp_path / "other.txt")
    with pytest.raises(ValueError, match=r"vocab\.txt does not specify how BlenderbotTokenizer splits"):
        find_vocabulary(tmp_path, N_VOCAB)
    (tmp_path / "other.txt").rename(tmp_path / "merges.txt")
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(
        ValueError, match=r"does not specify how llama splits a text .* add the model's tokenizer\.json"
    ):
        find_vocabulary(tmp_path, N_VOCAB)


def test_merges_may_have_another_order_than_their_ids(tmp_path: Path) -> None:
    tokenizer = byte_level(None)
    content = json.loads(tokenizer.to_str())
    content["model"]["merges"].reverse()
    theirs = Tokenizer.from_str(json.dumps(content))
    write_pair(tmp_path, theirs)
    assert [theirs.encode(text).ids for text in texts()] != [tokenizer.encode(text).ids for text in texts()]
    check_equal(find_vocabulary(tmp_path, N_VOCAB), theirs)


@pytest.mark.parametrize(
    "file", ["config.json", "generation_config.json", "tokenizer_config.json", "added_tokens.json"]
)
def test_damaged_settings_are_named(tmp_path: Path, file: str) -> None:
    write_pair(tmp_path, gpt2_like())
    (tmp_path / file).write_text("{")
    with pytest.raises(ValueError, match=rf"{file}.*(damaged|cannot be read|incomplete)"):
        find_vocabulary(tmp_path, N_VOCAB)


# Copies


def hard_one(folder: Path) -> HuggingFaceTokenizer:
    """Return a vocabulary with everything: two files, missing bytes, added tokens after a gap, a prefix, ends."""
    lacking = [letter(byte) for byte in (*NEVER_IN_UTF8, 0xE4)]
    write_pair(folder, without(gpt2_like(), lacking))
    form = {"lstrip": False, "rstrip": True, "special": True}
    settings = {
        "tokenizer_class": "Qwen2Tokenizer",
        "add_prefix_space": True,
        "add_bos_token": True,
        "bos_token": "<|endoftext|>",
        "eos_token": "<end>",
        "added_tokens_decoder": {
            "800": form | {"content": "<end>"},
            "810": form | {"content": "word", "rstrip": False, "special": False},
        },
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "generation_config.json").write_text('{"eos_token_id": [800, 9]}')
    found = find_vocabulary(folder, N_VOCAB)
    assert isinstance(found, HuggingFaceTokenizer)
    assert found.prefix_ids
    return found


def same(one: Vocabulary, other: Vocabulary) -> bool:
    message = [{"role": "user", "content": "a word <end>"}]
    return (
        all(one.encode(text) == other.encode(text) for text in [*texts(200), "a word <end>"])
        and all(one.encode_continuation(text) == other.encode_continuation(text) for text in texts(200))
        and [one.token_bytes(i) for i in range(N_VOCAB)] == [other.token_bytes(i) for i in range(N_VOCAB)]
        and one.encode_chat(message) == other.encode_chat(message)
        and (one.eot_id, one.eot_ids, one.special_ids) == (other.eot_id, other.eot_ids, other.special_ids)
        and (one.prefix_ids, one.strips_space) == (other.prefix_ids, other.strips_space)
    )


def test_a_pickled_vocabulary_is_the_same(tmp_path: Path) -> None:
    found = hard_one(tmp_path)
    assert same(pickle.loads(pickle.dumps(found)), found)


@pytest.mark.parametrize("to", ["ours", "hf"])
def test_a_saved_model_has_the_same_vocabulary(tmp_path: Path, to: str) -> None:
    (tmp_path / "theirs").mkdir()
    found = hard_one(tmp_path / "theirs")
    model = GPT(GPTConfig(N_VOCAB, 8, 1, 1, 2), generator=torch.Generator().manual_seed(0))
    if to == "ours":
        save_model(tmp_path / "saved", model, found)
    else:
        save_hugging_face(model, tmp_path / "saved", found)
    assert same(load_model(tmp_path / "saved").tokenizer, found)


def test_a_padded_vocabulary_of_gpt2_is_saved_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    found = find_vocabulary(tmp_path / "first", 50304)
    save_model(tmp_path / "saved", GPT(GPTConfig(50304, 8, 1, 1, 2)), found)
    again = load_model(tmp_path / "saved").tokenizer
    assert (tmp_path / "saved" / "vocab.tiktoken").is_file()
    assert again.n_vocab == 50304
    assert again.encode("Hello, I am") == gpt2_tokenizer().encode("Hello, I am")


def test_a_vocabulary_with_bytes_as_fallback_keeps_an_unknown_token(tmp_path: Path) -> None:
    """If a byte is missing, the library writes "<unk>", which can make up a whole text."""
    theirs = without(sentence_piece(["<unk>", "<s>"], prepend=""), ["<0xF0>"])
    theirs.save(str(tmp_path / "tokenizer.json"))
    assert theirs.token_to_id("<unk>") in find_vocabulary(tmp_path, N_VOCAB).encode("a \U0001f9ff b")
