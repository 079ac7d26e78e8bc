"""Views for the Causes tab."""

from components.tabs.why.views import flow, graph, lens, parts, tokens

VIEWS = (*flow.VIEWS, *graph.VIEWS, *tokens.VIEWS, *lens.VIEWS, *parts.VIEWS)
