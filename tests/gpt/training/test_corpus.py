from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import ByteLevelBPETokenizer

from gpt.training.data import (
    StoryRows,
    encode_stories,
    read_stories,
    split_stories,
    train_tokenizer,
    train_vocabulary,
)


class Numbers:
    """A tokenizer for stories written as ids, such as "5 6 7"; end-of-text is 0."""

    eot_id = 0

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]


def distinct_stories(lengths: list[int]) -> list[str]:
    """Return stories in which no id occurs twice."""
    ends = np.cumsum(lengths)
    return [" ".join(str(i) for i in range(end - n + 1, end + 1)) for n, end in zip(lengths, ends, strict=True)]


def test_stories_are_split_at_end_of_text_and_stripped(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(
        "One.\n\nStill one.\n<|endoftext|>\n\n  Zwei: äöü 🙂 \n<|endoftext|>\n \n<|endoftext|>\n", encoding="utf-8"
    )
    assert read_stories(path) == ["One.\n\nStill one.", "Zwei: äöü 🙂"]


def test_a_text_without_end_of_text_is_one_story(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("First line\nsecond line\n", encoding="utf-8")
    assert read_stories(path) == ["First line\nsecond line"]


def test_a_file_saved_on_windows_has_the_stories_of_the_same_file_saved_elsewhere(tmp_path: Path) -> None:
    plain, windows = tmp_path / "plain.txt", tmp_path / "windows.txt"
    text = "Zwei: äöü\nOne.\n<|endoftext|>\nTwo.\n"
    plain.write_text(text, encoding="utf-8")
    windows.write_text(text, encoding="utf-8-sig", newline="\r\n")
    assert windows.read_bytes().startswith(b"\xef\xbb\xbfZwei: \xc3\xa4\xc3\xb6\xc3\xbc\r\n")
    assert read_stories(windows) == read_stories(plain) == ["Zwei: äöü\nOne.", "Two."]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "there is no file"),
        (b"", "contains no text"),
        (b" \n<|endoftext|>\n", "contains no text"),
        (b"a\xff", "UTF-8"),
    ],
)
def test_files_without_text_are_refused(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        read_stories(path)


@pytest.mark.parametrize("held_back", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("n", [2, 3, 50])
def test_every_story_is_in_exactly_one_part_and_no_part_is_empty(n: int, held_back: float) -> None:
    stories = [f"story {i}" for i in range(n)]
    training, validation = split_stories(stories, held_back, seed=1)
    assert sorted(training + validation) == sorted(stories)
    assert training
    assert len(validation) == min(max(1, round(n * held_back)), n - 1)


def test_the_end_of_a_single_story_is_held_back() -> None:
    assert split_stories(["abcdefghij"], 0.2, seed=1) == (["abcdefgh"], ["ij"])
    assert split_stories(["abcdefghij"], 0.0, seed=1) == (["abcdefghi"], ["j"])


def test_merges_are_those_computed_by_hand() -> None:
    # Words "abab", " abab", " ab": the pair "a", "b" occurs five times. The pairs " ", "ab" and "ab", "ab" then tie at
    # two, and the lower ids win. Finally "ab", "ab" and " ab", "ab" tie at one, in this order.
    vocabulary = train_vocabulary(["abab abab ab"], vocab_size=260)
    assert {token: rank for token, rank in vocabulary.items() if rank >= 256} == {b"ab": 256, b" ab": 257, b"abab": 258}


def test_a_vocabulary_has_every_byte_and_reserves_the_last_id_for_end_of_text() -> None:
    stories = ["The cat sat on the mat. It's 12 o'clock, the cat sat."] * 3
    vocabulary = train_vocabulary(stories, vocab_size=270)
    assert sorted(vocabulary.values()) == list(range(269))
    assert all(bytes([byte]) in vocabulary for byte in range(256))
    tokenizer = train_tokenizer(stories, 270)
    assert (tokenizer.n_vocab, tokenizer.eot_id) == (270, 269)
    for text in (stories[0], "Über 🙂 \x00 \n\n  x", "<|endoftext|>"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert tokenizer.eot_id not in tokenizer.encode(text)


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
    for row in StoryRows([" ".join(story) for story in stories], Numbers(), block_size=12, seed=3).epoch(0):
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


def test_most_rows_start_at_a_story_and_a_quarter_omit_its_end_of_text() -> None:
    stories = distinct_stories([9] * 2000)
    epoch = StoryRows(stories, Numbers(), block_size=12, seed=3).epoch(0)
    first_ids = {int(story.split()[0]) for story in stories}
    assert np.mean(epoch[:, 0] == 0) == pytest.approx(0.65, abs=0.05)
    assert np.mean([int(i) in first_ids for i in epoch[:, 0]]) == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize("batch_size", [3, 70])  # 70 is more than an epoch
def test_batches_from_a_start_equal_those_of_a_full_iteration(batch_size: int) -> None:
    rows = StoryRows(distinct_stories([9] * 50), Numbers(), block_size=12, seed=3)
    from_the_start, later = rows.batches(batch_size), rows.batches(batch_size, start=20)
    for _ in range(20):
        next(from_the_start)
    for _ in range(20):
        batch = next(later)
        assert batch.shape == (batch_size, 13)
        assert np.array_equal(batch, next(from_the_start))


def test_batches_continue_across_epochs() -> None:
    rows = StoryRows(distinct_stories([9] * 50), Numbers(), block_size=12, seed=3)
    epochs = np.concatenate([rows.epoch(0), rows.epoch(1)])
    batches = rows.batches(4)
    for at in range(0, len(epochs) - 4, 4):
        assert np.array_equal(next(batches), epochs[at : at + 4])


@pytest.mark.parametrize("part", ["training", "held-back"])
def test_a_text_shorter_than_a_row_is_refused_with_both_lengths(part: str) -> None:
    stories = ["1 2 3", "4 5 6 7"]  # nine tokens, including two end-of-text
    assert len(encode_stories(stories, Numbers(), 8, part)) == 2
    with pytest.raises(ValueError, match=rf"the {part} text has 9 tokens: .* context of 9"):
        encode_stories(stories, Numbers(), 9, part)
    with pytest.raises(ValueError, match="the training text has 9 tokens"):
        StoryRows(stories, Numbers(), block_size=9, seed=0)
