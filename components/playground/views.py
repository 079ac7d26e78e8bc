"""What the pictures of the Playground show of a document: values for its widgets, no components."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from components import figures
from components.i18n import Language, say
from components.labels import percent, quoted, token_text
from components.widgets.chart import chart_value
from components.widgets.tokens import Kind, header, shade_value, token_line
from gpt import Generation, GPTConfig, SamplingParams, Step, Tokenizer, distribution
from gpt.generate import FinishReason
from gpt.tokenizer import IncrementalDecoder

TOP = 20  # bars
WINDOW = 128  # positions a heatmap shows at once
NEWEST = -1  # the selection that follows the text as it grows


@dataclass(frozen=True)
class Look:
    """What a person has selected: a position (NEWEST follows the text), a layer, a head (None: average)."""

    position: int = NEWEST
    layer: int = 0
    head: int | None = None
    by_attention: bool = False  # the strip is shaded by attention, not by probability

    def fitting(self, config: GPTConfig, *, position: int) -> Look:
        """The same look at another position of a model that may have fewer layers or heads."""
        layer = min(self.layer, config.n_layer - 1)
        head = None if self.head is None else min(self.head, config.n_head - 1)
        return replace(self, position=position, layer=layer, head=head)

    def at(self, document: Generation) -> int:
        """The position that is looked from: the one selected, at most the last that the model has read."""
        last = document.n_read - 1
        return last if self.position == NEWEST else min(self.position, last)


def strip(document: Generation) -> str:
    """The whole text for the token strip: each token with what the model gave it."""
    known = [(None, None), *document.token_statistics(1)]
    known += [(None, None)] * (len(document.ids) - len(known))
    lines = token_lines(document.loaded.tokenizer, document.ids, known, document.n_prompt)
    return header(doc=f"{id(document):x}") + lines


def strip_step(document: Generation, step: Step) -> str:
    """The line that one generated token adds to the strip."""
    return _line(document.loaded.tokenizer, step.token_id, step.text, step.probability, step.rank, "g")


def prompt_strip(tokenizer: Tokenizer, ids: list[int]) -> str:
    """The strip under the prompt box, as one types."""
    return header(doc="prompt") + token_lines(tokenizer, ids, [(None, None)] * len(ids), len(ids))


def token_lines(
    tokenizer: Tokenizer, ids: Sequence[int], known: Sequence[tuple[float | None, int | None]], n_prompt: int
) -> str:
    """The lines of a text: each token by the characters that it completes, with its (probability, rank) where known;
    the first n_prompt were given, not predicted."""
    decoder, lines = IncrementalDecoder(), []
    for position, (token_id, statistics) in enumerate(zip(ids, known, strict=True)):
        text = decoder.feed(tokenizer.token_bytes(token_id))
        lines.append(_line(tokenizer, token_id, text, *statistics, "p" if position < n_prompt else "g"))
    return "".join(lines)


def _line(
    tokenizer: Tokenizer, token_id: int, text: str, probability: float | None, rank: int | None, kind: Kind
) -> str:
    """A token by its characters; by its bytes where it completes none."""
    if token_id == tokenizer.eot_id:
        text = token_text(tokenizer, token_id)
    if text and "\ufffd" not in text:
        return token_line(token_id, text, probability, rank, kind)
    return token_line(token_id, "", probability, rank, kind, tokenizer.token_bytes(token_id))


def shading(document: Generation, look: Look) -> str:
    """How strongly the selected position looked at each token before it; "" where probability shades the strip."""
    if not look.by_attention:
        return ""
    position = look.at(document)
    return shade_value(document.attn_weights(look.layer, look.head)[position, : position + 1].cpu().numpy())


def bars(document: Generation, look: Look, params: SamplingParams, language: Language) -> str:
    """The distribution of what follows the selected token, from its stored state: no run of the model."""
    tokenizer = document.loaded.tokenizer
    position = look.at(document)
    stages = distribution(document.logits(position), params, previous_ids=document.ids[: position + 1])
    raw, final, kept = stages.raw.cpu().numpy(), stages.final.cpu().numpy(), stages.kept.cpu().numpy()
    chosen = document.ids[position + 1] if position + 1 < len(document.ids) else None
    count = min(TOP, len(raw))
    order = np.lexsort((-raw, -final))[:count] if len(raw) <= TOP else _best(final, raw, count)
    if chosen is not None and chosen not in order:
        order[-1] = chosen
    figure = figures.next_token_bars(
        [token_text(tokenizer, int(i)) for i in order],
        raw[order],
        final[order],
        chosen=None if chosen is None else int(np.flatnonzero(order == chosen)[0]),
        before_name=say("bars.before", language),
        after_name=say("bars.after", language),
        chosen_name=say("bars.chosen", language),
    )
    entropy_raw = float(-(raw[raw > 0] * np.log2(raw[raw > 0])).sum())
    best = int(order[0])
    sentence = say(
        "bars.says",
        language,
        token=quoted(tokenizer, document.ids[position]),
        best=quoted(tokenizer, best),
        before=percent(raw[best]),
        after=percent(final[best]),
        removed=f"{int((~kept).sum()):,}",
        total=f"{len(raw):,}",
        mass=percent(raw[~kept].sum()),
        raw=f"{entropy_raw:.2f}",
        final=f"{stages.entropy:.2f}",
    )
    if chosen is not None:
        sentence += say("bars.says.chosen", language, chosen=quoted(tokenizer, chosen), p=percent(final[chosen]))
    return chart_value(figure, sentence)


def _best(final: np.ndarray, raw: np.ndarray, count: int) -> np.ndarray:
    """The `count` best ids by final probability, then by raw, without sorting the whole vocabulary."""
    candidates = np.union1d(np.argpartition(-final, count)[:count], np.argpartition(-raw, count)[:count])
    return candidates[np.lexsort((candidates, -raw[candidates], -final[candidates]))][:count]


def window(document: Generation, look: Look) -> tuple[int, int]:
    """The first position of the heatmap and the one after its last: all of a short text, else what is around."""
    end = min(document.n_read, max(look.at(document) + WINDOW // 2, WINDOW))
    return max(0, end - WINDOW), end


def heatmap(document: Generation, look: Look, language: Language) -> str:
    """Who looked at whom in the chosen head, around the selected position."""
    tokenizer = document.loaded.tokenizer
    position = look.at(document)
    weights = document.attn_weights(look.layer, look.head).float().cpu().numpy()  # (n_read, n_read)
    start, end = window(document, look)
    labels = [token_text(tokenizer, i) for i in document.ids[start:end]]
    figure = figures.attention_heatmap(
        weights[start:end, start:end],
        labels,
        labels,
        selected=position - start,
        first=start,
        query_title=say("attention.query", language),
        key_title=say("attention.key", language),
        weight_title=say("attention.weight", language),
    )
    row = weights[position, : position + 1]
    most = np.argsort(-row, kind="stable")[:2]
    sentence = say(
        "attention.says",
        language,
        layer=look.layer,
        head=head_name(look.head, language),
        token=quoted(tokenizer, document.ids[position]),
        targets=", ".join(f"{quoted(tokenizer, document.ids[i])} ({percent(row[i])})" for i in most),
    )
    if start > 0 or end < len(weights):
        sentence += say("attention.window", language, start=start, end=end - 1)
    return chart_value(figure, sentence)


def head_name(head: int | None, language: Language) -> str:
    """A head as a person calls it; None is the average."""
    return say("attention.average", language) if head is None else say("attention.head.n", language, n=head)


def hint(document: Generation, look: Look, language: Language) -> str:
    """What the tint of the strip means."""
    if not look.by_attention:
        return say("strip.hint", language)
    token = quoted(document.loaded.tokenizer, document.ids[look.at(document)])
    return say("strip.hint.attention", language, token=token)


def count_sentence(n: int, limit: int, language: Language) -> str:
    """How long the prompt is; what an empty one means; what is wrong with one too long."""
    if n == 0:
        return say("prompt.empty", language)
    if n > limit:
        return say("prompt.too_long", language, n=f"{n:,}", excess=f"{n - limit:,}", limit=f"{limit:,}")
    return say("prompt.count.one" if n == 1 else "prompt.count", language, n=n, limit=f"{limit:,}")


def status(meter: Meter, finish_reason: FinishReason | None, language: Language) -> str:
    """The meter, and how the run ended once it has."""
    if finish_reason is None:
        return meter.sentence(language)
    limit = meter.document.loaded.model.config.block_size
    return f"{meter.sentence(language)} · {say('finish.' + finish_reason, language, limit=limit)}"


class Meter:
    """Counts the tokens of one run and the time that the model took for them, waiting left out."""

    def __init__(self, document: Generation, seed: int) -> None:
        self.document, self.seed = document, seed
        self.count, self.seconds, self.first = 0, 0.0, 0.0

    def timed(self, steps: Iterator[Step], began: float) -> Iterator[Step]:
        """The same steps; began: when the person asked, by time.perf_counter()."""
        while True:
            asked = time.perf_counter()
            step = next(steps, None)
            now = time.perf_counter()
            if step is None:
                return
            self.first = self.first or now - began
            self.count, self.seconds = self.count + 1, self.seconds + now - asked
            yield step

    def sentence(self, language: Language) -> str:
        """Tokens, tokens a second, time to the first, position and context, seed."""
        return say(
            "status.running",
            language,
            n=self.count,
            rate=f"{self.count / self.seconds:.0f}" if self.seconds else "–",
            first=f"{1000 * self.first:.0f}",
            position=len(self.document.ids),
            limit=self.document.loaded.model.config.block_size,
            seed=self.seed,
        )
