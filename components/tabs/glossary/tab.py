"""The Words tab."""

from __future__ import annotations

from typing import Any

from components.cards.card import Card, add_cards
from components.events import Events
from components.i18n import t
from components.i18n.glossary import GLOSSARY
from components.parts import question
from components.render import View
from components.state.snapshot import Snapshot
from components.widgets.table import table

NAME = "glossary"


def build_glossary(events: Events) -> None:
    """Build the tab."""
    words = Card("glossary", question("glossary.question"), table("glossary-words", words_from=1))
    add_cards(events, NAME, [words], [View("glossary-words", rows)])


def rows(s: Snapshot) -> dict[str, Any]:
    """List the terms in the order of the glossary file."""
    head = [t("glossary.word"), t("glossary.says")]
    return {"rows": [head, *([term["word"], term["says"]] for term in GLOSSARY[s.language])]}
