"""Open a checkpoint: find and check its files, and load its weights into a model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.model import GPT, meta_model
from gpt.models.checkpoints.detection import detect_layout
from gpt.models.checkpoints.layouts import LAYOUT_FILE, Layout, read_layout
from gpt.models.checkpoints.stated import INFER, Beside, Hints
from gpt.models.checkpoints.token_table import table_inside, token_table
from gpt.models.checkpoints.translate import Weights
from gpt.models.checkpoints.untrusted import damaged, not_readable, read_json, read_yaml
from gpt.models.checkpoints.vocabularies import FILES, pad_vocabulary, vocabulary_or_ids
from gpt.models.checkpoints.weight_file import open_weights
from gpt.models.memory import format_bytes, free_memory, release_file_pages
from gpt.tokenizer import Vocabulary

CONFIG, WEIGHTS = "config.json", "model.safetensors"
# Files of other programs that state options. They are read if there is no config.json.
SETTINGS = ("params.json", "model_config.json", "model_config.yaml", "hparams.json", "args.json")
ADAPTER_CONFIG = "adapter_config.json"
CHECKED_ROWS = 4096  # rows checked at a time, because summing in float32 copies them
CHECKSUM = "sha256"  # key in our config.json
TORCH_WEIGHTS = "pytorch_model.bin"
TORCH_FILES = ("ckpt.pt", TORCH_WEIGHTS, "model.pt", "model.pth")
INDEX_SUFFIX = ".index.json"  # suffix of files that list the shards of the weights
INDEXES = (WEIGHTS + INDEX_SUFFIX, TORCH_WEIGHTS + INDEX_SUFFIX)
SUFFIXES = (".safetensors", ".pt", ".pth", ".ckpt", ".bin")
# Other files found next to weights: adapters, concepts, data, settings, and optimizer, schedule and generator states.
NO_WEIGHTS = re.compile(
    r"(adapter_model|concepts|(.*[_.-])?optim(izer)?s?|scheduler|scaler|rng_state|random_states|training_args"
    r"|(train|val|valid|test)\.bin$)(?![a-z])"
)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """An opened and checked checkpoint with memory-mapped weights.

    layout: name of the checkpoint's format. norm_offset: number to add to norm weights (Gemma stores them minus 1).
    folder: folder that contains the files.
    """

    layout: str
    config: GPTConfig
    weights: Weights
    tokenizer: Vocabulary
    norm_offset: float = 0.0
    folder: Path | None = None

    @property
    def dtype(self) -> torch.dtype:
        """Data type for re-saving the weights: float16 or bfloat16 if all weights have that type, else float32."""
        stored = {tensor.dtype for part in self.weights.values() for tensor in part}
        half = len(stored) == 1 and stored <= {torch.float16, torch.bfloat16} and not self.norm_offset
        return stored.pop() if half else torch.float32

    def n_bytes(self, dtype: torch.dtype = torch.float32) -> int:
        """Return the size of the weights when stored as `dtype`, in bytes."""
        return sum(tensor.numel() for part in self.weights.values() for tensor in part) * dtype.itemsize

    def build(self, dtype: torch.dtype = torch.float32) -> GPT:
        """Build the model in evaluation mode. Copies the weights, so the files can change or be deleted afterwards.

        Raises ValueError if there is not enough memory, or if a weight is NaN or infinite.
        """
        self.need_memory(self.n_bytes(dtype))
        model = meta_model(self.config).eval()
        for _ in self.fill(model, dtype):
            pass
        return model

    def build_mapped(self) -> GPT:
        """Build the model in evaluation mode in float32 with memory-mapped weights, which are read on demand.

        The files must not change while the model exists. Copies weights that are stored in another data type or in
        parts, and checks only that these copies fit into memory.
        """
        self.need_memory(self.n_copied_bytes)
        model = meta_model(self.config).eval()
        state = {name: self._stored(name).float() for name in self.weights}
        model.load_state_dict(state, strict=False, assign=True)
        if self.config.tie_weights:
            model.lm_head.weight = model.wte.weight
        return model

    @property
    def n_copied_bytes(self) -> int:
        """Size of the weights that `build_mapped` copies, in bytes."""
        copied = [part for part in self.weights.values() if len(part) > 1 or part[0].dtype != torch.float32]
        return sum(tensor.numel() for part in copied for tensor in part) * torch.float32.itemsize

    def need_memory(self, n_bytes: int) -> None:
        """Raise ValueError unless `n_bytes` bytes are free."""
        if n_bytes > (free := free_memory()):
            raise GPTError(
                "memory.checkpoint",
                "this model needs {need} of memory, but only {free} are free",
                need=format_bytes(n_bytes),
                free=format_bytes(free),
            )

    def fill(
        self, model: GPT, dtype: torch.dtype = torch.float32, *, matrices: torch.dtype | None = None
    ) -> Iterator[nn.Module]:
        """Load the weights into a model on the meta device. Yields each loaded block so that it can be packed.

        matrices: data type for matrices, if it differs from dtype.
        Raises ValueError if a weight is NaN or infinite.
        """
        blocks = {f"h.{layer}.": block for layer, block in enumerate(model.h)}
        for prefix, block in blocks.items():
            names = [name for name in self.weights if name.startswith(prefix)]
            state = self._read(names, dtype, matrices)
            block.load_state_dict({name.removeprefix(prefix): state.pop(name) for name in names}, assign=True)
            yield block
        others = [name for name in self.weights if not name.startswith(tuple(blocks))]
        model.load_state_dict(self._read(others, dtype, matrices), strict=False, assign=True)
        if self.config.tie_weights:
            model.lm_head.weight = model.wte.weight

    def _read(self, names: Iterable[str], dtype: torch.dtype, matrices: torch.dtype | None) -> dict[str, Tensor]:
        """Copy these weights and release the mapped pages of their files."""
        parts = {name: self.weights[name] for name in names}
        state = {
            name: self._weight(name, matrices if matrices and part[0].dim() == 2 else dtype)
            for name, part in parts.items()
        }
        release_file_pages(tensor for part in parts.values() for tensor in part)
        return state

    def _stored(self, name: str) -> Tensor:
        """Return a weight. It is memory-mapped if it is stored in one part and needs no offset."""
        part = self.weights[name]
        stored = part[0] if len(part) == 1 else torch.cat(part)
        if self.norm_offset and stored.dim() == 1 and name.endswith(".weight"):
            return stored.float() + self.norm_offset
        return stored

    def _weight(self, name: str, dtype: torch.dtype) -> Tensor:
        weight = self._stored(name).to(dtype, copy=True, memory_format=torch.contiguous_format)
        for rows in weight.split(CHECKED_ROWS):
            if not rows.sum(dtype=torch.float32).isfinite() and not rows.isfinite().all():
                raise GPTError(
                    "checkpoint.weights_not_finite",
                    "{name} has weights that are NaN or infinite: its training went wrong",
                    name=name,
                )
        return weight


def open_checkpoint(path: Path | str, hints: Hints | None = None, **given: Any) -> Checkpoint:
    """Open a checkpoint: a folder, a weight file, or an index of shards.

    Reads the configuration and the vocabulary from the same folder. hints, or their fields as arguments: settings that
    the checkpoint does not contain; see `Hints`.
    Raises WeightsUnknown if a file contains several models, NamesInferred if the roles of the weights can only
    be inferred, HeadsUnknown if n_head is needed, ScaleUnknown if attn_scale is needed, and ValueError for a checkpoint
    that is unreadable or unsupported.
    """
    path = Path(path)
    if not (path.is_file() or path.is_dir()):
        raise unknown_file(path)
    try:
        return open_files(weight_files(path), hints or Hints(**given))
    except OSError as error:
        raise not_readable(path, error) from None


def open_files(files: list[Path], hints: Hints) -> Checkpoint:
    """Open these weight files. Reads the configuration and the vocabulary from the folder of the first file."""
    folder = files[0].parent
    config = read_json(folder / CONFIG, dict) if (folder / CONFIG).is_file() else None
    if config and (checksum := config.pop(CHECKSUM, None)) is not None and checksum != folder_digest(config, folder):
        raise GPTError(
            "checkpoint.checksum",
            "{folder} is damaged: its files do not match the checksum in {file}",
            folder=folder.resolve().name,
            file=CONFIG,
        )
    tensors, entries = open_weights(files[0], hints.weights)
    for file in files[1:]:
        tensors |= open_weights(file, hints.weights)[0]
    if any(".lora_" in name for name in tensors):
        raise is_adapter(files[0].name)
    given = given_layout(folder, hints.names)
    settings = settings_beside(folder) if config is None else None
    found = detect_layout(tensors, config=config, settings=settings, entries=entries, given=given, hints=hints)
    n_vocab = found.config.vocab_size
    if table := table_inside(entries, n_vocab):
        vocabulary: Vocabulary = pad_vocabulary(token_table(table), n_vocab)
    else:
        vocabulary = vocabulary_or_ids(vocabulary_folder(folder, entries), n_vocab)
    return Checkpoint(found.layout.title, found.config, found.weights, vocabulary, found.layout.norm_offset, folder)


def settings_beside(folder: Path) -> Beside | None:
    """Return the options in one of SETTINGS, or None if there is no such file."""
    file = next((folder / name for name in SETTINGS if (folder / name).is_file()), None)
    if file is None:
        return None
    return Beside(file.name, read_yaml(file) if file.suffix == ".yaml" else read_json(file, dict))


def given_layout(folder: Path, names: Path | str | None) -> Layout | None:
    """Return the layout in a layout file, or None if there is no such file. names: see `Hints`."""
    if names == INFER or (names is None and not (folder / LAYOUT_FILE).is_file()):
        return None
    path = folder / LAYOUT_FILE if names is None else Path(names)
    if not path.is_file():
        raise unknown_file(path)
    return read_layout(path)


def unknown_file(path: Path) -> GPTError:
    """Return the error for a path that does not exist."""
    return GPTError("file.unknown", "there is no file or folder {path}", path=path)


def weight_files(path: Path) -> list[Path]:
    """Return the weight files in a folder or an index. For a weight file, return only that file."""
    if path.is_file():
        return shards(path) if path.name.endswith(INDEX_SUFFIX) else [path]
    if adapters := [file.name for file in sorted(path.glob("adapter_*")) if file.is_file()]:
        raise is_adapter(adapters[0])
    for name in (WEIGHTS, *INDEXES):
        if (path / name).is_file():
            return weight_files(path / name)
    if parts := sorted(path.glob("model-*-of-[0-9][0-9][0-9][0-9][0-9].safetensors")):
        if len(parts) != int(parts[0].stem.rpartition("-")[2]):
            raise GPTError(
                "checkpoint.missing_shards",
                "{folder} has only {n} of a model's parts: see {file}",
                folder=path.name,
                n=len(parts),
                file=parts[0].name,
            )
        return parts
    usual = [path / name for name in TORCH_FILES if (path / name).is_file()]
    found = [file for file in sorted(path.iterdir()) if file.suffix in SUFFIXES and file.is_file()]
    others = [file for file in found if not NO_WEIGHTS.match(file.name)]
    if not others:
        raise GPTError(
            "checkpoint.no_weights",
            "there is no weight file here (.safetensors, .pt, .pth, .ckpt or .bin); unpack a .zip first",
        )
    if not usual and len(others) > 1:
        raise GPTError(
            "checkpoint.several_weights",
            "there are {n} weight files here ({names}): name the one to read",
            n=len(others),
            names=", ".join(file.name for file in others[:5]) + (", …" if len(others) > 5 else ""),
        )
    return usual[:1] or others


def is_adapter(file: str) -> GPTError:
    """Return the error for an adapter that is not merged into its base model."""
    return GPTError(
        "checkpoint.adapter",
        "{file} belongs to an adapter (LoRA), which changes the weights of its base model: merge it into the model "
        "first (merge_and_unload in peft)",
        file=file,
    )


def shards(index: Path) -> list[Path]:
    """Return the files that an index lists. Raises ValueError if a file is missing or in another folder."""
    names = listed_files(index)
    for name in names:
        if not (index.parent / name).is_file():
            raise GPTError(
                "checkpoint.missing_file", "{index} lists {file}, which is missing", index=index.name, file=name
            )
    return [index.parent / name for name in names]


def listed_files(index: Path) -> list[str]:
    """Return the names of the files that an index lists. Raises ValueError for files outside the index's folder."""
    listed = read_json(index, dict).get("weight_map")
    names = sorted(set(map(str, listed.values()))) if isinstance(listed, dict) else []
    suffix = Path(index.name.removesuffix(INDEX_SUFFIX)).suffix
    if not names or not all(re.fullmatch(rf"\w[\w.-]*\{suffix}", name) for name in names):
        raise damaged(index, f"weight_map: {names[:3]}")
    return names


def vocabulary_folder(folder: Path, extras: Mapping[str, object]) -> Path:
    """Return the folder that contains the vocabulary: the weights' folder or, in nanoGPT, ../data/<dataset>."""
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


def folder_digest(config: Mapping[str, object], folder: Path) -> str:
    """Return the SHA-256 of a configuration together with the vocabulary and the weights in a folder."""
    total = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for name in (*FILES, WEIGHTS):
        if (folder / name).is_file():
            with (folder / name).open("rb") as file:
                while block := file.read(1 << 20):
                    total.update(block)
    return total.hexdigest()
