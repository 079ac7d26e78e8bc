"""How often a stream is shown: with every token to one visitor, a few times a second to each of a whole class."""

from __future__ import annotations

from gpt import LoadedModel

COST = 0.005  # seconds that the server spends on one update, about: gradio's work, not the model's
SHARE = 0.5  # of the server's time that may go into updates; the rest is for tokens


def update_gap(loaded: LoadedModel) -> float:
    """Seconds between two updates of one stream, so that there is time left for what everybody else is shown."""
    return COST / SHARE * max(0, loaded.engine.admission.n_admitted - 1)
