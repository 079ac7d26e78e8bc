"""The words of the page: one JSON catalogue per language, and the function that looks a sentence up."""

from components.i18n.catalogue import LANGUAGES, Language, has_text, t

__all__ = ["LANGUAGES", "Language", "has_text", "t"]
