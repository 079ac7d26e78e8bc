"""Small experiments shown by tabs, one module each.

Each panel has a function

    build_<name>() -> Panel

that returns its parts (title, one-sentence answer, controls and charts), its views and its analysis. `add_panel` shows
it in a tab while `is_open(snapshot)` is true. While a panel is closed, it is neither drawn nor computed.
"""
