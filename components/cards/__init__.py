"""Cards: the parts of the page that the app draws itself.

Each card is one gr.HTML with pictures and small controls, declared as data. `components.parts` defines what a card can
contain, `card` builds and wires it, and `card.js` draws it. A control names its handler, so it is declared in one
place: `slider("x", "label", low=-6, high=6, step=0.05, value=of the snapshot, on=handler)`.
"""
