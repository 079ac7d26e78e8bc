"""The kit: what is computed when, and the example of its page in the documentation."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

import components
from components import render
from components.errors import PageError
from components.i18n.catalogue import CATALOGUES
from components.kit import Tab, card, code_text, picture, setting
from components.state.session import Session
from gpt import get_model
from tests.components.drawing import Drawn, as_read

PAGE = Path(components.__file__).parents[1] / "docs/kit.md"


def test_the_example_of_the_documentation_draws_its_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("count", "question", "says", "share"):
        monkeypatch.setitem(CATALOGUES["en"], f"next.{key}", "{share}" if key == "says" else key)
    code, check = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    scope: dict[str, Any] = {"__name__": __name__}
    exec(compile(code, "example", "exec"), scope)
    exec(compile(check, "check", "exec"), scope | {"Session": Session})
    drawn = Drawn(Session(as_read(get_model(), "The dog ran")), scope["tab"])
    shown = drawn.update()["likely-tokens"]
    assert len(shown["figure"]["layout"]["xaxis"]["ticktext"]) == 5
    assert shown["text"].endswith("%")
    scope["Chosen"].count.set(drawn.session, 7)
    assert len(drawn.update()["likely-tokens"]["figure"]["layout"]["xaxis"]["ticktext"]) == 7
    for wrong in (21, 6.5):
        with pytest.raises(ValueError, match="count must be a whole number"):
            scope["Chosen"].count.set(drawn.session, wrong)


def of_kit(session: Session | None = None) -> tuple[Drawn, list[str], Any]:
    """Return a tab whose second result needs the first one, the names of what has run, and its settings."""
    tab, ran = Tab("kit"), list[str]()

    @tab.state
    class Chosen:
        n: int = setting(1, low=0, high=9)
        other: bool = setting(False)

    @tab.computed
    def first(s: Any) -> int:
        ran.append("first")
        if s[Chosen].n == 9:
            raise PageError("error.no_text")
        return 10 * int(s[Chosen].n)

    @tab.computed
    def second(s: Any) -> Iterator[int]:
        ran.append("second")
        for part in range(2):
            yield s[first] + part

    def draw(s: Any) -> tuple[None, str]:
        ran.append("draw")
        return None, str(s[second])

    copied = code_text("copy", "copy", lambda s: str(s[second]))
    tab.cards(card("one", picture("sum", draw), copied))
    return Drawn(session or Session(None), tab), ran, Chosen


def test_a_result_is_computed_after_those_it_needs_and_only_if_what_it_read_has_changed() -> None:
    drawn, ran, chosen = of_kit()
    assert drawn.update()["sum"]["text"] == "11"
    # The second result needs the first one, and is drawn for each of its two parts and when it is complete.
    assert ran == ["draw", "second", "first", "second", "draw", "draw", "draw"]
    chosen.other.set(drawn.session, True)
    drawn.update()
    assert len(ran) == 7
    chosen.n.set(drawn.session, 2)
    assert drawn.update(compute=False)["sum"] == {
        "figure": None,
        "text": "11",
        "note": "",
        "waiting": True,
    }
    assert drawn.views["card.one"]["live.copy"] == {"text": "11"}  # a control also keeps what it shows
    assert drawn.update()["sum"]["text"] == "21"
    assert drawn.views["card.one"]["live.copy"] == {"text": "21"}


def test_an_error_of_a_result_takes_the_place_of_its_picture_until_it_is_mended() -> None:
    drawn, _, chosen = of_kit()
    chosen.n.set(drawn.session, 9)
    assert drawn.update()["sum"]["failed"] == "There is no text yet. Type something in the Write tab."
    assert not drawn.is_waiting
    chosen.n.set(drawn.session, 1)
    shown = drawn.update()["sum"]
    assert (shown["failed"], shown["text"]) == ("", "11")


def test_a_usable_result_is_drawn_until_the_next_one_is_ready_and_any_other_is_dropped_first() -> None:
    tab, before = Tab("kit"), list[int | None]()

    @tab.state
    class Chosen:
        n: int = setting(3, low=0, high=9)

    @tab.computed(while_writing=True, is_usable=lambda value, s: value <= s[Chosen].n)
    def grown(s: Any) -> Generator[int, None, int]:
        before.append(s.snapshot[grown])
        yield 0
        return int(s[Chosen].n)

    @tab.computed(while_writing=True)
    def doubled(s: Any) -> int:
        return 2 * int(s[grown])

    tab.cards(card("one", picture("sum", lambda s: (None, f"{s.ready(grown)} {s[doubled]}"))))
    drawn = Drawn(Session(None), tab)
    assert drawn.update()["sum"]["text"] == "3 6"
    Chosen.n.set(drawn.session, 5)
    shown = drawn.update(compute=False)["sum"]
    assert (shown["text"], shown["waiting"], drawn.is_waiting) == ("3 6", False, True)
    assert drawn.update()["sum"]["text"] == "5 10"
    Chosen.n.set(drawn.session, 2)
    assert drawn.update(compute=False)["sum"]["waiting"]
    assert drawn.update()["sum"]["text"] == "2 4"
    assert before == [None, 3, None]


def test_a_text_that_is_written_is_followed_at_intervals_that_an_action_cuts_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, naps = Session(None), list[float]()

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        session.film = "ending"

    monkeypatch.setattr(render.time, "sleep", sleep)
    render.rest(session, 0)
    assert naps == []
    session.lock.begin()
    render.rest(session, 0)
    assert len(naps) == 1


def test_a_choice_takes_a_number_as_the_browser_sends_it_but_no_boolean() -> None:
    @Tab("kit").state
    class Chosen:
        x: float = setting(0.5, (0.0, 0.5, 1.0))

    session = Session(None)
    Chosen.x.set(session, 1)
    assert repr(session.state(Chosen).x) == "1.0"
    with pytest.raises(PageError):
        Chosen.x.set(session, True)
