"""Views for Change it."""

from components.tabs.change.views import effect, patching, texts

VIEWS = (*effect.VIEWS, *texts.VIEWS, *patching.VIEWS)
