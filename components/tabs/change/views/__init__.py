"""What the Change tab shows of a session."""

from components.tabs.change.views import effect, patching, texts

VIEWS = (*effect.VIEWS, *texts.VIEWS, *patching.VIEWS)
