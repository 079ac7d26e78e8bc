"""The Words tab."""

from __future__ import annotations

from typing import Any

from components import kit
from components.i18n import spoken, t
from components.i18n.catalogue import GLOSSARY
from components.widgets.simple import table

tab = kit.Tab("glossary")


def terms(s: Any) -> dict[str, Any]:
    head = [t("glossary.word"), t("glossary.says")]
    return {"rows": [head, *([term["word"], term["says"]] for term in GLOSSARY[spoken()])]}


tab.cards(kit.card("glossary", kit.question("glossary.question"), table("glossary-words", words_from=1, draw=terms)))
