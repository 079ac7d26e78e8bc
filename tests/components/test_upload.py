"""What is said of a checkpoint that was opened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.tabs.playground.upload import opened_sentence
from gpt import get_model
from gpt.models.checkpoints.vocabularies import Characters, PlainIds
from gpt.tokenizer import Vocabulary


@pytest.mark.parametrize(
    ("vocabulary", "told"),
    [
        (Characters(["a", "b"]), ("single characters", "单个字符")),
        (PlainIds(2), ("write token ids", "词元编号")),
        (None, ("tokens made of bytes", "字节组成的词元")),
    ],
)
def test_layout_shape_and_kind_of_vocabulary_are_named(vocabulary: Vocabulary | None, told: tuple[str, str]) -> None:
    loaded = get_model()
    config = loaded.model.config
    for language, kind in zip(("en", "zh"), told, strict=True):
        said = opened_sentence(replace(loaded, tokenizer=vocabulary or loaded.tokenizer), language)
        assert said.startswith(loaded.layout)
        assert kind in said
        for number in (config.n_layer, config.n_head, config.n_embd, config.block_size, config.vocab_size):
            assert f"{number:,}" in said
