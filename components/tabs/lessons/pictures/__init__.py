"""The lessons' figures, keyed by lesson. Lessons without a figure show panels."""

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
