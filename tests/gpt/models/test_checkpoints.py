"""Our own format, vocabularies beside weights, and how models come into memory."""

from __future__ import annotations

import base64
import json
import weakref
from pathlib import Path

import pytest
import torch

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints import Checkpoint, checkpoint, convert, open_checkpoint, save_hugging_face, save_model
from gpt.models.checkpoints.bpe_files import read_gpt2_files, write_gpt2_files
from gpt.models.checkpoints.vocabularies import Characters, PlainIds, find_vocabulary, gpt2_or_ids
from gpt.models.loading import Precision, memory_of
from gpt.models.memory import format_bytes, free_memory
from gpt.models.sources import load_model
from gpt.tokenizer import Tokenizer

TEXTS = ["Hello, I am", "the tree thought", "  two  spaces\n\n\ttab", "wörld 你好 🙂", "<|endoftext|>", "x" * 50, ""]
CONFIGS = {
    "plain": {},
    "untied": {"tie_weights": False},
    "no-biases": {"bias": False},
    "no-qkv-bias": {"qkv_bias": False},
    "rotary": {"position": "rotary"},
    "narrow-relu": {"n_ff": 20, "activation": "relu"},
}


def tiny(**options: object) -> GPT:
    config = GPTConfig(**{"vocab_size": 261, "block_size": 16, "n_layer": 2, "n_head": 2, "n_embd": 16, **options})
    model = GPT(config)
    for parameter in model.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


@pytest.mark.parametrize("options", CONFIGS.values(), ids=CONFIGS)
def test_saved_model_comes_back_equal(tmp_path: Path, byte_tokenizer: Tokenizer, options: dict[str, object]) -> None:
    model = tiny(**options)
    save_model(tmp_path, model, byte_tokenizer, dtype=torch.float32)
    loaded = load_model(tmp_path, device="cpu")
    assert loaded.model.config == model.config
    assert not loaded.model.training
    assert (loaded.model.lm_head.weight is loaded.model.wte.weight) == model.config.tie_weights
    state = loaded.model.state_dict()
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())
    assert [loaded.tokenizer.encode(text) for text in TEXTS] == [byte_tokenizer.encode(text) for text in TEXTS]


