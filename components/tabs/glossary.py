"""The Words tab."""

from __future__ import annotations

from typing import Any

from components.i18n import spoken, t
from components.i18n.catalogue import GLOSSARY
from components.kit import Tab, card, question
from components.widgets.simple import table

tab = Tab("glossary")


def terms(s: Any) -> dict[str, Any]:
    head = [t("glossary.word"), t("glossary.says")]
    return {"rows": [head, *([term["word"], term["says"]] for term in GLOSSARY[spoken()])]}


tab.cards(card("glossary", question("glossary.question"), table("glossary-words", words_from=1, draw=terms)))
