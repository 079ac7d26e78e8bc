"""The views of the Why tab."""

from components.tabs.why.views import flow, lens, parts, tokens

VIEWS = (*flow.VIEWS, *tokens.VIEWS, *lens.VIEWS, *parts.VIEWS)
