"""What a tab is made of: `Tab`, settings, computed results, cards, and what a card can contain."""

from components.kit.settings import (
    check_box,
    choice,
    experiment_buttons,
    layer_select,
    position_slider,
    select,
    setting,
    slider,
    text_box,
)
from components.kit.tab import Panel, Tab, card, no_text
from components.parts import (
    button,
    caption,
    case,
    code_text,
    column,
    columns,
    fold,
    lead,
    question,
    row,
    run_buttons,
    section,
    timer,
    title_row,
)
from components.widgets.chart import chart as picture
from components.widgets.widget import says

__all__ = [
    "Panel",
    "Tab",
    "button",
    "caption",
    "card",
    "case",
    "check_box",
    "choice",
    "code_text",
    "column",
    "columns",
    "experiment_buttons",
    "fold",
    "layer_select",
    "lead",
    "no_text",
    "picture",
    "position_slider",
    "question",
    "row",
    "run_buttons",
    "says",
    "section",
    "select",
    "setting",
    "slider",
    "text_box",
    "timer",
    "title_row",
]
