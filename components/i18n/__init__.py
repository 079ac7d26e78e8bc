"""The page's texts: one JSON catalogue per language, and the function `t` that looks up a text."""

from components.i18n.catalogue import LANGUAGES, Language, has_text, in_all_languages, is_exact, speaking, spoken, t

__all__ = ["LANGUAGES", "Language", "has_text", "in_all_languages", "is_exact", "speaking", "spoken", "t"]
