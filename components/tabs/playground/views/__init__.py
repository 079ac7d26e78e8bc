"""The views of the Playground."""

from components.tabs.playground.views import next_token, pipeline, text

VIEWS = (*text.VIEWS, *next_token.VIEWS, *pipeline.VIEWS)
