"""The experiments: the tabs Activations, Shapes and Loss, and panels that stand wherever they are built.

Every panel is a function

    build_<name>(words: Words, frame: Frame, playground: Playground) -> Panel

that lays out one card into the current context: a question, one sentence with the live answer, a few controls, charts.
It computes nothing before it is shown: `panel.show_on(tab.select)`, or any other triggers, or `panel.show` as the
handler of an event of one's own, with `panel.inputs` and `panel.outputs`. Showing it again is quick and follows the
visitor's document, selection and model. Panels, each in the module of its name:

    layer_norm, shortcuts, tokenizer, masks, initialisation, tying, kernels, positions, skeleton, feed_forward
"""
