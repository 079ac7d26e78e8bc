"""Models on disk: read checkpoints in many layouts, and write them in our own format or Hugging Face's."""

from gpt.models.checkpoints.checkpoint import Checkpoint, main_file, open_checkpoint
from gpt.models.checkpoints.converting import convert
from gpt.models.checkpoints.files import WeightsUnknown
from gpt.models.checkpoints.gguf_writing import save_gguf
from gpt.models.checkpoints.layouts import LAYOUT_FILE, SCALES, HeadsUnknown, NamesInferred, NamesUnknown, ScaleUnknown
from gpt.models.checkpoints.stated import INFER, AttnScale, Hints
from gpt.models.checkpoints.writing import save_hugging_face, save_model

__all__ = [
    "INFER",
    "LAYOUT_FILE",
    "SCALES",
    "AttnScale",
    "Checkpoint",
    "HeadsUnknown",
    "Hints",
    "NamesInferred",
    "NamesUnknown",
    "ScaleUnknown",
    "WeightsUnknown",
    "convert",
    "main_file",
    "open_checkpoint",
    "save_gguf",
    "save_hugging_face",
    "save_model",
]
