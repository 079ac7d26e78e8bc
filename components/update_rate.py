"""The rate at which the server sends the updates of one stream."""

from __future__ import annotations

from gpt import LoadedModel

UPDATE_COST_SECONDS = 0.005  # server time for one update, without the model's share
MAX_UPDATE_SHARE = 0.5  # of the server's time that updates may take


def min_update_interval(loaded: LoadedModel) -> float:
    """Minimum number of seconds between two updates of one stream; 0 for a single stream, grows with their number."""
    admission = loaded.engine.admission  # who waits may have begun, as texts take turns
    return UPDATE_COST_SECONDS / MAX_UPDATE_SHARE * max(0, admission.n_admitted + admission.n_waiting - 1)
