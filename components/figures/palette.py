"""Colours as pairs for the light and the dark theme, and the typeface for tokens.

The sequential map (weights, probabilities) and the diverging one (differences around zero) are lines through OKLab with
equal steps, so that equal differences look equal. Lightness alone conveys the order, which works for every kind of
colour blindness. Figures use the light colours; on the dark theme the browser replaces each with its partner
(`DARK_PARTNERS`), so every light colour has exactly one dark partner.

Source for the colour space: Ottosson, "A perceptual color space for image processing" (2020).
"""

from __future__ import annotations

from typing import NamedTuple

# The typeface for numbers and code.
MONO = (
    '"Glassbox Mono", ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", '
    '"Liberation Mono", "Noto Sans CJK SC", monospace'
)


class Pair(NamedTuple):
    """A colour as two hex strings, for the light and the dark theme."""

    light: str
    dark: str


PALETTE: dict[str, Pair] = {
    "surface": Pair("#f4f6f8", "#12151b"),  # background of the page
    "card": Pair("#ffffff", "#1b1f27"),  # cards on the page
    "raised": Pair("#fcfdfe", "#252a34"),  # tooltips, inputs
    "text": Pair("#1a2130", "#e8ebf1"),
    "muted": Pair("#596273", "#9ca6b7"),
    "line": Pair("#e2e6ec", "#313845"),  # grids and hairlines
    "accent": Pair("#c2410c", "#ffa352"),  # used only for the selection
    "primary": Pair("#2b6cb3", "#58cbe0"),  # the primary button
    "on_primary": Pair("#fefefe", "#0e1218"),
    "before": Pair("#b4d3e6", "#37577e"),  # bars: the model's own probabilities
    "after": Pair("#2c70b5", "#4dc6da"),  # bars: after temperature and filters
    "attention": Pair("#7d47a6", "#c295e8"),
    "danger": Pair("#b3261e", "#ff8a80"),
}

SEQUENTIAL: tuple[Pair, ...] = (
    Pair("#f0f8fc", "#1e232c"),
    Pair("#bce2f3", "#283657"),
    Pair("#85cae8", "#304c80"),
    Pair("#5caed9", "#2a68a4"),
    Pair("#3b90ca", "#1f88bf"),
    Pair("#2c70b6", "#2ca8d0"),
    Pair("#29519d", "#4dc7db"),
    Pair("#27347d", "#80e3e0"),
    Pair("#1f1a5a", "#b6fce8"),
)

ATTENTION: tuple[Pair, ...] = (
    Pair("#f7f3fa", "#1f1c26"),
    Pair("#dcc9ea", "#3d2f4f"),
    Pair("#b98fd4", "#664885"),
    Pair("#9560bf", "#9467bd"),
    Pair("#6a3494", "#c898ef"),
)

DIVERGING: tuple[Pair, ...] = (
    Pair("#772e11", "#fcc687"),
    Pair("#b1521b", "#d98c4c"),
    Pair("#db874a", "#a35e31"),
    Pair("#f4c093", "#663c25"),
    Pair("#f7f7f7", "#242223"),
    Pair("#a3d1f2", "#304770"),
    Pair("#62a3da", "#3c75af"),
    Pair("#3572b9", "#4fabdf"),
    Pair("#23418f", "#92ddfb"),
)

HEAD_HUES: dict[str, Pair] = {  # keyed by the head's role, as in gpt.analysis
    "previous_token": Pair("#037ac0", "#65b2f1"),
    "same_token": Pair("#17895b", "#5ed99e"),
    "first_token": Pair("#a87f09", "#f1c955"),
    "duplicate_token": Pair("#834ba8", "#bf8ae6"),
    "induction": Pair("#d33c33", "#f9786a"),
    "local": Pair("#1c989e", "#6bd8de"),
    "spread": Pair("#7a7a7a", "#9a9ea8"),
}

CURVES: tuple[Pair, ...] = (HEAD_HUES["previous_token"], HEAD_HUES["first_token"], HEAD_HUES["duplicate_token"])

_EVERY = (*PALETTE.values(), *SEQUENTIAL, *ATTENTION, *DIVERGING, *HEAD_HUES.values())
DARK_PARTNERS: dict[str, str] = {pair.light: pair.dark for pair in _EVERY}


def colorscale(colours: tuple[Pair, ...]) -> list[list[float | str]]:
    """Return a plotly colorscale [[0.0, hex], ..., [1.0, hex]] for the light theme."""
    return [[i / (len(colours) - 1), pair.light] for i, pair in enumerate(colours)]


def css_variables() -> str:
    """Return the CSS variables for both themes.

    These are `--gb-<name>` for each colour, `--gb-seq-0..8`, `--gb-div-0..8` and `--gb-head-<role>`.
    """
    named = {name.replace("_", "-"): pair for name, pair in PALETTE.items()}
    named |= {f"seq-{i}": pair for i, pair in enumerate(SEQUENTIAL)}
    named |= {f"div-{i}": pair for i, pair in enumerate(DIVERGING)}
    named |= {f"head-{name.replace('_', '-')}": pair for name, pair in HEAD_HUES.items()}
    light = "".join(f"--gb-{name}:{pair.light};" for name, pair in named.items())
    dark = "".join(f"--gb-{name}:{pair.dark};" for name, pair in named.items())
    return f":root{{color-scheme:light;{light}}}\n.dark{{color-scheme:dark;{dark}}}\n"
