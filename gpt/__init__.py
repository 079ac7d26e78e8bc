"""A GPT written from scratch in PyTorch, with tools to run, train and analyse it. Independent of any user interface."""

import gpt.inference  # noqa: F401  on ZeroGPU this import must precede torch
from gpt.analysis.lens import logit_lens
from gpt.analysis.tracing import trace_text
from gpt.cache import KVCache
from gpt.config import PRESETS, GPTConfig
from gpt.documents.beam_search import BeamSearch
from gpt.documents.generation import FinishReason, Generation, Step
from gpt.edits import Edits, Hook, Patch, Steering
from gpt.errors import GPTError
from gpt.generate import generate, generate_batch, generate_greedy
from gpt.inputs import encode_prompt
from gpt.model import GPT
from gpt.models.checkpoints.writing import save_hugging_face, save_model
from gpt.models.loading import LoadedModel, Tokens
from gpt.models.registry import add_model, add_upload, get_model, list_models
from gpt.models.sources import DEFAULT_MODEL, load_model
from gpt.sampling import SamplingParams, Stages, distribution, with_seed
from gpt.tokenizer import Tokenizer, gpt2_tokenizer
from gpt.trace import LayerTrace, Trace

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_MODEL",
    "GPT",
    "PRESETS",
    "BeamSearch",
    "Edits",
    "FinishReason",
    "GPTConfig",
    "GPTError",
    "Generation",
    "Hook",
    "KVCache",
    "LayerTrace",
    "LoadedModel",
    "Patch",
    "SamplingParams",
    "Stages",
    "Steering",
    "Step",
    "Tokenizer",
    "Tokens",
    "Trace",
    "add_model",
    "add_upload",
    "distribution",
    "encode_prompt",
    "generate",
    "generate_batch",
    "generate_greedy",
    "get_model",
    "gpt2_tokenizer",
    "list_models",
    "load_model",
    "logit_lens",
    "save_hugging_face",
    "save_model",
    "trace_text",
    "with_seed",
]
