"""Views for the "Change it" tab."""

from components.tabs.change.views import effect, patching, texts

VIEWS = (*effect.VIEWS, *texts.VIEWS, *patching.VIEWS)
