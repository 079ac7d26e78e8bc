"""Cards: what the page draws itself, each one gr.HTML with pictures and its own small controls, declared as data.

`components.parts` has what a card can hold, `card` builds and wires it, `card.js` draws it. A part that can be used
names its handler, so a control is declared in one place: `slider("x", -6, 6, 0.05, value=of the snapshot, on=handler)`.
"""
