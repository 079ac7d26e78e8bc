"""The challenges. Their texts are `challenge.<key>.title`, `.goal`, `.hint` and `.learned` in the catalogues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from components.tabs.challenges.goals import (
    Copied,
    Finds,
    Keeps,
    Leads,
    Looks,
    LowerLoss,
    Matters,
    Meets,
    OffEach,
    PutBack,
    Says,
    Speaks,
    Sure,
    Tops,
    Torn,
    TurnsUp,
    Twin,
)
from components.tabs.challenges.reading import Goal


@dataclass(frozen=True)
class Challenge:
    """A challenge. `key` also identifies it in links; `text` is its initial text."""

    key: str
    group: Literal["hunt", "goals"]
    text: str
    goal: Goal


# Random words, then the first three again. The model copies the fourth word only if both heads of the circuit are on.
COPIED = "The tree red dog cloud fire cold tree red dog"
ZOO = "Lily and Tom went to the zoo. Tom was scared of the lion, so Lily held his hand."
STRANGE = (
    "Once upon a time, there was a little girl named Griselda. She loved to play with her thermometer. One day, she "
    "went to the volcano with her mom."
)
CHALLENGES = (
    Challenge("copied", "hunt", COPIED, Copied()),
    Challenge("back", "hunt", COPIED, Looks("previous_token")),
    Challenge("find", "hunt", COPIED, Finds()),
    Challenge("hops", "hunt", COPIED, Meets()),
    Challenge("off", "hunt", COPIED, OffEach(most=0.25)),
    Challenge("put_back", "hunt", COPIED, PutBack(least=0.5)),
    Challenge("sure", "goals", "Once upon a time there was a", Sure(0.95)),
    Challenge("torn", "goals", "Once upon a time there was a little", Torn(0.25)),
    Challenge("rare", "goals", "Lily ran away from the", Says(" volcano", 0.5)),
    Challenge("story", "goals", STRANGE, LowerLoss(below=0.6, words=3)),
    Challenge("matters", "goals", "Lily lost her hat. It was cold outside. Tom gave her his", Matters()),
    Challenge("first", "goals", ZOO, Looks("first_token")),
    Challenge("lens", "goals", "Lily had a cat. One day, the cat ran away. Lily looked for her", Leads()),
    Challenge("dragon", "goals", "The brave knight saw a big, scary", Tops(" dragon", most_off=2)),
    Challenge("spare", "goals", "Once upon a time, there was a little girl named", Keeps(least_off=40)),
    Challenge("rain", "goals", "Ben and Mia wanted to play in the garden.", TurnsUp(("rain", "wet", "storm"), 1.4)),
    Challenge("speak", "goals", 'Tom saw a big dog in the park. He smiled and said, "Hello, dog!"', Speaks(0.75)),
    Challenge(
        "twin",
        "goals",
        "Lily had a cat. One day, the cat ran away. Lily looked for her",
        Twin("Lily had a dog. One day, the cat ran away. Lily looked for her", choice=(5, 6)),
    ),
)
BY_KEY = {challenge.key: challenge for challenge in CHALLENGES}
