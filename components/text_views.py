"""View data shared by several tabs: token strips, next-token bars, attention heatmaps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from components.errors import PageError
from components.figures import maps
from components.figures.lines import lines as line_chart
from components.figures.style import Figure
from components.i18n import has_text, is_exact, spoken, t
from components.labels import Vocabulary as Labelled
from components.labels import listed, marked, percent, quoted, token_text, visible
from components.parts import Draw, Handler, Lines, Part
from components.state.admission import Admission
from components.state.hidden import show_word
from components.state.jobs import Job
from components.state.session import Session
from components.state.text import Selection, Text, TokenStatisticsCache
from components.state.typed_text import ends_text, shown_tokens
from components.widgets.chart import chart_data
from components.widgets.tokens import Kind, shade_value, token_line, tokens
from components.widgets.widget import to_base64
from gpt import FinishReason, Generation, SamplingParams, Step, list_models
from gpt.analysis.predictions import search_vocabulary
from gpt.models.registry import memory_of_listed, title
from gpt.models.sources import HUB_MODELS, find_source
from gpt.tokenizer import Vocabulary, incremental_decoder

AVERAGE = -1  # the head picker's value for the average over all heads
HEATMAP_WINDOW = 128  # maximum number of positions in a heatmap
MAX_SEARCH_CHARS = 80
HEATMAP_STEP = 16  # positions by which the heatmap of a growing text moves on


def document_lines(document: Generation, statistics: TokenStatisticsCache | None = None) -> Lines:
    known = [*(statistics or TokenStatisticsCache()).of(document)]
    measured = [() if each is None else (each.probability, each.rank, each.entropy) for each in known]
    by_hand = {position for position in range(len(known)) if document.origin(position).kind != "sampled"}
    ids = document.ids[: len(known)]
    return token_lines(document.loaded.tokenizer, ids, measured, n_prompt=document.n_prompt, by_hand=by_hand)


def surprisal_chart(s: Any) -> tuple[Figure, str] | None:
    """Draw each token's surprisal and the entropy of the prediction before it, in bits, along the text."""
    if s.text is None:
        return None
    measured = s.token_statistics.of(s.text.document)[: len(s.text.ids)]  # it may have grown since
    positions = [i for i, token in enumerate(measured) if token is not None]
    known = [token for token in measured if token is not None]
    if not known:
        return None
    series = {name: np.array([getattr(token, name) for token in known]) for name in ("surprisal", "entropy")}
    names = {t("strip.shading.surprisal"): series["surprisal"], t("strip.shading.entropy"): series["entropy"]}
    mean = float(series["surprisal"].mean())
    sentence = t("strip.totals", n=len(known), mean=f"{mean:.1f} {t('strip.unit')}", perplexity=f"{2**mean:.1f}")
    words = shown_tokens(s.text.tokenizer, s.text.ids)
    figure = line_chart(np.array(positions), names, x_title="", y_title=t("strip.unit"))
    for trace in figure["data"]:
        trace["customdata"] = [visible(words[i]) for i in positions]
        trace["hovertemplate"] = f"%{{customdata}}: %{{y:.1f}} {t('strip.unit')}<extra>{trace['name']}</extra>"
    figure["layout"] |= {"height": 180, "hovermode": "x"}
    return figure, sentence


class TwoTexts:
    """Two documents written in step, each with its own settings. finish_reasons: why each ended; None while written."""

    def __init__(self, left: Generation, right: Generation, params: tuple[SamplingParams, SamplingParams]) -> None:
        self.documents, self.params = (left, right), params
        self.finish_reasons: list[FinishReason | None] = [None, None]
        self._statistics = TokenStatisticsCache()

    def read(self) -> None:
        for document in self.documents:
            document.read()

    def lines(self, side: int) -> Lines:
        document = self.documents[side]
        return document_lines(document, self._statistics) if document.n_read else Lines()

    def write(
        self,
        waiting: Admission,
        job: Job,
        steps: Iterator[tuple[Step | None, ...]],
        show: Callable[[], object],
        pace: float = 0,
    ) -> Iterator[None]:
        """Read both prompts, and take the steps as in `Admission.paced`. Each update of the page calls `show`."""
        self.read()
        show()
        yield
        for both, is_due in waiting.paced(steps, job.rest, lambda: pace):
            for side, step in enumerate(both):
                if step is not None:
                    self._statistics.add(self.documents[side], step)
                    self.finish_reasons[side] = step.finish_reason
            if is_due:
                show()
                yield


def text_strip(name: str, *, draw: Draw, on: Handler, **options: Any) -> Part:
    """Return a token strip of the text as the model reads it, with the hidden words struck out in between.

    A click on one of them shows it again. draw, on: as in `tokens`; all positions are those without hidden words.
    """

    def with_hidden(s: Any) -> dict[str, Any]:
        return draw(s) | {"hidden": _hidden_chips(s)}

    def handle(session: Session, sent: dict[str, Any]) -> None:
        if "shown" in sent:
            show_word(session, sent["shown"])
        else:
            on(session, sent)

    return tokens(name, draw=with_hidden, on=handle, **options)


