"""What the pictures of the Playground show of a document: values for its widgets, no components."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from components.figures import charts as figures
from components.figures.next_tokens import next_tokens
from components.i18n import Language, t
from components.labels import percent, quoted, token_text
from components.state.throughput import Meter
from components.state.token_statistics import Known, statistics_of
from components.widgets.chart import Rows, chart_value
from components.widgets.tokens import Kind, header, shade_value, token_line
from gpt import FinishReason, Generation, GPTConfig, SamplingParams, Step, Tokenizer, distribution
from gpt.documents.text_statistics import TokenStatistics
from gpt.tokenizer import IncrementalDecoder

TOP = 20  # bars
WINDOW = 128  # positions a heatmap shows at once
NEWEST = -1  # the selection that follows the text as it grows
Shading = Literal["probability", "rank", "entropy", "surprisal", "attention"]


@dataclass(frozen=True)
class Look:
    """What a person has selected: a position (NEWEST follows the text), a layer, a head (None: average)."""

    position: int = NEWEST
    layer: int = 0
    head: int | None = None
    shading: Shading = "probability"  # what the tint of the strip stands for

    def fitting(self, config: GPTConfig, *, position: int) -> Look:
        """The same look at another position of a model that may have fewer layers or heads."""
        layer = min(self.layer, config.n_layer - 1)
        head = None if self.head is None else min(self.head, config.n_head - 1)
        return replace(self, position=position, layer=layer, head=head)

    def at(self, document: Generation) -> int:
        """The position that is looked from: the one selected, at most the last that the model has read."""
        last = document.n_read - 1
        return last if self.position == NEWEST else min(self.position, last)


class Deed(NamedTuple):
    """What a person did to the text, as a key of the page's sentences and what is filled in."""

    key: str
    values: dict[str, Any]


def strip(document: Generation, known: Known | None = None) -> str:
    """The whole text for the token strip: each token with what the model gave it."""
    tokenizer, n_prompt = document.loaded.tokenizer, document.n_prompt
    decoder, lines = IncrementalDecoder(), [header(doc=str(document.key))]
    for position, measured in enumerate((known or Known()).of(document)):
        token_id = document.ids[position]
        text = decoder.feed(tokenizer.token_bytes(token_id))
        by_hand = document.origin(position).how != "sampled"
        kind: Kind = "p" if position < n_prompt else "h" if by_hand else "g"
        lines.append(_measured_line(tokenizer, token_id, text, measured, kind))
    return "".join(lines)


def strip_step(document: Generation, step: Step, known: Known | None = None) -> str:
    """The line that one generated token adds to the strip."""
    measured = statistics_of(step) if known is None else known.add(document, step)
    return _measured_line(document.loaded.tokenizer, step.token_id, step.text, measured, "g")


def strip_words(language: Language, empty: str = "") -> dict[str, str]:
    """The words of a strip. empty: what stands there before the first token."""
    keys = ("name", "token", "id", "probability", "rank", "attention", "marks")
    return {key: t(f"strip.{key}", language) for key in keys} | {"empty": empty}


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


def _measured_line(tokenizer: Tokenizer, token_id: int, text: str, measured: TokenStatistics | None, kind: Kind) -> str:
    if measured is None:
        return _line(tokenizer, token_id, text, None, None, kind)
    return _line(tokenizer, token_id, text, measured.probability, measured.rank, kind, measured.entropy)


def _line(
    tokenizer: Tokenizer,
    token_id: int,
    text: str,
    probability: float | None,
    rank: int | None,
    kind: Kind,
    entropy: float | None = None,
) -> str:
    """A token by the characters that it completes, and by the bytes with which it begins another."""
    data = tokenizer.token_bytes(token_id)
    if token_id == tokenizer.eot_id:
        text = token_text(tokenizer, token_id)
    if "\ufffd" in text:  # what stood before it stays a fragment: this token may be whole all the same
        text = data.decode("utf-8", "ignore") if _whole(data) else ""
    return token_line(token_id, text, probability, rank, kind, begun(data) if text else data, entropy)


def begun(data: bytes) -> bytes:
    """The beginning of a character that the end of the data cuts off; b"" where it ends with a whole one."""
    decoder = getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return decoder.getstate()[0]


