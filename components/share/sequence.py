"""A sequence of stops: pages that a teacher shows one after another, opened by one link.

A sequence is text with one line per stop: its address (a link to the page, or only the query), its English title and
its Chinese title, separated by "|". Lines that begin with "#" are comments. Links refer to `sequences/<name>.txt` by
name, and contain any other sequence in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from components.errors import PageError
from components.i18n import LANGUAGES, spoken
from components.state.session import Session
from components.state.snapshot import Snapshot

MAX_STOPS = 40
MAX_TITLE_CHARS = 80
OF_PAGE = ("lang", "class", "stop", "follow")  # parameters that do not belong to a stop
_FOLDER = Path(__file__).parent / "sequences"


@dataclass(frozen=True)
class Stop:
    """A stop in a sequence.

    query: the query in its address. titles: in the order of LANGUAGES; a missing title is replaced by the first.
    """

    query: str
    titles: tuple[str, ...]

    @property
    def title(self) -> str:
        place = list(LANGUAGES).index(spoken())
        return self.titles[place if place < len(self.titles) else 0]


@dataclass(frozen=True)
class SequenceState:
    """The open sequence.

    link: its value in links, or "" if no sequence is open; at: 0-based index of the current stop.
    """

    link: str = ""
    stops: tuple[Stop, ...] = ()
    at: int = 0


SEQUENCES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(_FOLDER.glob("*.txt"))}


def parse(text: str) -> tuple[Stop, ...]:
    """Return the stops in a sequence. Raises PageError if there are none or more than MAX_STOPS."""
    lines = [line.strip() for line in text.splitlines()]
    stops = tuple(_stop(line) for line in lines if line and not line.startswith("#"))
    if not 0 < len(stops) <= MAX_STOPS:
        raise PageError("class.n_stops", n=len(stops), limit=MAX_STOPS)
    return stops


def _stop(line: str) -> Stop:
    address, *titles = (part.strip() for part in line.split("|"))
    pairs = parse_qsl(address.rpartition("?")[2], keep_blank_values=True)
    query = urlencode([pair for pair in pairs if pair[0] not in OF_PAGE])
    return Stop(query, tuple(title[:MAX_TITLE_CHARS] for title in titles if title) or (query[:MAX_TITLE_CHARS],))


def open_sequence(session: Session, link: str, at: int = 0) -> Stop:
    """Open the sequence that a link names or contains and return the current stop. Raises PageError if invalid."""
    stops = parse(SEQUENCES.get(link, link))
    at = min(at, len(stops) - 1)
    session.change(SequenceState, link=link, stops=stops, at=at)
    return stops[at]


def sequence_values(s: Snapshot) -> dict[str, str | int]:
    state = s.state(SequenceState)
    return {"class": state.link, "stop": state.at + 1} if state.link else {}
