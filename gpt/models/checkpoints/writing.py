"""Write models to disk, in our own format or in Hugging Face's.

Our format is a folder with config.json (including a checksum of all files), model.safetensors and the vocabulary.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file

from gpt.errors import GPTError
from gpt.inputs import AnyModel, with_tokenizer
from gpt.models.checkpoints.bpe_files import TOKENIZER_JSON, write_gpt2_files
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.checkpoints.families import GPT2
from gpt.models.checkpoints.files import CHECKSUM, CONFIG, WEIGHTS, folder_digest
from gpt.models.checkpoints.hugging_face_tokenizer import SETTINGS_FILES, TOKENIZER_CONFIG, write_json
from gpt.models.checkpoints.stated import Hints
from gpt.models.checkpoints.to_transformers import to_transformers
from gpt.models.checkpoints.token_table import TokenTable
from gpt.models.checkpoints.vocabularies import FILES, write_vocabulary
from gpt.read_only import ordinary
from gpt.tokenizer import Tokenizer, Vocabulary, load_vocabulary


def save_model(
    folder: Path | str,
    model: AnyModel,
    vocabulary: Vocabulary | Path | str | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    overwrite: bool = False,
) -> None:
    """Write a model in our own format. If interrupted, leaves the files of an existing model intact.

    vocabulary: defaults to a loaded model's tokenizer. dtype: data type for the weights.
    Raises ValueError if the folder already contains a model, unless `overwrite` is True.
    """
    network, tokenizer = with_tokenizer(model)
    state = {
        name: ordinary(value).detach().to("cpu", dtype).contiguous() for name, value in network.state_dict().items()
    }
    if network.config.tie_weights:
        del state["lm_head.weight"]
    known = load_vocabulary(vocabulary) if isinstance(vocabulary, (str, Path)) else vocabulary or tokenizer
    with new_folder(Path(folder), overwrite) as new:
        save_file(state, new / WEIGHTS)
        write_vocabulary(known, new)
        config = dataclasses.asdict(network.config)
        write_config(new, {**config, CHECKSUM: folder_digest(config, new)})


def save_hugging_face(
    model: AnyModel,
    folder: Path | str,
    vocabulary: Vocabulary | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    overwrite: bool = False,
) -> None:
    """Write a folder that `AutoModelForCausalLM.from_pretrained` and `AutoTokenizer` from transformers can open.

    Uses the family that the model was read from if possible, otherwise the first equivalent family. A tiktoken
    vocabulary is written for GPT2Tokenizer. Takes the same arguments as `save_model` and raises the same errors. Also
    raises ValueError for a model that no family in transformers can express. transformers computes in float32, as here,
    even if `dtype` stores the weights in half precision.
    """
    network, tokenizer = with_tokenizer(model)
    tokenizer = vocabulary or tokenizer
    state, config = to_transformers(network, getattr(model, "layout", ""))
    with new_folder(Path(folder), overwrite) as new:
        save_file({name: value.to(dtype) for name, value in state.items()}, new / WEIGHTS, metadata={"format": "pt"})
        if isinstance(tokenizer, Tokenizer):
            write_gpt2_files(tokenizer, new)
            if config["model_type"] != GPT2:  # AutoTokenizer expects a different class for other model types
                write_json(new / TOKENIZER_CONFIG, {"tokenizer_class": "GPT2Tokenizer"})
        else:
            write_vocabulary(tokenizer, new)
        if isinstance(tokenizer, TokenTable):
            named = {"eos_token": tokenizer.eot_id, "unk_token": tokenizer.unknown_id}
            names = {role: tokenizer.tokens[i] for role, i in named.items() if i is not None}
            write_json(new / TOKENIZER_JSON, tokenizer.as_tokenizer_json())
            write_json(new / TOKENIZER_CONFIG, {"tokenizer_class": "PreTrainedTokenizerFast", **names})
        start = tokenizer.prefix_ids[0] if tokenizer.prefix_ids else tokenizer.eot_id
        write_config(new, {**config, "bos_token_id": start, "eos_token_id": tokenizer.eot_id, "pad_token_id": None})


def convert(
    source: Path, target: Path, *, to: Literal["ours", "hf"] = "ours", hints: Hints | None = None, **given: Any
) -> str:
    """Convert a checkpoint to our format or Hugging Face's, and return its original layout.

    Keeps the stored data type. hints, or its fields as arguments: see `open_checkpoint`.
    """
    checkpoint = open_checkpoint(source, hints, **given)
    model, tokenizer, dtype = checkpoint.build(), checkpoint.tokenizer, checkpoint.dtype
    if to == "ours":
        save_model(target, model, tokenizer, dtype=dtype)
    else:
        save_hugging_face(model, target, tokenizer, dtype=dtype)
    return checkpoint.layout


def write_config(folder: Path, config: Mapping[str, object]) -> None:
    """Write config.json next to the weights."""
    write_json(folder / CONFIG, config)
    shutil.copymode(folder / CONFIG, folder / WEIGHTS)  # safetensors creates files that only the owner can read


@contextmanager
def new_folder(folder: Path, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary folder. Its files replace the old model if the block ends without an error.

    Raises ValueError if `folder` is a file, or contains a model and `overwrite` is False.
    """
    if folder.is_file() or (not overwrite and any((folder / name).exists() for name in (CONFIG, WEIGHTS))):
        raise GPTError(
            "save.exists",
            "{folder} already exists: choose another folder, or pass overwrite=True to replace the model in it",
            folder=folder,
        )
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as new:
        yield Path(new)
        written = os.listdir(new)
        for name in written:
            os.replace(Path(new) / name, folder / name)
        for name in {*FILES, *SETTINGS_FILES} - set(written):
            (folder / name).unlink(missing_ok=True)
