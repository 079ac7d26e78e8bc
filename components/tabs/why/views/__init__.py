"""The views of Causes."""

from components.tabs.why.views import flow, lens, parts, tokens

VIEWS = (*flow.VIEWS, *tokens.VIEWS, *lens.VIEWS, *parts.VIEWS)
