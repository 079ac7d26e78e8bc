"""The browser widgets. Each is a factory for a gr.HTML, with its script and style in the same folder.

Their scripts draw values with `textContent`, so nothing in a value is interpreted as HTML.
Their styles are sent once, in the page's head (`components.assets`), not with every widget and update.
"""
