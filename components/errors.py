"""What went wrong, in the language of the page: `gpt` is a library and says it in English."""

from __future__ import annotations

import re
from functools import cache

from components.i18n import Language
from components.problem_texts import PROBLEMS

LONGEST = 2000  # characters of a sentence that is compared: a stranger's file may stand in it


def localize_error(problem: object, language: Language) -> str:
    """The sentence of an exception; in English where nobody has translated it, as for what other libraries say, and
    where it is very long."""
    sentence = str(problem)
    if language == "zh" and len(sentence) <= LONGEST:
        for pattern, chinese in _patterns():
            if found := pattern.fullmatch(sentence):
                return chinese.format(*found.groups())
    return sentence


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """Those that say most themselves come first: `{} is damaged: {}` would also fit what is said more exactly."""
    told = sorted(PROBLEMS.items(), key=lambda entry: -len(entry[0].replace("{}", "")))
    return [(_pattern(english), chinese) for english, chinese in told]


def _pattern(sentence: str) -> re.Pattern[str]:
    return re.compile("(.*?)".join(map(re.escape, sentence.split("{}"))), re.DOTALL)
