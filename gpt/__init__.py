"""A GPT written from scratch in PyTorch, and everything that computes with it, independent of any user interface."""

import gpt.inference.zero_gpu  # noqa: F401  on ZeroGPU it must come before torch
from gpt.cache import KVCache
from gpt.config import PRESETS, GPTConfig
from gpt.documents.generation import FinishReason, Generation, Step, encode_prompt
from gpt.edits import Edits, Patch
from gpt.generate import generate
from gpt.model import GPT
from gpt.models.loading import LoadedModel
from gpt.models.registry import add_model, add_upload, get_model, list_models
from gpt.models.sources import DEFAULT_MODEL, load_model
from gpt.sampling import SamplingParams, Stages, distribution, with_seed
from gpt.tokenizer import Tokenizer
from gpt.trace import Trace

__all__ = [
    "DEFAULT_MODEL",
    "GPT",
    "PRESETS",
    "Edits",
    "FinishReason",
    "GPTConfig",
    "Generation",
    "KVCache",
    "LoadedModel",
    "Patch",
    "SamplingParams",
    "Stages",
    "Step",
    "Tokenizer",
    "Trace",
    "add_model",
    "add_upload",
    "distribution",
    "encode_prompt",
    "generate",
    "get_model",
    "list_models",
    "load_model",
    "with_seed",
]
