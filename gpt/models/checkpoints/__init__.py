"""Models on disk: reads every layout that gpt.models.checkpoints.layouts knows, writes our own folder and Hugging Face's.

Our folder holds config.json (with a checksum over all of it), model.safetensors and the vocabulary.
python -m gpt.models.checkpoints convert IN OUT
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.model import GPT
from gpt.models.checkpoints.bpe_files import write_gpt2_files
from gpt.models.checkpoints.hugging_face import to_hugging_face
from gpt.models.checkpoints.layouts import recognise
from gpt.models.checkpoints.untrusted import open_safetensors, open_weights, read_json
from gpt.models.checkpoints.vocabularies import BPE, FILES, find_vocabulary, write_vocabulary
from gpt.models.memory import free_memory, gigabytes
from gpt.models.meta import meta_model
from gpt.tokenizer import Tokenizer, Vocabulary, load_vocabulary

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", BPE
CHECKSUM = "sha256"
TORCH_FILES = ("ckpt.pt", "pytorch_model.bin", "model.pt", "model.pth")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint that was opened and understood; its weights are still on disk.

    layout: whose format it is, for people. parts: as in gpt.models.checkpoints.layouts.
    """

    layout: str
    config: GPTConfig
    parts: dict[str, tuple[Tensor, ...]]
    tokenizer: Vocabulary

    @property
    def dtype(self) -> torch.dtype:
        """The precision that the weights are stored in, float32 at most."""
        stored = {tensor.dtype for part in self.parts.values() for tensor in part}
        return stored.pop() if len(stored) == 1 and stored <= {torch.float16, torch.bfloat16} else torch.float32

    def n_bytes(self, dtype: torch.dtype = torch.float32) -> int:
        """Memory that the model takes."""
        return sum(tensor.numel() for part in self.parts.values() for tensor in part) * dtype.itemsize

    def build(self, dtype: torch.dtype = torch.float32) -> GPT:
        """The model, in evaluation mode, in memory of its own: the file may change or go afterwards.

        Raises ValueError if there is not enough memory or a weight is NaN or infinite.
        """
        self.need_memory(self.n_bytes(dtype))
        model = meta_model(self.config).eval()
        for _ in self.fill(model, dtype):
            pass
        return model

    def need_memory(self, n_bytes: int) -> None:
        """Raise ValueError unless so much is free."""
        if n_bytes > (free := free_memory()):
            raise GPTError("memory.checkpoint", need=gigabytes(n_bytes), free=gigabytes(free))

    def fill(self, model: GPT, dtype: torch.dtype = torch.float32) -> Iterator[nn.Module]:
        """Give a model of `gpt.models.meta` its weights, and return each block that has its own: it may be packed at once.

        Raises ValueError if a weight is NaN or infinite.
        """
        blocks = {f"h.{layer}.": block for layer, block in enumerate(model.h)}
        for prefix, block in blocks.items():
            names = [name for name in self.parts if name.startswith(prefix)]
            block.load_state_dict({name.removeprefix(prefix): self._weight(name, dtype) for name in names}, assign=True)
            yield block
        others = [name for name in self.parts if not name.startswith(tuple(blocks))]
        model.load_state_dict({name: self._weight(name, dtype) for name in others}, strict=False, assign=True)
        if self.config.tie_weights:
            model.lm_head.weight = model.wte.weight

    def _weight(self, name: str, dtype: torch.dtype) -> Tensor:
        part = self.parts[name]
        stacked = part[0] if len(part) == 1 else torch.cat(part)
        weight = stacked.to(dtype, copy=True, memory_format=torch.contiguous_format)
        if not weight.sum(dtype=torch.float32).isfinite() and not weight.isfinite().all():
            raise GPTError("checkpoint.weights_not_finite", name=name)
        return weight


def open_checkpoint(path: Path | str, *, n_head: int | None = None) -> Checkpoint:
    """Open a folder or a file in any known layout. The configuration and the vocabulary are looked for beside it.

    n_head: for checkpoints that do not say it (gpt.models.checkpoints.layouts.HeadsUnknown asks for it).
    Raises ValueError, with a sentence for a person, for everything that cannot be shown as it was meant.
    """
    path = Path(path)
    if not (path.is_file() or path.is_dir()):
        raise GPTError("file.unknown", path=path)
    try:
        return open_files(weight_files(path) if path.is_dir() else [path], n_head)
    except OSError as error:
        raise GPTError("file.unreadable", file=path.name, reason=error.strerror or error) from None