def _whole(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def shading(document: Generation, look: Look) -> str:
    """How strongly the selected position looked at each token before it; "" where the tint means something else."""
    if look.shading != "attention":
        return ""
    position = look.at(document)
    return shade_value(document.attn_weights(look.layer, look.head)[position, : position + 1].cpu().numpy())


def bars(document: Generation, look: Look, params: SamplingParams, language: Language) -> str:
    """The distribution of what follows the selected token, from its stored state: no run of the model."""
    tokenizer = document.loaded.tokenizer
    position = look.at(document)
    stages = distribution(document.logits(position), params, previous_ids=document.ids[: position + 1])
    raw, final, kept = stages.raw.cpu().numpy(), stages.final.cpu().numpy(), stages.kept.cpu().numpy()
    ids, chosen, figure = next_tokens(document, position, raw, final, TOP, language)
    entropy_raw = float(-(raw[raw > 0] * np.log2(raw[raw > 0])).sum())
    best = int(ids[0])
    sentence = t(
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
        sentence += t("bars.says.chosen", language, chosen=quoted(tokenizer, chosen), p=percent(final[chosen]))
    rows = _rows(document, position, ids, raw[ids], final[ids], t("bars.row", language))
    return chart_value(figure, sentence, rows=rows._replace(name=t("bars.question", language)))


def place(document: Generation, position: int) -> dict[str, Any]:
    """Where something chosen is to stand: behind this token of this document, whatever is selected by then."""
    return {"document": str(document.key), "behind": document.path[position]}


def _rows(document: Generation, position: int, ids: np.ndarray, raw: np.ndarray, final: np.ndarray, says: str) -> Rows:
    """The bars as things to choose: ids (n,), their probabilities before and after the sampling settings.

    says: of one of them, to be filled in.
    """
    tokenizer, columns = document.loaded.tokenizer, (ids.tolist(), raw.tolist(), final.tolist())
    names = [
        says.format(token=quoted(tokenizer, token_id), before=percent(before), after=percent(after))
        for token_id, before, after in zip(*columns, strict=True)
    ]
    return Rows("", names, [{"token": token_id} for token_id in columns[0]], place(document, position))


def window(document: Generation, look: Look) -> tuple[int, int]:
    """The first position of the heatmap and the one after its last: all of a short text, else what is around."""
    end = min(document.n_read, max(look.at(document) + WINDOW // 2, WINDOW))
    return max(0, end - WINDOW), end


def sharpest_head(document: Generation) -> tuple[int, int]:
    """(layer, head): of the layer in the middle, the head that looks most at one token before it, not the first."""
    config = document.loaded.model.config
    layer = (config.n_layer - 1) // 2
    sharpness = []
    for head in range(config.n_head):
        weights = document.attn_weights(layer, head).float().tril(-1)[1:, 1:]  # (n_read - 1, n_read - 1)
        sharpness.append(float(weights.max(dim=1).values.mean()) if len(weights) else 0.0)
    return layer, int(np.argmax(sharpness))


def heatmap(document: Generation, look: Look, language: Language) -> str:
    """Who looked at whom in the chosen head, around the selected position."""
    tokenizer = document.loaded.tokenizer
    position = look.at(document)
    weights = document.attn_weights(look.layer, look.head).float().cpu().numpy()  # (n_read, n_read)
    start, end = window(document, look)
    labels = [token_text(tokenizer, i) for i in document.ids[start:end]]
    figure = figures.attention_heatmap_content(
        weights[start:end, start:end],
        labels,
        labels,
        selected=position - start,
        first=start,
        query_title=t("attention.query", language),
        key_title=t("attention.key", language),
        weight_title=t("attention.weight", language),
    )
    row = weights[position, : position + 1]
    most = np.argsort(-row, kind="stable")[:2]
    sentence = t(
        "attention.says",
        language,
        layer=look.layer,
        head=head_name(look.head, language),
        token=quoted(tokenizer, document.ids[position]),
        targets=", ".join(f"{quoted(tokenizer, document.ids[i])} ({percent(row[i])})" for i in most),
    )
    if start > 0 or end < len(weights):
        sentence += t("attention.window", language, start=start, end=end - 1)
    return chart_value(figure, sentence)


def head_name(head: int | None, language: Language) -> str:
    """A head as a person calls it; None is the average."""
    return t("attention.average", language) if head is None else t("attention.head.n", language, n=head)


def hint(document: Generation, look: Look, language: Language) -> str:
    """What the tint of the strip means."""
    if look.shading != "attention":
        return t(f"strip.hint.{look.shading}", language)
    token = quoted(document.loaded.tokenizer, document.ids[look.at(document)])
    return t("strip.hint.attention", language, token=token)


def count_sentence(n: int, limit: int, language: Language) -> str:
    """How long the prompt is; what an empty one means; what is wrong with one too long."""
    if n == 0:
        return t("prompt.empty", language)
    if n > limit:
        return t("prompt.too_long", language, n=f"{n:,}", excess=f"{n - limit:,}", limit=f"{limit:,}")
    return t("prompt.count.one" if n == 1 else "prompt.count", language, n=n, limit=f"{limit:,}")


def status(meter: Meter, finish_reason: FinishReason | None, language: Language) -> str:
    """The meter, and how the run ended once it has."""
    if finish_reason is None:
        return meter.sentence(language)
    limit = meter.document.loaded.model.config.block_size
    return f"{meter.sentence(language)} · {t('finish.' + finish_reason, language, limit=limit)}"
