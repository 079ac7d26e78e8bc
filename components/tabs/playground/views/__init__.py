"""The views of the Playground."""

from components.tabs.playground.views import next_token, pipeline, text, tree

VIEWS = (*text.VIEWS, *tree.VIEWS, *next_token.VIEWS, *pipeline.VIEWS)
