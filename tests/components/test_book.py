"""The course as a book in each language: contents, steps, numbers, exercises with answers, glossary."""

from __future__ import annotations

import re
from html import escape

import pytest
import torch

from components.book import write_books
from components.i18n.catalogue import GLOSSARY
from gpt.course.check import expected_of
from gpt.course.command_line import main
from gpt.course.steps import LANGUAGES, STEPS


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the book's text by language, with slow computations replaced by made-up results."""
    folder = tmp_path_factory.mktemp("book")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("components.book.expected_of", lambda test: torch.zeros(1) if test.is_long else expected_of(test))
        assert main(["book", str(folder)], "glassbox course", write_books) == 0
    return {path.stem.removeprefix("my_gpt."): path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_it_is_there_in_each_language_with_all_steps_and_words(books: dict[str, str]) -> None:
    assert set(books) == set(LANGUAGES)
    for language, text in books.items():
        places = re.findall(r'href="#([\w-]+)"', text)
        assert places == [f"step-{key}" for key in STEPS] + ["answers", "glossary"]
        assert all(f'id="{place}"' in text for place in places)
        assert all(escape(term["says"]) in text for term in GLOSSARY[language])
        assert not re.search(r"\{\w+\}", text[text.index("</style>") :].replace("{self.n_", ""))