def open_files(files: list[Path], n_head: int | None) -> Checkpoint:
    """Open the weights in these files, with the configuration and the vocabulary beside the first."""
    folder = files[0].parent
    config = read_json(folder / CONFIG, dict) if (folder / CONFIG).is_file() else None
    if config and (checksum := config.pop(CHECKSUM, None)) is not None and checksum != digest(config, folder):
        raise GPTError("checkpoint.checksum", folder=folder.resolve().name, file=CONFIG)
    tensors, extras = open_weights(files[0])
    for more in files[1:]:
        tensors |= open_safetensors(more)
    args = extras.get("model_args")
    args = args if isinstance(args, dict) else None
    found = recognise(tensors, config=config, model_args=args, n_head=n_head)
    vocabulary = find_vocabulary(vocabulary_folder(folder, extras), found.config.vocab_size)
    return Checkpoint(found.layout, found.config, found.parts, vocabulary)


def weight_files(folder: Path) -> list[Path]:
    """The file or files of a folder that hold the weights."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if shards := sorted(folder.glob("model-*-of-[0-9][0-9][0-9][0-9][0-9].safetensors")):
        if len(shards) != int(shards[0].stem.rpartition("-")[2]):
            raise GPTError("checkpoint.missing_shards", folder=folder.name, n=len(shards), file=shards[0].name)
        return shards
    named = [folder / name for name in TORCH_FILES if (folder / name).is_file()]
    others = [file for file in sorted(folder.iterdir()) if file.suffix in (".safetensors", ".pt", ".pth", ".bin")]
    if not named and len(others) != 1:
        if not others:
            raise GPTError("checkpoint.no_weights")
        raise GPTError("checkpoint.several_weights", n=len(others))
    return named[:1] or others


def vocabulary_folder(folder: Path, extras: Mapping[str, object]) -> Path:
    """Where to look for the vocabulary: beside the weights, else where nanoGPT keeps it, in data/<dataset>."""
    settings = extras.get("config")
    dataset = settings.get("dataset") if isinstance(settings, dict) else None
    if (
        isinstance(dataset, str)
        and Path(dataset).name == dataset
        and not any((folder / name).is_file() for name in FILES)
    ):
        data = folder.resolve().parent / "data" / dataset
        return data if data.is_dir() else folder
    return folder


def save_model(
    folder: Path | str, model: GPT, vocabulary: Vocabulary | Path | str, *, dtype: torch.dtype = torch.float16
) -> None:
    """Write our own format, with the weights in dtype; each file is replaced whole or not at all."""
    state = {name: value.detach().to("cpu", dtype).contiguous() for name, value in model.state_dict().items()}
    if model.config.tie_weights:
        del state["lm_head.weight"]
    known = load_vocabulary(vocabulary) if isinstance(vocabulary, (str, Path)) else vocabulary
    with new_folder(Path(folder)) as new:
        save_file(state, new / WEIGHTS)
        write_vocabulary(known, new)
        config = dataclasses.asdict(model.config)
        write_config(new, {**config, CHECKSUM: digest(config, new)})


def save_hugging_face(
    folder: Path | str, model: GPT, vocabulary: Vocabulary, *, dtype: torch.dtype = torch.float32
) -> None:
    """Write a folder that transformers reads: GPT2LMHeadModel, and GPT2Tokenizer where the vocabulary is BPE."""
    state, config = to_hugging_face(model)
    with new_folder(Path(folder)) as new:
        save_file({name: value.to(dtype) for name, value in state.items()}, new / WEIGHTS, metadata={"format": "pt"})
        if isinstance(vocabulary, Tokenizer):
            write_gpt2_files(vocabulary, new)
        else:
            write_vocabulary(vocabulary, new)
        write_config(new, {**config, "bos_token_id": vocabulary.eot_id, "eos_token_id": vocabulary.eot_id})


def write_config(folder: Path, config: Mapping[str, object]) -> None:
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    shutil.copymode(folder / CONFIG, folder / WEIGHTS)  # safetensors makes files that only their owner can read


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A place to write a model, which then takes that of the old one; until then a reader finds the old one."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as new:
        yield Path(new)
        written = os.listdir(new)
        for name in written:
            os.replace(Path(new) / name, folder / name)
        for name in set(FILES) - set(written):
            (folder / name).unlink(missing_ok=True)


def digest(config: Mapping[str, object], folder: Path) -> str:
    """SHA-256 of a configuration, the vocabulary and the weights in a folder."""
    total = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for name in (*FILES, WEIGHTS):
        if (folder / name).is_file():
            with (folder / name).open("rb") as file:
                while block := file.read(1 << 20):
                    total.update(block)
    return total.hexdigest()


def convert(source: Path, target: Path, *, n_head: int | None = None, to: str = "ours") -> str:
    """Read any known layout, write ours or Hugging Face's in the precision it was stored in; return its layout."""
    checkpoint = open_checkpoint(source, n_head=n_head)
    write = save_model if to == "ours" else save_hugging_face
    write(target, checkpoint.build(), checkpoint.tokenizer, dtype=checkpoint.dtype)
    return checkpoint.layout
