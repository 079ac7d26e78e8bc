"""The views of the Change tab."""

from components.tabs.change.views import effect, patching, texts

VIEWS = (*effect.VIEWS, *texts.VIEWS, *patching.VIEWS)
