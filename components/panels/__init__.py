"""Small experiments shown by tabs, one module each.

Each module has a `SECTION`, the part that a tab shows. While it is not on the page, it is neither drawn nor computed.
"""
