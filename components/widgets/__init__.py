"""The browser widgets: each a factory of a gr.HTML, with its script and style beside it.

Their values are strings, drawn by the widget's own script with `textContent`; nothing in them is read as HTML.
Their styles reach the page once, with the head (`components.assets`), not once per widget and update.
"""
