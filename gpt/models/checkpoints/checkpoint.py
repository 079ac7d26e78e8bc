"""Open a checkpoint, and load its weights into a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gpt.config import GPTConfig
from gpt.errors import GPTError, require
from gpt.model import GPT, meta_model
from gpt.models.checkpoints.files import WEIGHT_FILES, Deferred, Reader, numbers_of
from gpt.models.checkpoints.gguf import GGUF
from gpt.models.checkpoints.layouts import Hints
from gpt.models.checkpoints.other_formats import LLAMA2C, NANOCHAT, OPENAI, Adapted, base_of, is_adapter, merged
from gpt.models.checkpoints.quantized import dequantized
from gpt.models.checkpoints.translate import Weights, concatenated_shape, detect_layout, whole
from gpt.models.checkpoints.untrusted import existing
from gpt.models.memory import format_bytes, free_memory
from gpt.tokenizer import Vocabulary

CHECKED = 2**18  # numbers of a matrix that are checked at a time, because summing in float32 copies them


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """An opened and checked checkpoint with memory-mapped weights."""

    layout: str  # name of the checkpoint's format
    config: GPTConfig
    weights: Weights
    tokenizer: Vocabulary
    norm_offset: float = 0.0  # number to add to norm weights (Gemma stores them minus 1)
    folder: Path | None = None  # that contains the files
    stored_as: str = ""  # see `Contents`

    @property
    def dtype(self) -> torch.dtype:
        """Data type for re-saving the weights: float16 or bfloat16 if all weights have that type, else float32."""
        stored = {tensor.dtype for part in self.weights.values() for tensor in part}
        half = len(stored) == 1 and stored <= {torch.float16, torch.bfloat16} and not self.norm_offset
        return stored.pop() if half else torch.float32

    @property
    def adapted(self) -> list[str]:
        each = [(name, part) for name, parts in self.weights.items() for part in parts if isinstance(part, Deferred)]
        return list(dict.fromkeys(name for name, part in each if isinstance(part.read, Adapted)))

    def within(self, context: int | None) -> Checkpoint:
        """Return this checkpoint with a context of at most this many tokens, if its positions are rotary."""
        if context is None or self.config.position != "rotary" or self.config.block_size <= context:
            return self
        return replace(self, config=replace(self.config, block_size=context))

    def untrained(self) -> Checkpoint:
        """Return the model with random initial weights (seed 0), and without what describes the trained one."""
        state = GPT(self.config, generator=torch.Generator().manual_seed(0)).state_dict()
        weights: Weights = {name: (state[name],) for name in self.weights}
        return replace(self, weights=weights, norm_offset=0.0, folder=None, stored_as="")

    def n_bytes(self, dtype: torch.dtype = torch.float32) -> int:
        """Return the size of the weights when stored as `dtype`, in bytes."""
        return sum(tensor.numel() for part in self.weights.values() for tensor in part) * dtype.itemsize

    def build(self, dtype: torch.dtype = torch.float32, *, mapped: bool = False) -> GPT:
        """Build the model in evaluation mode. Copies the weights, so the files can change or be deleted afterwards.

        mapped: whether float32 weights stored in one part stay memory-mapped and are read, unchecked, on demand.
        Raises ValueError if there is not enough memory for the copies, or if a weight is NaN or infinite.
        """
        self.need_memory(self.n_copied_bytes if mapped else self.n_bytes(dtype))
        model = meta_model(self.config).eval()
        for _ in self.fill(model, partial(self.weight, dtype=dtype, mapped=mapped)):
            pass
        return model

    @property
    def n_copied_bytes(self) -> int:
        """Size of the weights that are copied although the model is memory-mapped, in bytes."""
        alone = [part[0] for part in self.weights.values() if len(part) == 1 and not isinstance(part[0], Deferred)]
        n_mapped = sum(tensor.nbytes for tensor in alone if tensor.dtype == torch.float32)
        return self.n_bytes() - n_mapped

    def need_memory(self, n_bytes: int) -> None:
        if n_bytes > (free := free_memory()):
            raise GPTError("memory.checkpoint", need=format_bytes(n_bytes), free=format_bytes(free))

    def deferred(self, name: str, dtype: torch.dtype) -> Tensor:
        """Return a matrix that is read, a few rows at a time, when it is packed; other weights are read at once."""
        if self.weights[name][0].dim() != 2:
            return self.weight(name, torch.float32)
        like = torch.empty(concatenated_shape(self.weights[name]), dtype=dtype, device="meta")
        return Deferred(partial(self.weight, name), like)

    def fill(self, model: GPT, read: Callable[[str], Tensor]) -> Iterator[nn.Module]:
        """Read the weights into a model on the meta device. Yields its parts, the large embeddings first."""
        blocks = {f"h.{layer}.": block for layer, block in enumerate(model.h)}
        others = [name for name in self.weights if not name.startswith(tuple(blocks))]
        model.load_state_dict({name: read(name) for name in others}, strict=False, assign=True)
        if self.config.tie_weights:
            model.lm_head.weight = model.wte.weight
        yield nn.ModuleList(part for name, part in model.named_children() if name != "h")
        for prefix, block in blocks.items():
            names = [name for name in self.weights if name.startswith(prefix)]
            block.load_state_dict({name.removeprefix(prefix): read(name) for name in names}, assign=True)
            yield block

    def weight(self, name: str, dtype: torch.dtype, rows: range | None = None, *, mapped: bool = False) -> Tensor:
        """Return a copy of a weight, or of some rows of it. Raises ValueError if it is NaN or infinite.

        mapped: see `build`.
        """
        parts, some = self.weights[name], slice(None) if rows is None else slice(rows.start, rows.stop)
        if rows is not None and len(parts) == 1:
            weight = numbers_of([parts[0][some]], dtype)[0]  # reads no other rows
        else:
            weight = whole(numbers_of(parts, dtype))[some]
        if self.norm_offset and weight.dim() == 1 and name.endswith(".weight"):
            weight = weight.float() + self.norm_offset
        if mapped:
            return weight.float()
        was_read = isinstance(parts[0], Deferred) and weight.untyped_storage().nbytes() == weight.nbytes
        weight = weight.to(dtype, copy=not was_read, memory_format=torch.contiguous_format)
        for checked in weight.split(max(1, CHECKED // (weight.numel() // len(weight)))):
            if not checked.sum(dtype=torch.float32).isfinite() and not checked.isfinite().all():
                raise GPTError("checkpoint.weights_not_finite", name=name)
        return weight


# Readers of single formats. The last one reads everything else.
READERS: tuple[Reader, ...] = (NANOCHAT, OPENAI, GGUF, LLAMA2C, WEIGHT_FILES)


def find_files(path: Path) -> tuple[Reader, list[Path]]:
    """Return the reader for a file or a folder, and the files to read. Raises ValueError if there are none."""
    return next((reader, files) for reader in READERS if (files := reader.find(path)))


def name_of(path: Path) -> str:
    """Return the name of a folder's first weight file, or of an adapter's base model. Raises ValueError without one."""
    base = base_of(path, None)
    name = find_files(path)[1][0].name if base == path else Path(base).name
    return f"{name} + LoRA" if is_adapter(path) else name


def open_checkpoint(path: Path | str, hints: Hints | None = None, **given: Any) -> Checkpoint:
    """Open a checkpoint: a folder, a weight file, or an index of shards, in the format of one of READERS.

    hints, or their fields as arguments: settings that the checkpoint does not contain; see `Hints`.
    Raises WeightsUnknown if a file contains several models, NamesInferred if the roles of the weights can only
    be inferred, HeadsUnknown if n_head is needed, ScaleUnknown if attn_scale is needed, and ValueError for a checkpoint
    that is unreadable or unsupported.
    """
    hints = hints or Hints(**given)
    path = existing(Path(path))
    try:
        base = base_of(path, hints.base)
        require(Path(base).exists(), "adapter.base", base=base)
        reader, files = find_files(Path(base))
        contents = dequantized(reader.read(files, hints), files[0].name)
        if is_adapter(path):
            contents = merged(contents, path, 1.0 if hints.strength is None else hints.strength)
        layout, config, weights = detect_layout(contents, hints)
        vocabulary = contents.vocabulary(config.vocab_size)
    except OSError as error:
        raise GPTError("file.unreadable", file=path.name, reason=error.strerror or error) from None
    return Checkpoint(
        layout.title, config, weights, vocabulary, layout.norm_offset, contents.folder, contents.stored_as
    )
