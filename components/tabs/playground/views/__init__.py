"""Views for the Write tab."""

from components.tabs.playground.views import pipeline, prediction, text, tree

SHARED_VIEWS = text.SHARED_VIEWS
VIEWS = (*text.VIEWS, *tree.VIEWS, *prediction.VIEWS, *pipeline.VIEWS)
