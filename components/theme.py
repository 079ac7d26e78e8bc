"""The page's theme: typefaces, text sizes, an 8 px grid, borderless cards, light and dark."""

from __future__ import annotations

import gradio as gr
from gradio.themes.utils import colors, sizes

from components.figures.style import MONO, PALETTE, css_variables

# A sans for the page, a serif for what the model reads and writes, and MONO; systems' own fonts for other scripts.
SANS = (
    '"Glassbox Sans", -apple-system, BlinkMacSystemFont, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", '
    '"Helvetica Neue", Arial, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif'
)
SERIF = '"Glassbox Serif", Georgia, "Noto Serif", "Liberation Serif", "Songti SC", SimSun, "Noto Serif CJK SC", serif'
SMALL, NORMAL, LARGE = "14px", "17px", "22px"
FONTS_URL = "glassbox/fonts/1"  # a new number makes browsers load changed fonts
FONTS = {"sans": "Glassbox Sans", "serif": "Glassbox Serif", "mono": "Glassbox Mono"}

_TEXT = sizes.Size(SMALL, SMALL, SMALL, NORMAL, NORMAL, LARGE, LARGE, name="text_glassbox")
_SPACE = sizes.Size("2px", "4px", "8px", "8px", "16px", "16px", "24px", name="spacing_glassbox")
_RADIUS = sizes.Size("2px", "4px", "6px", "8px", "8px", "12px", "16px", name="radius_glassbox")
_NEUTRALS = "#f4f6f8 #eceff3 #e2e6ec #c9d0da #9ca6b7 #727d8f #596273 #3d4656 #252a34 #1b1f27 #12151b"
_BLUES = "#f0f8fc #d7eef8 #bce2f3 #85cae8 #5caed9 #3b90ca #2c70b6 #29519d #27347d #1f1a5a #161244"

# Maps our colours to Gradio's; `*` expands to all states of a control.
_COLOURS: dict[str, str] = {
    "surface": "background_fill_secondary color_accent_soft",
    "card": """body_background_fill background_fill_primary block_background_fill panel_background_fill
        input_background_fill* checkbox_background_color* checkbox_label_background_fill* block_label_background_fill
        table_even_background_fill table_odd_background_fill button_secondary_background_fill
        button_cancel_background_fill error_background_fill""",
    "text": """body_text_color block_title_text_color block_label_text_color accordion_text_color table_text_color
        checkbox_label_text_color button_secondary_text_color* button_cancel_text_color*""",
    "muted": "body_text_color_subdued block_info_text_color input_placeholder_color",
    "line": """border_color_primary input_border_color input_border_color_hover checkbox_border_color*
        checkbox_label_border_color table_border_color button_secondary_border_color* button_cancel_border_color*
        button_secondary_background_fill_hover button_cancel_background_fill_hover""",
    "primary": """border_color_accent color_accent input_border_color_focus slider_color loader_color
        checkbox_background_color_selected checkbox_border_color_selected checkbox_label_border_color_selected
        button_primary_background_fill button_primary_border_color* link_text_color*""",
    "after": "button_primary_background_fill_hover",
    "on_primary": "button_primary_text_color*",
    "danger": "error_text_color error_border_color error_icon_color",
}
_STATES = ("", "_hover", "_focus", "_active", "_visited", "_selected")


_SAME = {  # Gradio's settings by their value
    "0px": "block_border_width block_label_border_width form_gap_width",
    "1px": "input_border_width button_border_width",
    "12px": "block_radius",
    "16px": "block_padding layout_gap",
    "none": """block_shadow input_shadow input_shadow_focus checkbox_label_shadow button_primary_shadow
        button_secondary_shadow""",
    "500": "block_title_text_weight button_large_text_weight button_medium_text_weight button_small_text_weight",
    SMALL: """block_title_text_size block_label_text_size block_info_text_size checkbox_label_text_size
        button_small_text_size""",
    NORMAL: "section_header_text_size button_large_text_size button_medium_text_size",
}


