"""Every small picture by the key of its lesson; lessons without one show a panel of the lab."""

from components.tabs.lessons import model_pictures, shape_pictures, text_pictures
from components.tabs.lessons.picture import Picture

PICTURES: dict[str, Picture] = shape_pictures.PICTURES | model_pictures.PICTURES | text_pictures.PICTURES
