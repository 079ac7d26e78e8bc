"""Small experiments shown by tabs, one module each.

Each panel is a function

    build_<name>(localizer, events, tab, is_open) -> None

that builds one card in the current context: title, one-sentence answer, controls and charts. The tab with that
id shows the panel while `is_open(snapshot)` is true. While a panel is closed, it is neither drawn nor computed.

    layer_norm, shortcuts, tokenizer, masks, initialisation, tying, kernels, positions, skeleton, feed_forward
"""
