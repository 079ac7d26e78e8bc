"""Two documents that continue the same prompt or different ones, with a selected position in each."""

from __future__ import annotations

from collections.abc import Iterator

from components.text_views import TwoTexts
from gpt import Generation, LoadedModel, SamplingParams, Stages, Step, distribution
from gpt.documents.comparison import Comparison
from gpt.documents.generation import together

CHUNK = 16  # positions compared per page update


class Pair(TwoTexts):
    """Two continuations of the same prompt or of different prompts, which grow during generation.

    comparison: where the texts diverge and by how much. positions: selected position in each column. None selects the
    last position before the texts diverge, or the last position if they do not; with two prompts, it selects the end of
    each prompt.
    """

    def __init__(
        self,
        loaded: tuple[LoadedModel, LoadedModel],
        prompts: tuple[str, str],
        params: tuple[SamplingParams, SamplingParams],
    ) -> None:
        left, right = (Generation(*each) for each in zip(loaded, prompts, strict=True))
        super().__init__(left, right, params)
        self.prompts, self.comparison = prompts, Comparison(left, right, *params)
        self.positions: list[int | None] = [None, None]

    def steps(self, max_new_tokens: int) -> Iterator[tuple[Step | None, ...]]:
        for both in together(list(zip(self.documents, self.params, strict=True)), max_new_tokens):
            self.comparison.measure()
            yield both

    @property
    def position(self) -> int | None:
        """The selected position if it is the same in both columns, else None."""
        left, right = self.at(0), self.at(1)
        return left if self.comparison.comparable and left == right else None

    def at(self, side: int) -> int:
        document, chosen = self.documents[side], self.positions[side]
        last = document.n_read - 1
        if chosen is None and self.prompts[0] != self.prompts[1]:
            chosen = document.n_prompt - 1
        if chosen is None:
            apart = self.comparison.divergence_index
            chosen = last if apart is None else apart - 1
        return min(chosen, last)

    def select(self, position: object, side: int | None = None) -> bool:
        """Select in both columns or, if not comparable, on `side`. position: unvalidated; False if out of range."""
        sides = (0, 1) if self.comparison.comparable or side is None else (side,)
        longest = max(self.documents[each].n_read for each in sides)
        if type(position) is not int or not 0 <= position < longest:
            return False
        for each in sides:
            self.positions[each] = position
        return True

    def following(self, side: int) -> int | None:
        """Return the token after the selected position in a column, or None at the text's end."""
        ids, after = self.documents[side].ids, self.at(side) + 1
        return ids[after] if after < len(ids) else None

    def stages(self, side: int, position: int) -> Stages:
        document, params = self.documents[side], self.params[side]
        return distribution(document.logits(position), params, previous_ids=document.ids[: position + 1])
