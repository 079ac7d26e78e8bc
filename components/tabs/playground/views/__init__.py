"""The views of the Playground."""

from components.tabs.playground.views import next_token, pipeline, text, tree

SHARED_VIEWS = text.SHARED_VIEWS
VIEWS = (*text.VIEWS, *tree.VIEWS, *next_token.VIEWS, *pipeline.VIEWS)
