"""What the Why tab shows of a session."""

from components.tabs.why.views import lens, parts, tokens

VIEWS = (*tokens.VIEWS, *lens.VIEWS, *parts.VIEWS)
