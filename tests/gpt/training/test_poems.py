"""Poems as a training text, and a vocabulary of their characters."""

from __future__ import annotations

import pytest
import torch

from gpt.tokenizer import END_OF_TEXT
from gpt.training.data import StoryDataset, character_vocabulary
from gpt.training.evaluation import score_stories
from gpt.training.recipe import Recipe
from tools.poems import Poem, distinct, prepared, write_prepared

SPRING = "春晓\n春眠不觉晓，处处闻啼鸟。\n夜来风雨声，花落知多少？"
MOON = "床前明月光，疑是地上霜。\n举头望明月，低头思故乡。"


def test_a_poem_has_a_title_and_verses():
    poem = Poem.of_text(SPRING)
    assert poem.title == "春晓"
    assert poem.text.startswith("《春晓》\n春眠")
    assert Poem.of_text(poem.text) == poem
    assert poem.verses == ["春眠不觉晓", "处处闻啼鸟", "夜来风雨声", "花落知多少"]
    assert Poem.of_text(MOON).title == ""


@pytest.mark.parametrize(
    ("text", "is_regulated"),
    [
        (SPRING, True),
        (MOON, True),
        ("床前明月光，疑是地上霜。", False),  # two verses
        ("床前明月光，疑是地上霜。\n举头望月，低头思故乡。", False),
        ("床前明月光，疑是地上霜。\n举头望明月，低头思故乡", False),
        ("", False),
    ],
)
def test_a_regulated_poem_has_four_or_eight_verses_of_one_length(text, is_regulated):
    assert Poem.of_text(text).is_regulated == is_regulated


def test_of_poems_that_share_half_their_verses_one_is_kept_and_some_lose_their_title(tmp_path):
    spring, moon = Poem.of_text(SPRING), Poem.of_text(MOON)
    half = Poem("又", (spring.couplets[0], "一二三四五，六七八九十。"))
    assert list(distinct([spring, half, moon, moon])) == [spring, moon]
    many = [Poem("题", (f"{i:05d}，{i + 500:05d}。",) * 2) for i in range(400)]
    assert 0.1 < sum(not text.startswith("《") for text in prepared(many)) / 400 < 0.3
    (tmp_path / "poems.txt").write_text(f"{SPRING}\n{END_OF_TEXT}\n{MOON}\n{END_OF_TEXT}\n", encoding="utf-8")
    write_prepared(str(tmp_path / "poems.txt"), str(tmp_path / "out.txt"))
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").count(END_OF_TEXT) == 2


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
