"""Training texts: stories, characters, poems, batches, and the score of a text."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import ByteLevelBPETokenizer

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.loading import LoadedModel
from gpt.tokenizer import END_OF_TEXT, Tokenizer, Vocabulary
from gpt.training.data import (
    BYTES,
    StoryDataset,
    TextDataset,
    character_vocabulary,
    encode_stories,
    epoch_rows,
    first_words,
    read_stories,
    shakespeare_text,
    split_stories,
    story_batches,
    train_tokenizer,
)
from gpt.training.evaluation import Score, sample, score_stories, windows
from gpt.training.recipe import Recipe


class Numbers:
    """A tokenizer for stories written as ids, such as "5 6 7"; end-of-text is 0."""

    eot_id = 0

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]


def distinct_stories(lengths: list[int]) -> list[str]:
    """Return stories in which no id occurs twice."""
    ends = np.cumsum(lengths)
    return [" ".join(str(i) for i in range(end - n + 1, end + 1)) for n, end in zip(lengths, ends, strict=True)]


@pytest.mark.parametrize("saved", [{"encoding": "utf-8"}, {"encoding": "utf-8-sig", "newline": "\r\n"}])
def test_stories_are_split_at_end_of_text_and_stripped(tmp_path: Path, saved: dict[str, str]) -> None:
    path = tmp_path / "text.txt"
    path.write_text("One.\n\nStill one.\n<|endoftext|>\n\n  Zwei: äöü 🙂 \n<|endoftext|>\n \n<|endoftext|>\n", **saved)
    assert read_stories(path) == ["One.\n\nStill one.", "Zwei: äöü 🙂"]


def test_every_story_is_in_exactly_one_part_and_no_part_is_empty() -> None:
    for n, held_back in ((2, 0.0), (2, 1.0), (3, 0.5), (50, 0.02)):
        stories = [f"story {i}" for i in range(n)]
        training, validation = split_stories(stories, held_back, seed=1)
        assert sorted(training + validation) == sorted(stories)
        assert training
        assert len(validation) == min(max(1, round(n * held_back)), n - 1)


def test_merges_are_those_computed_by_hand() -> None:
    # Words "abab", " abab", " ab": the pair "a", "b" occurs five times. The pairs " ", "ab" and "ab", "ab" then tie at
    # two, and the lower ids win. Finally "ab", "ab" and " ab", "ab" tie at one, in this order.
    tokenizer = train_tokenizer(["abab abab ab"], vocab_size=260)
    assert [tokenizer.token_bytes(i) for i in range(256, 259)] == [b"ab", b" ab", b"abab"]
    assert (tokenizer.n_vocab, tokenizer.eot_id) == (260, 259)


def test_encoding_is_that_of_the_tokenizers_library() -> None:
    stories = ["Once upon a time, Lily's dog didn't bark 3 times.\n\nHe said: \"No!\"  Then  he   ran. Über 🙂"] * 2
    reference = ByteLevelBPETokenizer()
    reference.train_from_iterator(stories, vocab_size=299, min_frequency=0, show_progress=False)
    tokenizer = train_tokenizer(stories, 300)
    for text in (stories[0], "Lily ran  once, then\n twice... ", "Ünknown wörds 🙃"):
        assert tokenizer.encode(text) == reference.encode(text).ids


def test_a_row_consists_of_whole_stories_except_at_its_ends() -> None:
    stories = [story.split() for story in distinct_stories([3, 9, 1, 30, 5, 7, 7, 2] * 4)]
    story_of = {word: story for story in stories for word in story}
    documents = encode_stories([" ".join(story) for story in stories], Numbers(), 12, "training")
    for row in epoch_rows(documents, Recipe(block_size=12, seed=3), 0):
        assert len(row) == 13
        parts: list[list[str]] = [[]]
        for i in row:
            if i == 0:
                parts.append([])
            else:
                parts[-1].append(str(i))
        first, *others = parts
        if first:
            story = story_of[first[0]]
            begin = story.index(first[0])
            assert first == (story[begin:] if others else story[begin : begin + 13])
        assert all(part == story_of[part[0]] for part in others[:-1])
        assert all(part == story_of[part[0]][: len(part)] for part in others[-1:] if part)


@pytest.mark.parametrize("batch_size", [3, 70])  # 70 is more than an epoch
def test_batches_from_a_start_equal_those_of_a_full_iteration(batch_size: int) -> None:
    documents = encode_stories(distinct_stories([9] * 50), Numbers(), 12, "training")
    recipe = Recipe(block_size=12, seed=3)
    from_the_start, later = (story_batches(documents, recipe, batch_size, start) for start in (0, 20))
    for _ in range(20):
        next(from_the_start)
    for _ in range(20):
        batch = next(later)
        assert batch.shape == (batch_size, 13)
        assert np.array_equal(batch, next(from_the_start))


@pytest.mark.parametrize("part", ["training", "held-back"])
def test_a_text_shorter_than_a_row_is_refused_with_both_lengths(part: str) -> None:
    stories = ["1 2 3", "4 5 6 7"]  # nine tokens, including two end-of-text
    assert len(encode_stories(stories, Numbers(), 8, part)) == 2
    with pytest.raises(ValueError, match=rf"the {part} text has 9 tokens: .* context of 9"):
        encode_stories(stories, Numbers(), 9, part)


TEXT = "".join(f"{n} bottles of tea on the wall\n" for n in range(99))


def test_a_pasted_byte_order_mark_is_not_learned_and_one_inside_the_text_is() -> None:
    text = TEXT[:500] + "\ufeff" + TEXT[500:]
    learned, plain = (TextDataset(start + text) for start in ("\ufeff", ""))
    assert learned.training_ids.tolist() == plain.training_ids.tolist()
    assert learned.vocabulary.decode(learned.training_ids.tolist()[:600]).count("\ufeff") == 1
    assert learned.start == plain.start


@pytest.mark.parametrize(
    ("text", "vocabulary", "said"),
    [
        ("short", None, "the text has 5 characters: with a context of 64 it needs 260"),
        ("short", BYTES, "the text has 5 bytes: with a context of 64 it needs 260"),
        ("a" * 5000, None, "repeats a single character"),
    ],
)
def test_invalid_texts_are_refused(text: str, vocabulary: Vocabulary | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TextDataset(text, vocabulary=vocabulary)


@pytest.mark.parametrize("vocabulary", [None, BYTES])
def test_the_held_back_end_is_in_no_batch(vocabulary: Vocabulary | None) -> None:
    dataset = TextDataset(TEXT, vocabulary=vocabulary, block_size=16)
    whole = dataset.vocabulary.encode(TEXT) if vocabulary is None else list(TEXT.encode())
    assert [*dataset.training_ids.tolist(), *dataset.validation_ids.tolist()] == whole
    assert len(dataset.training_ids) == int(0.9 * len(whole))
    batch = dataset.batch(0, 64)
    text = dataset.vocabulary.decode(dataset.training_ids.tolist())
    for row, following in zip(batch.idx.tolist(), batch.targets.tolist(), strict=True):
        assert dataset.vocabulary.decode(row) in text
        assert row[1:] == following[:-1]
    end = dataset.vocabulary.decode(dataset.validation_ids.tolist())
    assert all(dataset.vocabulary.decode(row) in end for row in dataset.validation.targets.tolist())


def test_shakespeares_text_is_split_as_nanogpt_splits_it() -> None:
    dataset = TextDataset(shakespeare_text())
    # Printed by nanoGPT's data/shakespeare_char/prepare.py.
    assert "".join(dataset.vocabulary.tokens) == ("\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    assert (len(dataset.training_ids), len(dataset.validation_ids)) == (1_003_854, 111_540)
    assert dataset.start == "First Citizen:"


def test_the_first_words_are_the_first_line_or_three_words_of_it() -> None:
    assert first_words("\n\nAct I\nScene") == "Act I"
    assert first_words("It was the best of times, it was the worst of times") == "It was the"
    assert first_words("词" * 99) == "词" * 32
    assert TextDataset(TEXT, block_size=16).start == "0"  # half a context would not fit more


def test_line_ends_and_unpaired_surrogates_are_replaced() -> None:
    dataset = TextDataset(TEXT.replace("\n", "\r\n") + "\ud83d")
    assert "\r" not in dataset.vocabulary.tokens
    assert "\ufffd" in dataset.vocabulary.tokens


def test_stories_can_be_read_by_characters_of_which_the_rare_are_neither_learned_nor_scored(tmp_path):
    vocabulary = character_vocabulary(["aab", "aac"], 4)
    assert vocabulary.tokens == ["<unk>", "a", "b", END_OF_TEXT]
    path = tmp_path / "text.txt"
    path.write_text(END_OF_TEXT.join(["aab" * 20, "aac" * 20, "aaa" * 20, "aba" * 20]), encoding="utf-8")
    recipe = Recipe(vocabulary="characters", vocab_size=257, block_size=8, held_back=0.25, n_layer=1, n_embd=12)
    corpus = StoryDataset(path, recipe, vocabulary)
    batch = next(corpus.batches(64, 0))
    assert (batch.idx == vocabulary.unknown_id).any()
    assert not (batch.targets == vocabulary.unknown_id).any()
    model = recipe.new_model(vocabulary.n_vocab).eval()
    known, unknown = (score_stories(model, vocabulary, [text]) for text in ("ab", "abc"))
    assert unknown.n_tokens == known.n_tokens == 2
    assert unknown.nats == pytest.approx(known.nats)
    assert torch.isfinite(torch.tensor(known.loss))


@pytest.fixture
def tiny(byte_tokenizer: Tokenizer) -> GPT:
    """A random model with weights large enough that predictions depend on every position."""
    model = GPT(GPTConfig(vocab_size=byte_tokenizer.n_vocab, block_size=12, n_layer=2, n_head=2, n_embd=16))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


@pytest.mark.parametrize(("block_size", "length"), [(1, 5), (5, 6), (8, 17)])
def test_every_token_after_the_first_is_a_target_once_with_at_least_half_a_context_before_it(
    block_size: int, length: int
) -> None:
    counted = []
    for inputs, targets in windows(list(range(length)), block_size, max(1, block_size // 2)):
        assert 1 <= len(inputs) == len(targets) <= block_size
        assert inputs == list(range(inputs[0], inputs[0] + len(inputs)))
        for context, (before, target) in enumerate(zip(inputs, targets, strict=True), start=1):
            if target != -100:
                assert target == before + 1
                assert context >= min(target, math.ceil(block_size / 2))
                counted.append(target)
    assert counted == list(range(1, length))


def test_score_is_the_sum_over_single_tokens(tiny: GPT, byte_tokenizer: Tokenizer) -> None:
    stories = [
        "a",
        "the the",
        "Eleven the!",
        "x" * 12,
        "Longer than one context, the end.",
        "Über 🙂 and on and on and on",
    ]
    block, half = tiny.config.block_size, tiny.config.block_size // 2
    nats, n_tokens = 0.0, 0
    for story in stories:
        ids = [byte_tokenizer.eot_id, *byte_tokenizer.encode(story)]
        for at in range(1, len(ids)):
            start = half * max(0, math.ceil((at - block) / half))  # the first window that contains this token
            with torch.no_grad():
                logits = tiny(torch.tensor([ids[start:at]]))[0, -1].double()
            nats -= logits.log_softmax(dim=-1)[ids[at]].item()
            n_tokens += 1
    score = score_stories(tiny, byte_tokenizer, stories, batch_size=3)
    assert score.nats == pytest.approx(nats, rel=1e-6)
    assert score.n_tokens == n_tokens
    assert score.n_bytes == sum(len(story.encode()) for story in stories)
    assert score.bits_per_byte == pytest.approx(nats / math.log(2) / score.n_bytes, rel=1e-6)


@torch.no_grad()
def test_without_end_of_text_a_text_is_scored_from_its_second_token_on(tiny: GPT, byte_tokenizer: Tokenizer) -> None:
    byte_tokenizer.eot_id = None
    score = score_stories(tiny, byte_tokenizer, ["ä the"])
    ids = torch.tensor([[*"ä".encode(), 258]])
    nats = torch.nn.functional.cross_entropy(tiny(ids[:, :-1])[0], ids[0, 1:], reduction="sum").item()
    assert score == Score(pytest.approx(nats, rel=1e-6), n_tokens=2, n_bytes=5)


def test_a_sample_is_determined_by_its_seed(tiny: GPT, byte_tokenizer: Tokenizer) -> None:
    loaded = LoadedModel("tiny", tiny, byte_tokenizer, torch.device("cpu"), "fp32")
    texts = [sample(loaded, "Once", seed=seed, max_new_tokens=8) for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]
