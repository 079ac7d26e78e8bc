"""Writes models to disk, in our own format and in Hugging Face's.

Our format is a folder of config.json (with a checksum over everything), model.safetensors and the vocabulary.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file
from torch import Tensor

from gpt.errors import GPTError
from gpt.model import GPT
from gpt.models.checkpoints.bpe_files import write_gpt2_files
from gpt.models.checkpoints.checkpoint import CHECKSUM, CONFIG, WEIGHTS, folder_digest, open_checkpoint
from gpt.models.checkpoints.families import FAMILIES, GPT2, SIZES
from gpt.models.checkpoints.hugging_face_tokenizer import SETTINGS_FILES
from gpt.models.checkpoints.stated import Hints
from gpt.models.checkpoints.vocabularies import FILES, write_vocabulary
from gpt.tokenizer import Tokenizer, Vocabulary, load_vocabulary

# Matrices that transformers stores as (in, out), as OpenAI's release does.
TRANSPOSED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
# Names of its options by ours, without that of the activation, whose values have other names.
GPT2_OPTIONS = {ours: name for ours, name in {**SIZES, **FAMILIES[GPT2].options}.items() if ours != "activation"}
# Our options that it can express; biases that are absent are zeros.
GPT2_EXPRESSES = {*GPT2_OPTIONS, "activation", "bias", "qkv_bias", "proj_bias", "mlp_bias"}


def save_model(
    folder: Path | str, model: GPT, vocabulary: Vocabulary | Path | str, *, dtype: torch.dtype = torch.float16
) -> None:
    """Write our own format, with the weights in dtype; an interrupted save leaves the files of the old model."""
    state = {name: value.detach().to("cpu", dtype).contiguous() for name, value in model.state_dict().items()}
    if model.config.tie_weights:
        del state["lm_head.weight"]
    known = load_vocabulary(vocabulary) if isinstance(vocabulary, (str, Path)) else vocabulary
    with new_folder(Path(folder)) as new:
        save_file(state, new / WEIGHTS)
        write_vocabulary(known, new)
        config = dataclasses.asdict(model.config)
        write_config(new, {**config, CHECKSUM: folder_digest(config, new)})


def save_hugging_face(
    folder: Path | str, model: GPT, vocabulary: Vocabulary, *, dtype: torch.dtype = torch.float32
) -> None:
    """Write a folder for transformers: GPT2LMHeadModel, and GPT2Tokenizer if the vocabulary is BPE."""
    state, config = to_hugging_face(model)
    with new_folder(Path(folder)) as new:
        save_file({name: value.to(dtype) for name, value in state.items()}, new / WEIGHTS, metadata={"format": "pt"})
        if isinstance(vocabulary, Tokenizer):
            write_gpt2_files(vocabulary, new)
        else:
            write_vocabulary(vocabulary, new)
        write_config(new, {**config, "bos_token_id": vocabulary.eot_id, "eos_token_id": vocabulary.eot_id})


def convert(
    source: Path, target: Path, *, to: Literal["ours", "hf"] = "ours", hints: Hints | None = None, **given: Any
) -> str:
    """Read a checkpoint, write ours or Hugging Face's in the stored data type; returns the layout that was read.

    hints, or their fields as arguments: as for `open_checkpoint`.
    """
    checkpoint = open_checkpoint(source, hints, **given)
    write = save_model if to == "ours" else save_hugging_face
    write(target, checkpoint.build(), checkpoint.tokenizer, dtype=checkpoint.dtype)
    return checkpoint.layout


def write_config(folder: Path, config: Mapping[str, object]) -> None:
    """Write config.json beside the weights, with their permissions."""
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    shutil.copymode(folder / CONFIG, folder / WEIGHTS)  # safetensors creates files that only their owner can read


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder whose files replace those of the old model when the block ends without an error."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as new:
        yield Path(new)
        written = os.listdir(new)
        for name in written:
            os.replace(Path(new) / name, folder / name)
        for name in {*FILES, *SETTINGS_FILES} - set(written):
            (folder / name).unlink(missing_ok=True)


def transposed(name: str, tensor: Tensor) -> Tensor:
    """A view of a weight in our orientation, given transformers', or the other way round."""
    return tensor.t() if name.endswith(TRANSPOSED) and tensor.dim() == 2 else tensor


def to_hugging_face(model: GPT) -> tuple[dict[str, Tensor], dict[str, object]]:
    """The weights and the config.json of transformers' GPT2LMHeadModel; biases that a model lacks are zeros.

    Raises ValueError for a model with options that GPT-2 does not have.
    """
    config = model.config
    values = {field.name: (getattr(config, field.name), field.default) for field in fields(config)}
    if unknown := [
        f"{name}={value!r}" for name, (value, gpt2) in values.items() if name not in GPT2_EXPRESSES and value != gpt2
    ]:
        raise GPTError(
            "layout.not_gpt2",
            "transformers' GPT-2 cannot express {options}: save this model in our own format",
            options=", ".join(unknown),
        )
    state = {name: value.detach().cpu() for name, value in model.state_dict().items()}
    if config.tie_weights:
        del state["lm_head.weight"]
    for name, value in list(state.items()):
        if name.startswith(("h.", "ln_f.")) and name.endswith(".weight"):
            state.setdefault(name.removesuffix("weight") + "bias", value.new_zeros(len(value)))
    theirs = {
        name if name == "lm_head.weight" else f"transformer.{name}": transposed(name, value).contiguous()
        for name, value in state.items()
    }
    return theirs, {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": GPT2,
        "activation_function": "gelu_new" if config.activation == "gelu_tanh" else config.activation,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
        **{name: getattr(config, ours) for ours, name in GPT2_OPTIONS.items()},
    }
