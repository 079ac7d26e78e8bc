"""What activation patching shows: values for its widgets, no components."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from components.i18n import Language, t
from components.labels import decimal, percent, quoted, signed, token_text, visible
from components.tabs.change import figures as change_figures
from components.tabs.change.memory import Pair
from components.widgets.chart import chart_value
from gpt import LoadedModel
from gpt.analysis.patching import PatchSweep


def choices(loaded: LoadedModel, tokens: Iterable[int], p: Tensor, q: Tensor) -> list[tuple[str, int]]:
    """(token and its probability after A and after B, id)."""
    return [
        (f"{visible(token_text(loaded.tokenizer, i))}  A {percent(float(p[i]))} · B {percent(float(q[i]))}", i)
        for i in tokens
    ]


def sweep_map(
    loaded: LoadedModel, pair: Pair, sweep: PatchSweep, name: str, cell: tuple[int, int] | None, language: Language
) -> str:
    """How much of the answer returns, by layer and position."""
    tokenizer, recovered = loaded.tokenizer, sweep.recovered.float().cpu().numpy()
    figure = change_figures.recovery_heatmap(
        recovered,
        [token_text(tokenizer, i) for i in pair.clean],
        [token_text(tokenizer, i) for i in pair.corrupted],
        cell=cell,
        layer_title=t("attention.layer", language),
        value_title=t("change.patch.scale", language),
    )
    layer, position = divmod(int(recovered.argmax()), recovered.shape[1])
    sentence = t(
        "change.patch.map",
        language,
        answer=quoted(tokenizer, pair.answer),
        other=quoted(tokenizer, pair.other),
        clean=signed(sweep.clean),
        corrupted=signed(sweep.corrupted),
        name=t(f"change.patch.{name}", language),
        layer=layer,
        position=position,
        token=quoted(tokenizer, pair.corrupted[position]),
        share=_share(recovered[layer, position]),
    )
    return chart_value(figure, sentence, t("change.patch.note", language))


def cell(loaded: LoadedModel, pair: Pair, sweep: PatchSweep, name: str, at: tuple[int, int], language: Language) -> str:
    """The numbers of one cell."""
    layer, position = at
    share = float(sweep.recovered[layer, position])
    return t(
        "change.patch.cell",
        language,
        layer=layer,
        position=position,
        token=quoted(loaded.tokenizer, pair.corrupted[position]),
        name=t(f"change.patch.{name}", language),
        corrupted=signed(sweep.corrupted),
        value=signed(sweep.corrupted + share * (sweep.clean - sweep.corrupted)),
        share=_share(share),
        clean=signed(sweep.clean),
    )


def _share(value: float) -> str:
    return f"{decimal(100 * value, 0)}\u00a0%"