def _hidden_chips(s: Any) -> list[tuple[int, str, int]]:
    """Return each hidden token's place among the tokens that the model reads, its line, and its position."""
    if not s.hidden or s.written is None:
        return []
    lines = prompt_lines(s.written.tokenizer, s.written.ids)
    return [(position - i, lines[position], position) for i, position in enumerate(sorted(s.hidden))]


def token_lines(
    tokenizer: Vocabulary,
    ids: Sequence[int],
    measurements: Iterable[tuple[Any, ...]] = (),
    *,
    n_prompt: int,
    by_hand: Collection[int] = (),
) -> Lines:
    """Return lines for a token strip, with each token's (probability, rank, entropy), as far as they are known.

    A line contains the characters that its token completes, and the bytes of an incomplete one. The first n_prompt
    tokens are shown as the prompt. by_hand: positions of tokens that a person has inserted.
    """
    decoder, lines = incremental_decoder(), Lines()
    known = chain(measurements, repeat(()))
    for position, (token_id, numbers) in enumerate(zip(ids, known, strict=False)):
        data = tokenizer.token_bytes(token_id)
        text = decoder.decode(data)
        if token_id in tokenizer.special_ids:
            text = "" if ends_text(tokenizer, token_id) and not is_exact() else token_text(tokenizer, token_id)
            data = b"" if not text else data
        if "\ufffd" in text:  # earlier bytes are invalid, but this token may still consist of whole characters
            whole = data.decode("utf-8", "ignore")
            text = whole if whole.encode() == data else ""
        kind: Kind = "p" if position < n_prompt else "h" if position in by_hand else "g"
        probability, rank, entropy = (*numbers, None, None, None)[:3]
        unfinished = unfinished_character(data) if text else data
        lines.append(token_line(token_id, text, probability, rank, kind, unfinished, entropy))
    return lines


def prompt_lines(tokenizer: Vocabulary, ids: Sequence[int]) -> Lines:
    return token_lines(tokenizer, ids, n_prompt=len(ids))


def snippet_words(tokenizer: Vocabulary, ids: Sequence[int], tint: Sequence[float]) -> list[tuple[str, float]]:
    """Return the words of a snippet on one line, each with its tint, 0 to 1; control tokens are left out."""
    shown = [pair for pair in zip(ids, tint, strict=True) if pair[0] not in tokenizer.special_ids]
    words = shown_tokens(tokenizer, [token_id for token_id, _ in shown])
    words[:1] = [word.lstrip(" ") for word in words[:1]]
    pairs = zip(words, shown, strict=True)
    return [(marked(word).replace("\n", " "), round(level, 3)) for word, (_, level) in pairs]


def unfinished_character(data: bytes) -> bytes:
    """Return the bytes of an incomplete character at the end of the data, or b"" if there is none."""
    decoder = incremental_decoder()
    decoder.decode(data)
    return decoder.getstate()[0]


def attention_shade(text: Text, selection: Selection) -> str:
    """Return the selected position's attention weights as shades for the strip; "" if it shows something else."""
    if selection.shading != "attention" or text.n_read == 0:
        return ""
    position = text.at(selection)
    weights = text.document.attn_weights(selection.layer, selection.head, start=position, stop=position + 1)
    return shade_value(weights[0].cpu().numpy())


def shading_legend(s: Any) -> str:
    if s.text is None or s.text.n_read == 0:
        return ""
    if s.selection.shading != "attention":
        return t(f"strip.hint.{s.selection.shading}")
    return t("strip.hint.attention", token=quoted(s.text.tokenizer, s.text.ids[s.position]))


def place_after(document: Generation, position: int) -> dict[str, Any]:
    """Return the place to insert a chosen token: after this token in this text, even if the selection changes.

    last: the text's last token; the place is outdated once the text has changed in any other way than by generation.
    """
    return {"document": str(document.key), "behind": document.path[position], "last": document.path[-1]}


