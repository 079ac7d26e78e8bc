"""Small experiments that a tab shows, one module each.

Every panel is a function

    build_<name>(localizer, events, tab, is_open) -> None

that lays one card out in the current context: a question, a sentence with the answer, a few controls, charts. The tab
with that id shows it while `is_open` of a snapshot is true. Views and controls of a closed panel are not drawn, and
nothing is computed for it.

    layer_norm, shortcuts, tokenizer, masks, initialisation, tying, kernels, positions, skeleton, feed_forward
"""
