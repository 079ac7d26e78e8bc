"""The beats of the film, which has three acts and plays in the machine picture."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Beat:
    """One beat of the film.

    Attributes:
        name: Key of its texts, "film.<name>" and "film.<name>.title".
        act: 1-based number of its act.
        seconds: Duration in seconds.
        view: Parts of the picture that the camera shows; not every model has all of them.
        more: Parts whose texts explain the details.
    """

    name: str
    act: int
    seconds: float
    view: tuple[str, ...]
    more: tuple[str, ...] = ()


BEATS = (
    Beat("ending", 1, 6, ("front",)),
    Beat("differ", 1, 8, ("front",)),
    Beat("blind", 1, 8, ("front",)),
    Beat("rows", 2, 7, ("tokens", "pre"), ("tok", "pos", "pre")),
    Beat("ask", 2, 7, ("tokens", "pre", "q", "k"), ("norm1", "q", "k")),
    Beat("answer", 2, 9, ("q", "k", "weights"), ("weights",)),
    Beat("mix", 2, 7, ("k", "weights", "v", "z"), ("mix", "z")),
    Beat("add", 2, 6, ("z", "att", "plus1", "mid"), ("att", "after1", "plus1")),
    Beat("neurons", 3, 6, ("mid", "gate", "ff", "out", "post"), ("norm2", "gate", "ff", "after2", "plus2")),
    Beat("layers", 3, 9, ("machine",), ("post",)),
    Beat("next", 3, 6, ("fin", "next"), ("fin", "next")),
    Beat("draw", 3, 6, ("next", "line")),
    Beat("written", 3, 5, ("text",)),
)
NAMES = tuple(beat.name for beat in BEATS)


def beat_named(name: str) -> str:
    """Return a beat's name, or the first beat's for an unknown name."""
    return name if name in NAMES else NAMES[0]