def heatmap_window(n_read: int, position: int) -> tuple[int, int]:
    """Return the positions to plot as (start, end): the whole text if it is short, or a window around the position."""
    end = min(n_read, max(position + HEATMAP_WINDOW // 2, HEATMAP_WINDOW))
    excess = max(0, end - HEATMAP_WINDOW)
    return excess + -excess % HEATMAP_STEP, end


def attention_heatmap(text: Text, selection: Selection) -> dict[str, Any]:
    tokenizer, position = text.tokenizer, text.at(selection)
    start, end = heatmap_window(text.n_read, position)
    weights = text.document.attn_weights(selection.layer, selection.head, start=start, stop=end).cpu().numpy()
    shown, window = weights[:, start:], text.config.window_of(selection.layer)
    if window is not None:
        shown = np.where(np.tri(len(shown), k=-window, dtype=bool), np.nan, shown)  # beyond the attention window
    figure = attention_map(tokenizer, text.ids[start:end], shown, selected=position - start, first=start)
    sentence = attention_sentence(text, position, selection, weights[position - start, : position + 1])
    if window is not None:
        sentence += t("attention.sight", layer=selection.layer, window=window)
    if start > 0 or end < text.n_read:
        sentence += t("attention.window", start=start, end=end - 1)
    # Blank cells at the ends of rows are left out, so that a token that is added adds one row.
    ends = [(row, np.flatnonzero(~np.isnan(row)).max(initial=-1) + 1) for row in figure["data"][0].pop("z")]
    return chart_data(figure, sentence, cells=Lines(to_base64(row[:end]) for row, end in ends))


def attention_map(tokenizer: Labelled, ids: Sequence[int], weights: np.ndarray, **options: Any) -> dict[str, Any]:
    """Draw attention weights (T, T) between the tokens of a text. Takes the options of `maps.attention_heatmap`."""
    labels = [token_text(tokenizer, i) for i in ids]
    return maps.attention_heatmap(weights, labels, **options)


def most_attended(tokenizer: Labelled, ids: Sequence[int], row: np.ndarray) -> str:
    """Name the two tokens with the most attention. row: weights of the tokens, (N,)."""
    most = [int(i) for i in np.argsort(-row, kind="stable")[:2] if row[i] > 0]
    return listed(f"{quoted(tokenizer, ids[i])} ({percent(float(row[i]))})" for i in most)


def attention_sentence(text: Text, position: int, selection: Selection, row: np.ndarray) -> str:
    """Name the tokens with the most attention from a position. row: the selected head's weights, (position + 1,)."""
    return t(
        "attention.says",
        layer=selection.layer,
        head=head_name(selection.head),
        token=quoted(text.tokenizer, text.ids[position]),
        targets=most_attended(text.tokenizer, text.ids, row),
    )


def head_name(head: int | None) -> str:
    """Name a head for use inside a sentence; None stands for the average."""
    return t("attention.average") if head is None else t("attention.head.n", n=head)


def head_choices(n_head: int) -> list[tuple[str, int]]:
    return [(t("attention.all"), AVERAGE), *((str(head), head) for head in range(n_head))]


# Tokens that a visitor has picked, as (id, text): the same id is another token in another model's vocabulary
Tokens = tuple[tuple[int, str], ...]


def picked(text: Text, ids: Iterable[int]) -> Tokens:
    return tuple((i, token_text(text.tokenizer, i)) for i in ids)


def still_known(text: Text, tokens: Tokens) -> list[int]:
    """Return the ids of the picked tokens that are the same in the vocabulary of the text's model."""
    n = text.config.vocab_size
    return [i for i, was in tokens if i < n and token_text(text.tokenizer, i) == was]


def found_tokens(text: Text, selection: Selection, query: str, limit: int) -> list[int]:
    """Return tokens that contain a text, likeliest first. Raises PageError if there are none."""
    query, logits = query[:MAX_SEARCH_CHARS], text.document.logits(text.at(selection))
    found = search_vocabulary(text.tokenizer, logits, query, limit=limit)
    if not found:
        raise PageError("pipeline.unknown", query=visible(query))
    return found


def count_sentence(n: int, limit: int) -> str:
    """Return a sentence with the number of tokens in the prompt, or with the reason why the prompt cannot be used."""
    if n == 0:
        return t("prompt.empty")
    if n > limit:
        return t("prompt.too_long", n=f"{n:,}", excess=f"{n - limit:,}", limit=f"{limit:,}")
    return t("prompt.count", n=n, limit=f"{limit:,}")


def short_name(model: str) -> str:
    """Return a model's name for use inside a sentence, without its description."""
    named = _listed_name(model) or _own_name(model) or title(model)
    return named.partition(" · ")[0]


def model_choices(own: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return (label, name) for each model, with the visitor's own models last."""
    choices = [(_listed_name(name) or title(name), name) for name in list_models()]
    labels = [_own_name(name) or name for name in own]
    for i, (label, name) in enumerate(zip(labels, own, strict=True)):
        number = f" ({labels[: i + 1].count(label)})" if labels.count(label) > 1 else ""
        choices.append((label + number, name))
    return choices


def _listed_name(model: str) -> str:
    """Return a known model's name with its size and, for a hub model, the memory needed."""
    if has_text(key := f"model.{model}"):
        return t(key)
    known, n_bytes = HUB_MODELS.get(model), memory_of_listed(model)
    if known is None or n_bytes is None:
        return ""
    n, units = known.n_parameters, ((1e8, " 亿"), (1e4, " 万")) if spoken() == "zh" else ((1e9, "B"), (1e6, "M"))
    (large, name), (small, short) = units
    size = f"{n / large:.2f}{name}" if n >= large else f"{n / small:.0f}{short}"
    place = "downloaded" if find_source(model).is_here else "from_hub"
    memory = f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:.0f} MB"
    return t(f"model.{place}", title=known.title, parameters=size, memory=memory)


def _own_name(model: str) -> str:
    """Return the name of a model trained on the page, derived from its task; "" for any other model."""
    key = f"train.task.{model.rpartition('-')[0]}"
    return t("train.model.name", task=t(key)) if has_text(key) else ""
