"""A text as a dataset: rejected texts, and batches."""

from __future__ import annotations

import pytest

from gpt.training.data import TextDataset, first_words, read_upload, shakespeare_text

TEXT = "".join(f"{n} bottles of tea on the wall\n" for n in range(99))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\xfe\x00", "tea.txt is not UTF-8 text: byte 0 is not part of a character"),
        (b"ab\x80", "byte 2"),
        (b"a\x00b", "tea.txt is not text: it contains a zero byte"),
        (b"a" * 1_000_001, "tea.txt has 1,000,001 bytes, more than the limit of 1,000,000"),
    ],
)
def test_uploads_that_are_not_text_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_upload(data, "tea.txt")


def test_an_upload_is_read_without_its_byte_order_mark() -> None:
    assert read_upload("\ufeffTee für zwei".encode()) == "Tee für zwei"


@pytest.mark.parametrize("units", ["characters", "bytes"])
def test_a_pasted_byte_order_mark_is_not_learned_and_one_inside_the_text_is(units: str) -> None:
    text = TEXT[:500] + "\ufeff" + TEXT[500:]
    learned, plain = (TextDataset(start + text, units=units) for start in ("\ufeff", ""))
    assert learned.training_ids.tolist() == plain.training_ids.tolist()
    assert learned.vocabulary.decode(learned.training_ids.tolist()[:600]).count("\ufeff") == 1
    assert learned.start == plain.start


@pytest.mark.parametrize(
    ("text", "units", "said"),
    [
        ("", "characters", "the text is empty"),
        (" \n\t", "bytes", "the text is empty"),
        ("short", "characters", "the text has 5 characters: with a context of 64 it needs 260"),
        ("short", "bytes", "the text has 5 bytes: with a context of 64 it needs 260"),
        ("a" * 5000, "characters", "repeats a single character"),
        (TEXT, "words", "units must be one of characters, bytes, not 'words'"),
    ],
)
def test_invalid_texts_are_refused(text: str, units: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TextDataset(text, units=units)


@pytest.mark.parametrize("units", ["characters", "bytes"])
def test_the_held_back_end_is_in_no_batch(units: str) -> None:
    dataset = TextDataset(TEXT, units=units, block_size=16)
    whole = dataset.vocabulary.encode(TEXT) if units == "characters" else list(TEXT.encode())
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
