"""Views for the Compare tab."""

from components.tabs.compare.views import beam_search, columns

VIEWS = (*columns.VIEWS, *beam_search.VIEWS)