def test_half_precision_files_load_in_float32_and_bfloat16(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    model = tiny()
    save_model(tmp_path, model, byte_tokenizer)
    assert open_checkpoint(tmp_path).dtype == torch.float16
    idx = torch.arange(16)[None]
    full, half = load_model(tmp_path, device="cpu"), load_model(tmp_path, device="cpu", precision="bf16")
    assert {p.dtype for p in full.model.parameters()} == {torch.float32}
    assert torch.equal(half.model.wte.weight, full.model.wte.weight.bfloat16().float())
    torch.testing.assert_close(full.model(idx), model(idx), atol=0.02, rtol=0)
    torch.testing.assert_close(half.model(idx).float(), model(idx), atol=0.2, rtol=0)


def test_converting_keeps_the_stored_precision_bit_for_bit(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        save_model(tmp_path / "a", tiny(), byte_tokenizer, dtype=dtype)
        convert(tmp_path / "a", tmp_path / "b")
        for name in ("config.json", "model.safetensors", "vocab.tiktoken"):
            assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_opening_reads_no_weights_and_counts_their_memory(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    model = tiny(tie_weights=False)
    save_model(tmp_path, model, byte_tokenizer)
    opened = open_checkpoint(tmp_path)
    numbers = sum(p.numel() for p in model.parameters())
    assert opened.n_bytes() == 4 * numbers
    assert opened.n_bytes(torch.bfloat16) == 2 * numbers


def test_model_saved_over_another_replaces_its_vocabulary(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    save_model(tmp_path, tiny(), byte_tokenizer)
    (tmp_path / "README.md").write_text("a card")
    save_model(tmp_path, tiny(vocab_size=3), Characters(["a", "b", "\n"]))
    assert load_model(tmp_path).tokenizer.encode("b\na") == [1, 2, 0]
    assert sorted(f.name for f in tmp_path.iterdir()) == [
        "README.md",
        "characters.json",
        "config.json",
        "model.safetensors",
    ]


def test_files_of_a_saved_model_can_be_read_by_all(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    save_model(tmp_path, tiny(), byte_tokenizer)
    assert len({file.stat().st_mode for file in tmp_path.iterdir()}) == 1


def test_characters_are_tokens_of_their_own() -> None:
    vocabulary = Characters(["a", "é", "你", "\n"])
    assert vocabulary.encode("你a\né") == [2, 0, 3, 1]
    assert vocabulary.decode([2, 0, 3, 1]) == "你a\né"
    assert vocabulary.token_bytes(1) == "é".encode()
    assert (vocabulary.n_vocab, vocabulary.eot_id) == (4, None)
    with pytest.raises(ValueError, match="token id 4 does not exist"):
        vocabulary.token_bytes(4)


def test_plain_ids_are_read_and_written_as_numbers() -> None:
    vocabulary = PlainIds(100)
    assert vocabulary.encode(" 5 0\n99 ") == [5, 0, 99]
    assert vocabulary.encode(vocabulary.decode([5, 0, 99])) == [5, 0, 99]
    assert vocabulary.token_bytes(7) == b" 7"
    assert (vocabulary.n_vocab, vocabulary.eot_id) == (100, None)
    for text, said in (("hello", "not 'hello'"), ("100", "token id 100"), ("-1", "not '-1'"), ("1" * 30, "0 to 99")):
        with pytest.raises(ValueError, match=said):
            vocabulary.encode(text)


def test_model_without_vocabulary_gets_plain_ids(tmp_path: Path) -> None:
    save_model(tmp_path, tiny(), PlainIds(261))
    assert isinstance(load_model(tmp_path).tokenizer, PlainIds)


def test_gpt2_sized_model_without_vocabulary_gets_plain_ids_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline() -> Tokenizer:
        raise ConnectionError("no network")

    monkeypatch.setattr("gpt.models.checkpoints.vocabularies.gpt2_tokenizer", offline)
    for n_vocab in (50257, 50304):
        vocabulary = gpt2_or_ids(n_vocab)
        assert (type(vocabulary), vocabulary.n_vocab, vocabulary.eot_id) == (PlainIds, n_vocab, None)
        with pytest.raises(ValueError, match="GPT-2's vocabulary is not on this computer and could not be fetched"):
            vocabulary.encode("Hello")


@pytest.mark.parametrize("device", ["bogus", "cuda:99", "meta?", "meta", 3.5])
def test_a_device_that_is_not_there_is_refused_with_a_sentence(device: object) -> None:
    with pytest.raises(ValueError, match="this computer has no device"):
        load_model("stories", device=device)


def test_a_number_of_heads_that_contradicts_the_bundled_model_is_refused() -> None:
    with pytest.raises(ValueError, match="n_head is 6 in the checkpoint, not 5"):
        load_model("stories", device="cpu", n_head=5)


def test_gpt2_sized_models_get_gpt2s_vocabulary(gpt2: Tokenizer) -> None:
    plain, rounded = gpt2_or_ids(50257), gpt2_or_ids(50304)
    for vocabulary in (plain, rounded):
        assert vocabulary.encode("Hello, I am") == [15496, 11, 314, 716]
        assert vocabulary.eot_id == 50256
    assert (plain.n_vocab, rounded.n_vocab) == (50257, 50304)
    assert rounded.token_bytes(50300) == b"<50300>"


def test_gpt2s_pair_of_files_encodes_like_tiktokens_gpt2(tmp_path: Path, gpt2: Tokenizer) -> None:
    write_gpt2_files(gpt2, tmp_path)
    found = find_vocabulary(tmp_path, 50257)
    assert [found.encode(text) for text in TEXTS] == [gpt2.encode(text) for text in TEXTS]
    assert found.encode("Every effort moves you") == [6109, 3626, 6100, 345]
    assert all(found.token_bytes(i) == gpt2.token_bytes(i) for i in range(50257))
    assert found.eot_id == gpt2.eot_id
    merges = (tmp_path / "merges.txt").read_text(encoding="utf-8").splitlines()
    assert merges[:4] == ["#version: 0.2", "Ġ t", "Ġ a", "h e"]  # as released
    assert len(merges) == 50001


def test_written_vocabulary_encodes_alike_in_transformers(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    from transformers import GPT2Tokenizer

    save_hugging_face(tmp_path, tiny(), byte_tokenizer)
    theirs = GPT2Tokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        if "<|" not in text:  # there a typed end-of-text is the control token
            assert theirs(text)["input_ids"] == byte_tokenizer.encode(text)
    assert theirs.eos_token_id == byte_tokenizer.eot_id


@pytest.mark.parametrize("more", [[], ["<pad>", "<|end|>"]], ids=["own", "with-added-tokens"])
def test_vocabulary_in_one_file_encodes_like_its_library(tmp_path: Path, more: list[str]) -> None:
    from tokenizers import ByteLevelBPETokenizer

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(["the tree thought of the three"] * 3, 300, special_tokens=["<|endoftext|>"])
    trained.add_special_tokens(more)
    trained.save(str(tmp_path / "tokenizer.json"))
    found = find_vocabulary(tmp_path, 310)
    for text in TEXTS:
        if "<|" not in text:
            assert found.encode(text) == trained.encode(text).ids
    assert found.eot_id == trained.token_to_id("<|endoftext|>")
    assert [found.token_bytes(trained.token_to_id(word)) for word in more] == [word.encode() for word in more]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("model", "type"), "Unigram", "not a byte-level BPE"),
        (("pre_tokenizer", "type"), "Whitespace", "not a byte-level BPE"),
        (("pre_tokenizer", "add_prefix_space"), True, "not a byte-level BPE"),
        (("pre_tokenizer",), [1], "not a byte-level BPE"),
        (("normalizer",), {"type": "Lowercase"}, "not a byte-level BPE"),
        (("model", "vocab"), [], "must contain tokens and merges"),
        (("model", "vocab"), {"a": "b"}, "give each token an id"),
        (("model", "merges"), [["x"]], "do not belong together"),
        (("model", "merges"), [7], "is not a vocabulary"),
        (("added_tokens",), [[]], "is not a vocabulary"),
        (("added_tokens",), [{"special": False}], "adds None"),
    ],
)
def test_vocabulary_of_another_kind_is_refused(
    tmp_path: Path, place: tuple[str, ...], value: object, said: str
) -> None:
    from tokenizers import ByteLevelBPETokenizer

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(["the tree thought"], 260)
    whole = part = json.loads(trained.to_str())
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    with pytest.raises(ValueError, match=rf"tokenizer\.json.*{said}"):
        find_vocabulary(tmp_path, 300)


def test_special_tokens_before_the_bytes_keep_their_ids(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    write_gpt2_files(byte_tokenizer, folder)
    words = json.loads((folder / "vocab.json").read_text())
    moved = {"<s>": 0, "<pad>": 1} | {word: i + 2 for word, i in words.items()}
    (folder / "vocab.json").write_text(json.dumps(moved))
    found = find_vocabulary(folder, 270)
    assert found.encode("the") == [i + 2 for i in byte_tokenizer.encode("the")]
    assert found.token_bytes(0) == b"<s>"
    assert found.eot_id == byte_tokenizer.eot_id + 2
    assert found.token_bytes(269) == b"<269>"
    save_model(tmp_path / "ours", tiny(vocab_size=270), found)
    again = load_model(tmp_path / "ours").tokenizer
    assert all(again.token_bytes(i) == found.token_bytes(i) for i in range(270))
    assert again.encode("the 你") == found.encode("the 你")


def test_merges_in_another_order_than_their_ids_are_refused(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    write_gpt2_files(byte_tokenizer, tmp_path)
    lines = (tmp_path / "merges.txt").read_text(encoding="utf-8").splitlines()
    (tmp_path / "merges.txt").write_text("\n".join([lines[0], *reversed(lines[1:])]), encoding="utf-8")
    with pytest.raises(ValueError, match="not in the order of the ids"):
        read_gpt2_files(tmp_path / "vocab.json", tmp_path / "merges.txt")


@pytest.mark.parametrize(
    ("words", "merges"),
    [('{"a": 0}', ""), ('{"a": -1}', ""), ("{}", ""), ('{"a": "b"}', ""), (None, "Ġ t x\n"), (None, "Ġ 你\n")],
)
def test_pair_of_files_that_is_none_is_refused(
    tmp_path: Path, byte_tokenizer: Tokenizer, words: str | None, merges: str
) -> None:
    write_gpt2_files(byte_tokenizer, tmp_path)
    if words is not None:
        (tmp_path / "vocab.json").write_text(words)
    (tmp_path / "merges.txt").write_text(merges, encoding="utf-8")
    with pytest.raises(ValueError, match=r"vocab\.json"):
        read_gpt2_files(tmp_path / "vocab.json", tmp_path / "merges.txt")


def test_byte_vocabulary_is_written_as_it_was_read(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    save_model(tmp_path, tiny(), byte_tokenizer)
    lines = (tmp_path / "vocab.tiktoken").read_text().splitlines()
    assert len(lines) == 260
    assert base64.b64decode(lines[258].split()[0]) == b" the"


def test_free_memory_stays_within_the_containers_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpt.models.memory.MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr("gpt.models.memory.CGROUP", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal:  64000000 kB\nMemAvailable:  1000000 kB\n")
    assert free_memory() == 1_024_000_000
    (tmp_path / "memory.max").write_text("800000000\n")
    (tmp_path / "memory.current").write_text("500000000\n")
    (tmp_path / "memory.stat").write_text("anon 300000000\nfile 200000000\n")
    assert free_memory() == 500_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory() == 1_024_000_000
    (tmp_path / "meminfo").unlink()
    assert free_memory() > 0


def test_sizes_are_written_for_people() -> None:
    assert format_bytes(652_038_144) == "0.61 GiB"
    assert format_bytes(3 * 2**20) == "3.0 MiB"


def test_a_block_is_packed_and_its_weights_are_freed_before_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny(n_layer=4)
    save_model(tmp_path, model, PlainIds(261), dtype=torch.float32)
    read: list[tuple[str, weakref.ref[torch.UntypedStorage]]] = []
    left, weight_of = [], Checkpoint._weight

    def watched(opened: Checkpoint, name: str, dtype: torch.dtype) -> torch.Tensor:
        weight = weight_of(opened, name, dtype)
        if name.startswith("h.") and weight.dim() == 2:
            left.append({block for block, storage in read if storage() is not None} - {name[:4]})
            read.append((name[:4], weakref.ref(weight.untyped_storage())))
        return weight

    monkeypatch.setattr(Checkpoint, "_weight", watched)
    idx = torch.arange(9)[None]
    with torch.inference_mode():
        assert torch.allclose(load_model(tmp_path, device="cpu").model(idx), model(idx), atol=1e-5)
    assert left == [set()] * 16


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_packed_model_needs_its_memory_and_that_of_a_part(
    tmp_path: Path, precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny(n_layer=4)
    save_model(tmp_path, model, PlainIds(261))
    part = 4 * max(model.wte.weight.numel(), sum(weight.numel() for weight in model.h[0].parameters()))
    needed = memory_of(open_checkpoint(tmp_path), precision, torch.device("cpu")) + part
    monkeypatch.setattr(checkpoint, "free_memory", lambda: needed - 1)
    with pytest.raises(ValueError, match=r"needs .* of memory, .* are free"):
        load_model(tmp_path, device="cpu", precision=precision)
    monkeypatch.setattr(checkpoint, "free_memory", lambda: needed)
    load_model(tmp_path, device="cpu", precision=precision)


def test_weights_whose_logits_overflow_are_refused_by_name(tmp_path: Path) -> None:
    model = tiny()
    for parameter in model.parameters():
        parameter.data.mul_(1e15)
    save_model(tmp_path / "burst", model, PlainIds(261), dtype=torch.float32)
    with pytest.raises(ValueError, match="burst gives logits that are NaN or infinite"):
        load_model(tmp_path / "burst")


@pytest.mark.parametrize("words", [["a", 5], [["a"], "b"], [None, "b"], ["a", "a"], ["a", "bc"]])
def test_characters_that_are_none_are_refused(tmp_path: Path, words: list[object]) -> None:
    (tmp_path / "characters.json").write_text(json.dumps(words))
    with pytest.raises(ValueError, match="lists single characters, each once"):
        find_vocabulary(tmp_path, 2)


def test_a_word_that_is_added_to_the_merges_is_refused(tmp_path: Path) -> None:
    from tokenizers import ByteLevelBPETokenizer

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(["the tree thought"], 300)
    trained.add_tokens(["hello"])
    trained.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match=r"tokenizer\.json adds 'hello'"):
        find_vocabulary(tmp_path, 310)


def test_a_vocabulary_without_some_bytes_says_which(tmp_path: Path) -> None:
    from tokenizers import Tokenizer as Trained
    from tokenizers import models, pre_tokenizers, trainers

    trained = Trained(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.train_from_iterator(["the tree thought"], trainers.BpeTrainer(vocab_size=40, show_progress=False))
    trained.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match=r"has no token for byte 33: leave it out"):
        find_vocabulary(tmp_path, 310)
