"""The colours: equal steps look equal, lightness alone conveys order, and text is readable in both themes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from components.figures import palette

THEMES = ("light", "dark")
MAPS = {"sequential": palette.SEQUENTIAL, "diverging": palette.DIVERGING}


def linear(colour: str) -> np.ndarray:
    """Convert sRGB hex to linear light (IEC 61966-2-1)."""
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    """Return WCAG 2.2's contrast ratio."""
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def cielab(colour: str) -> np.ndarray:
    """Convert to CIE 1976 L*a*b* (D65), a different space from the one in which the maps were designed."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ linear(colour) / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", THEMES)
def test_the_sequential_map_goes_one_way_in_lightness_by_even_steps(theme: str) -> None:
    lightness = np.array([cielab(getattr(pair, theme))[0] for pair in palette.SEQUENTIAL])
    steps = np.diff(lightness) * (-1 if theme == "light" else 1)
    assert steps.min() > 0.7 * steps.mean()
    assert steps.max() < 1.4 * steps.mean()


@pytest.mark.parametrize("theme", THEMES)
def test_the_diverging_map_is_as_strong_on_both_sides(theme: str) -> None:
    lightness = np.array([cielab(getattr(pair, theme))[0] for pair in palette.DIVERGING])
    assert np.abs(lightness - lightness[::-1]).max() < 4
    outwards = np.diff(lightness[4:]) * (-1 if theme == "light" else 1)
    assert outwards.min() > 0


@pytest.mark.parametrize("theme", THEMES)
def test_text_can_be_read_on_the_page_on_cards_and_on_the_tints_of_tokens(theme: str) -> None:
    colour = {name: getattr(pair, theme) for name, pair in palette.PALETTE.items()}
    tints = [getattr(pair, theme) for pair in palette.SEQUENTIAL[:4]]  # tokens.css uses only these
    for name, grounds in {
        "text": [colour["surface"], colour["card"], colour["raised"], *tints],
        "muted": [colour["surface"], colour["card"], colour["raised"]],
        "accent": [colour["card"]],
        "danger": [colour["card"]],
        "on_primary": [colour["primary"], colour["after"]],
    }.items():
        assert min(contrast(colour[name], ground) for ground in grounds) >= 4.5, name


def test_every_light_colour_has_one_dark_partner() -> None:
    pairs = {*palette.PALETTE.values(), *palette.HEAD_HUES.values(), *palette.SEQUENTIAL, *palette.DIVERGING}
    assert len({pair.light for pair in pairs}) == len(pairs) == len(palette.DARK_PARTNERS)


def test_every_variable_is_there_on_both_themes() -> None:
    light, dark = (set(re.findall(r"--gb-[\w-]+(?=:)", part)) for part in palette.css_variables().splitlines())
    assert light == dark >= {"--gb-accent", "--gb-seq-0", "--gb-seq-8", "--gb-div-4", "--gb-head-induction"}
