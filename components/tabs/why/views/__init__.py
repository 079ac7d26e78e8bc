"""The views of the Why tab."""

from components.tabs.why.views import lens, parts, tokens

VIEWS = (*tokens.VIEWS, *lens.VIEWS, *parts.VIEWS)
