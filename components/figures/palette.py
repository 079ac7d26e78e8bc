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


class Colour(NamedTuple):
    """A colour as two hex strings, for the light and the dark theme."""

    light: str
    dark: str


PALETTE: dict[str, Colour] = {
    "surface": Colour("#f4f6f8", "#12151b"),  # background of the page
    "card": Colour("#ffffff", "#1b1f27"),  # cards on the page
    "raised": Colour("#fcfdfe", "#252a34"),  # tooltips, inputs
    "text": Colour("#1a2130", "#e8ebf1"),
    "muted": Colour("#596273", "#9ca6b7"),
    "line": Colour("#e2e6ec", "#313845"),  # grids and hairlines
    "accent": Colour("#c2410c", "#ffa352"),  # what a person has changed
    "primary": Colour("#2b6cb3", "#58cbe0"),  # the primary button
    "on_primary": Colour("#fefefe", "#0e1218"),
    "before": Colour("#b4d3e6", "#37577e"),  # bars: the model's own probabilities
    "after": Colour("#2c70b5", "#4dc6da"),  # bars: after temperature and filters
    "attention": Colour("#7d47a6", "#c295e8"),
    "danger": Colour("#b3261e", "#ff8a80"),
}

SEQUENTIAL: tuple[Colour, ...] = (
    Colour("#f0f8fc", "#1e232c"),
    Colour("#bce2f3", "#283657"),
    Colour("#85cae8", "#304c80"),
    Colour("#5caed9", "#2a68a4"),
    Colour("#3b90ca", "#1f88bf"),
    Colour("#2c70b6", "#2ca8d0"),
    Colour("#29519d", "#4dc7db"),
    Colour("#27347d", "#80e3e0"),
    Colour("#1f1a5a", "#b6fce8"),
)

ATTENTION: tuple[Colour, ...] = (
    Colour("#f7f3fa", "#1f1c26"),
    Colour("#dcc9ea", "#3d2f4f"),
    Colour("#b98fd4", "#664885"),
    Colour("#9560bf", "#9467bd"),
    Colour("#6a3494", "#c898ef"),
)

DIVERGING: tuple[Colour, ...] = (
    Colour("#772e11", "#fcc687"),
    Colour("#b1521b", "#d98c4c"),
    Colour("#db874a", "#a35e31"),
    Colour("#f4c093", "#663c25"),
    Colour("#f7f7f7", "#242223"),
    Colour("#a3d1f2", "#304770"),
    Colour("#62a3da", "#3c75af"),
    Colour("#3572b9", "#4fabdf"),
    Colour("#23418f", "#92ddfb"),
)

CURVES: tuple[Colour, ...] = tuple(PALETTE[name] for name in ("after", "text", "muted", "before"))

_EVERY = (*PALETTE.values(), *SEQUENTIAL, *ATTENTION, *DIVERGING)
DARK_PARTNERS: dict[str, str] = {pair.light: pair.dark for pair in _EVERY}


def colorscale(colours: tuple[Colour, ...]) -> list[list[float | str]]:
    """Return a plotly colorscale [[0.0, hex], ..., [1.0, hex]] for the light theme."""
    return [[i / (len(colours) - 1), pair.light] for i, pair in enumerate(colours)]


def css_variables() -> str:
    """Return the CSS variables for both themes.

    These are `--gb-<name>` for each colour, `--gb-seq-0..8` and `--gb-div-0..8`.
    """
    named = {name.replace("_", "-"): pair for name, pair in PALETTE.items()}
    named |= {f"seq-{i}": pair for i, pair in enumerate(SEQUENTIAL)}
    named |= {f"div-{i}": pair for i, pair in enumerate(DIVERGING)}
    light = "".join(f"--gb-{name}:{pair.light};" for name, pair in named.items())
    dark = "".join(f"--gb-{name}:{pair.dark};" for name, pair in named.items())
    return f":root{{color-scheme:light;{light}}}\n.dark{{color-scheme:dark;{dark}}}\n"
