"""The machine picture for given tokens and a model other than the session's."""

from __future__ import annotations

from collections.abc import Sequence

from components.tabs.inside.recording import Recording
from components.tabs.inside.views.flow import flow, window
from components.tabs.inside.views.scene import Data, Scene
from gpt import Generation, LoadedModel, SamplingParams

MAX_ROWS = 24  # tokens shown


class ExamplePass:
    """A model's forward pass over token ids, truncated to its context."""

    def __init__(self, loaded: LoadedModel, ids: Sequence[int]) -> None:
        document = Generation(loaded, ids)
        document.read()
        self.recording = Recording.empty(document).extended(tuple(ids))

    def draw(self, position: int, layer: int, head: int, settings: SamplingParams) -> Data:
        """Return the data for the flow widget."""
        scene = Scene(self.recording, position, None, layer, head, settings)
        return flow(scene, window(self.recording.length, position, MAX_ROWS)) | {"offered_rows": None}
