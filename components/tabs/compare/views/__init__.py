"""What the Compare tab shows of a session."""

from components.tabs.compare.views import beam_search, columns

VIEWS = (*columns.VIEWS, *beam_search.VIEWS)