def _colour_settings(known: set[str]) -> dict[str, str]:
    """Return values for the Gradio theme settings in `known`, for both themes."""
    settings: dict[str, str] = {}
    for colour, names in _COLOURS.items():
        for name in names.split():
            each = [name[:-1] + state for state in _STATES] if name.endswith("*") else [name]
            for setting in each:
                pair = zip((setting, f"{setting}_dark"), PALETTE[colour], strict=True)
                settings |= {key: shade for key, shade in pair if key in known}
    return settings


def _hue(name: str, shades: str) -> colors.Color:
    hue = colors.Color(*shades.split())
    hue.name = name
    return hue


def _theme() -> gr.themes.Base:
    theme = gr.themes.Base(
        primary_hue=_hue("glassbox_blue", _BLUES),
        secondary_hue=_hue("glassbox_blue", _BLUES),
        neutral_hue=_hue("glassbox_neutral", _NEUTRALS),
        text_size=_TEXT,
        spacing_size=_SPACE,
        radius_size=_RADIUS,
        font=SANS.split(", "),
        font_mono=MONO.split(", "),
    )
    same = {name: value for value, names in _SAME.items() for name in names.split()}
    return theme.set(**_colour_settings(set(vars(theme))), **same)


THEME = _theme()

_FACES = "".join(
    f"@font-face {{ font-family: '{family}'; src: url('{FONTS_URL}/{name}.woff2') format('woff2'); "
    "font-weight: 400 700; font-display: swap; }\n"
    for name, family in FONTS.items()
)
CSS = f"""{css_variables()}{_FACES}
:root {{
  --gb-sans: {SANS}; --gb-serif: {SERIF}; --gb-mono: {MONO};
  --gb-stage: {PALETTE["surface"].dark}; --gb-stage-text: {PALETTE["text"].dark};
  --gb-stage-muted: {PALETTE["muted"].dark};
  --gb-size-small: {SMALL}; --gb-size: {NORMAL}; --gb-size-large: {LARGE};
}}
.gb-widget {{ font-family: var(--gb-sans); }}
.toast-title {{ visibility: hidden; }} /* "Error", in English on every page: the sentence below it says what happened */
.gb-sideways {{ overflow-x: auto; overscroll-behavior-x: contain; contain: inline-size; }}
@property --gb-more-before {{ syntax: "<length>"; inherits: false; initial-value: 0px; }}
@property --gb-more-after {{ syntax: "<length>"; inherits: false; initial-value: 0px; }}
@keyframes gb-more-before {{ from {{ --gb-more-before: 0px; }} to {{ --gb-more-before: 32px; }} }}
@keyframes gb-more-after {{ from {{ --gb-more-after: 32px; }} to {{ --gb-more-after: 0px; }} }}
@supports (animation-timeline: scroll()) {{
  .gb-sideways, .gb-strip:not(.gb-sideways) {{ /* fade towards the side where there is more */
    --gb-shown: #000 var(--gb-more-before), #000 calc(100% - var(--gb-more-after));
    animation: gb-more-before linear both, gb-more-after linear both;
    animation-range: 0px 48px, calc(100% - 48px) 100%;
  }}
  .gb-sideways {{
    mask-image: linear-gradient(to right, transparent, var(--gb-shown), transparent);
    animation-timeline: scroll(self inline);
  }}
  .gb-strip:not(.gb-sideways) {{
    mask-image: linear-gradient(to bottom, transparent, var(--gb-shown), transparent);
    animation-timeline: scroll(self block);
  }}
}}
html:root .dark {{ --color-accent: var(--gb-primary); }} /* stronger than gradio's, which come later */
html:root .dark input[type="range"] {{ --neutral-200: var(--gb-line); }}
.gradio-container.gradio-container input[type="range"]:focus-visible {{
  outline: 2px solid var(--gb-primary); outline-offset: 4px; border-radius: 4px;
}}
.gradio-container.gradio-container input::-webkit-slider-thumb {{
  border-radius: 50%; box-shadow: 0 0 0 1px var(--gb-muted);
}}
.gradio-container.gradio-container input::-moz-range-thumb {{
  border-radius: 50%; box-shadow: 0 0 0 1px var(--gb-muted);
}}
"""
