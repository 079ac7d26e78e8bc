"""What the lessons show: figures, and panels below a figure or in place of one; keyed by lesson."""

from components.panels import (
    feed_forward,
    initialisation,
    kv_cache,
    layer_norm,
    masks,
    norm_placement,
    notebook,
    positions,
    shortcuts,
    skeleton,
    tokenizer,
    tying,
)
from components.parts import Part
from components.tabs.lessons.figure import Picture
from components.tabs.lessons.pictures import (
    llama_pictures,
    model_pictures,
    shape_pictures,
    text_pictures,
    training_pictures,
)

PICTURES: dict[str, Picture] = (
    shape_pictures.PICTURES
    | model_pictures.PICTURES
    | text_pictures.PICTURES
    | training_pictures.PICTURES
    | llama_pictures.PICTURES
)
PANELS: dict[str, tuple[Part, ...]] = {
    "tokenizer": (tokenizer.SECTION,),
    "positions": (positions.SECTION,),
    "layer_norm": (layer_norm.SECTION,),
    "feed_forward": (feed_forward.SECTION,),
    "shortcuts": (shortcuts.SECTION,),
    "block": (norm_placement.SECTION,),
    "skeleton": (skeleton.SECTION,),
    "initialisation": (tying.SECTION, initialisation.SECTION),
    "untrained": (notebook.SECTION,),
    "small": (masks.SECTION,),
    "next": (kv_cache.PREFILL, kv_cache.KERNELS),
}
