"""Build models from checkpoints on a given device and in a given precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from gpt.analysis.concepts import WINDOW, Concepts, Dictionary, NamedConcept
from gpt.analysis.tracing import trace_text
from gpt.background import release_threads, threads_for
from gpt.config import GPTConfig
from gpt.edits import Edits
from gpt.errors import GPTError, is_integer, require
from gpt.inference import on_zero_gpu
from gpt.inference.cluster import DeployedModel
from gpt.inference.engine import LARGE_MODEL, MAX_TEXTS, Engine
from gpt.inference.packed_weights import SMALL_WEIGHT, half_dtype, multiplications_per_token, pack, packs_float32
from gpt.inputs import Text, ids_of
from gpt.model import GPT, meta_model
from gpt.models.checkpoints.checkpoint import Checkpoint
from gpt.models.checkpoints.tokenizer_formats import suggested_sampling
from gpt.models.checkpoints.untrusted import open_safetensors, read_json, reading
from gpt.models.memory import return_free_memory, use_huge_pages
from gpt.read_only import freeze
from gpt.sampling import SamplingParams
from gpt.tokenizer import Vocabulary
from gpt.trace import Trace

Precision = Literal["fp32", "half", "int8"]
DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "half": torch.bfloat16, "int8": torch.int8}

# Files next to the weights: dictionaries of concepts, and names written by hand.
CONCEPTS, NAMES = "concepts.safetensors", "concepts.json"
MATRICES, SCALE = (".encoder", ".decoder"), ".scale"  # stored in int8; suffix of their scales

GPU_DEVICE = "cuda"  # device on ZeroGPU
_copies: WeakKeyDictionary[GPT, GPT] = WeakKeyDictionary()


class Tokens(NamedTuple):
    """A batch of texts, to be passed as `model(tokens.idx, attention_mask=tokens.attention_mask)`.

    idx: (B, T) token ids, with shorter texts padded with 0 on the left. attention_mask: (B, T), 1 for tokens and 0 for
    padding.
    """

    idx: Tensor
    attention_mask: Tensor


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model in evaluation mode, with its tokenizer. It may be shared between users, so never modify it.

    On a CPU, weights may be packed, which makes them read-only (see `gpt.inference.packed_weights`).
    `load_model(..., trainable=True)` gives ordinary weights.
    layout: name of the checkpoint's format. deployed: the deployment that generates text, if any; this model is then
    used only for inspection. is_adapted: whether an adapter is merged into it. concepts: concepts from the
    checkpoint's folder, if any. stored_as: type in which most weights were quantised, such as "Q4_K". suggested:
    sampling settings that generation_config.json names, if any; they are never applied by themselves. engine: reads
    all texts of this model.
    """

    name: str
    model: GPT
    tokenizer: Vocabulary
    device: torch.device
    precision: Precision
    layout: str = ""
    deployed: DeployedModel | None = None
    concepts: Concepts | None = None
    stored_as: str = ""
    suggested: SamplingParams | None = None
    is_adapted: bool = False
    engine: Engine = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n_replicas = 1 if self.deployed is None else self.deployed.cluster.max_replicas
        object.__setattr__(self, "engine", Engine(self.model, MAX_TEXTS * n_replicas))

    @property
    def weight_format(self) -> str:
        """Precision and, for "half", its data type on this device, such as "half (bfloat16)"."""
        if self.precision != "half":
            return self.precision
        dtype = half_dtype() if can_pack("half", self.device) else DTYPES["half"]
        return f"half ({str(dtype).removeprefix('torch.')})"

    def to_tokens(self, texts: Text | Sequence[Text]) -> Tokens:
        """Encode one or more texts as tensors on the model's device. Raises the same errors as `ids_of`."""
        single = isinstance(texts, str | Tensor) or all(is_integer(each) for each in texts)
        listed = [texts] if single else texts
        rows = [torch.tensor(ids_of(self, text), device=self.device) for text in listed]  # type: ignore[arg-type]
        padded = partial(pad_sequence, batch_first=True, padding_side="left")
        return Tokens(padded(rows), padded([torch.ones_like(row) for row in rows]))

    def trace(self, text: Text, edits: Edits | None = None, *, gradients: bool = False) -> Trace:
        """Trace a pass over a text, including norms, head outputs and logits. gradients: see `Trace`."""
        return trace_text(self, text, edits, full=True, gradients=gradients)


def best_device() -> torch.device:
    """Return CUDA if available, else MPS, else the CPU. On ZeroGPU, always return the CPU; see `gpu_copy`."""
    if on_zero_gpu():
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def memory_of(checkpoint: Checkpoint, precision: Precision, device: torch.device, *, deployed: bool = False) -> int:
    """Return the memory that a model needs in a given precision, in bytes. deployed: see `build`.

    If weights are packed, a tied matrix is stored twice: packed for the head, and as rows for the embedding. On
    ZeroGPU, all weights are stored twice (see `gpu_copy`).
    """
    if deployed and precision == "fp32":
        return checkpoint.n_copied_bytes
    config, dtype = checkpoint.config, DTYPES[precision]
    n_head = config.vocab_size * config.n_embd
    is_twice = config.tie_weights and can_pack(precision, device) and (precision != "fp32" or n_head > SMALL_WEIGHT)
    n_copies = 2 if on_zero_gpu() and device.type == "cpu" else 1
    return n_copies * checkpoint.n_bytes(dtype) + (n_head * dtype.itemsize if is_twice else 0)


def can_pack(precision: Precision, device: torch.device) -> bool:
    """Return whether matrices are packed: on CPUs, and in float32 only where that is faster (`packs_float32`).

    On ZeroGPU they are not packed, because the model is copied to the GPU.
    """
    return device.type == "cpu" and not on_zero_gpu() and (precision != "fp32" or packs_float32())


def build(
    name: str,
    checkpoint: Checkpoint,
    device: torch.device,
    precision: Precision,
    *,
    trainable: bool = False,
    deployed: DeployedModel | None = None,
) -> LoadedModel:
    """Build the model from a checkpoint.

    trainable: whether the parameters are ordinary and have gradients; by default, they are packed if `can_pack` returns
    True. deployed: the deployment that generates text, if any; all parameters are then read-only, because a change
    would not reach it, and in float32 they stay memory-mapped (see `Checkpoint.build`).

    Raises ValueError if there is not enough memory, the weights or logits are not finite, or the device does not
    support the precision.
    """
    require(not (trainable and precision == "int8"), "precision.int8_trainable")
    concepts = None if checkpoint.folder is None else load_concepts(checkpoint.folder, checkpoint.config)
    mapped = deployed is not None and precision == "fp32"
    packed = can_pack(precision, device) and not trainable and not mapped
    require(packed or precision != "int8", "precision.int8_device", device="ZeroGPU" if on_zero_gpu() else device)
    if packed:
        model = read_packed(checkpoint, precision)
        release_threads()
    else:
        model = checkpoint.build(DTYPES[precision], mapped=mapped)
    try:
        model.to(device)
    except torch.OutOfMemoryError:
        raise GPTError("memory.device", model=name, device=device) from None
    model.requires_grad_(trainable)
    if deployed is not None:
        freeze(model)
    if not mapped:
        work = multiplications_per_token(model)
        with torch.inference_mode(), threads_for(work):
            if not model(torch.zeros(1, 1, dtype=torch.long, device=device)).isfinite().all():
                raise GPTError("checkpoint.logits_not_finite", model=name)
        if work >= LARGE_MODEL and device.type == "cpu":
            Thread(target=use_huge_pages, daemon=True).start()
    suggested = None if checkpoint.folder is None else suggested_sampling(checkpoint.folder)
    known = (checkpoint.layout, deployed, concepts, checkpoint.stored_as, suggested, bool(checkpoint.adapted))
    return LoadedModel(name, model, checkpoint.tokenizer, device, precision, *known)


def peak_bytes(checkpoint: Checkpoint, model: GPT, precision: Precision) -> int:
    """Return the memory that building a packed model takes at its peak, in bytes. The embedding is packed first."""
    held = memory_of(checkpoint, precision, torch.device("cpu"))
    if precision == "fp32":
        parts = (sum(weight.numel() for weight in part.parameters()) for part in (model.h[0], model.wte))
        return held + max(parts) * torch.float32.itemsize
    largest = max(weight.numel() for weight in model.h[0].parameters())
    of_embedding = {"half": 2 + 4 + 2, "int8": 1 + 1 + 1}[precision]  # bytes of rows, what is packed, and the result
    return max(held + largest * torch.float32.itemsize, of_embedding * model.wte.weight.numel())


def read_packed(checkpoint: Checkpoint, precision: Precision) -> GPT:
    """Build the model, packing its parts once loaded, so that few of its weights are in float32 at a time."""
    model = meta_model(checkpoint.config).eval()
    checkpoint.need_memory(peak_bytes(checkpoint, model, precision))
    read = checkpoint.weight if precision == "fp32" else checkpoint.deferred
    dtype = half_dtype() if precision == "half" else torch.float32
    for part in checkpoint.fill(model, lambda name: read(name, dtype)):
        pack(part, precision)
        return_free_memory()  # without this, the allocator keeps a quarter of each block
    return model


def with_adapted(name: str, loaded: LoadedModel, checkpoint: Checkpoint) -> LoadedModel:
    """Return a model that shares its weights with another one, except for those that an adapter changes.

    checkpoint: the same model with another strength of the adapter, from which these weights are read. In float32 they
    are not packed, because packing takes longer than a short text gains.
    """
    model = deepcopy(loaded.model, {id(weight): weight for weight in loaded.model.parameters()})
    packed = loaded.precision != "fp32" and can_pack(loaded.precision, loaded.device)
    for weight_name in checkpoint.adapted:
        path, _, kind = weight_name.rpartition(".")
        weight = checkpoint.weight(weight_name, torch.float32 if packed else DTYPES[loaded.precision])
        setattr(model.get_submodule(path), kind, nn.Parameter(weight.to(loaded.device), requires_grad=False))
    if packed:
        pack(model, loaded.precision)
    return replace(loaded, name=name, model=model, deployed=None)


def gpu_copy(loaded: LoadedModel) -> LoadedModel:
    """Return a copy of the model on the GPU that ZeroGPU provides during a call. The first call creates the copy.

    The shared model stays on the CPU, where documents can be inspected without waiting for a GPU. Its weights become
    read-only, because a change would not reach the copy. The copy is created when the model is loaded, because a Space
    must place its models on "cuda" at start-up.
    """
    if loaded.model not in _copies:
        _copies[loaded.model] = deepcopy(loaded.model).to(GPU_DEVICE)
        freeze(loaded.model)
    return replace(loaded, model=_copies[loaded.model], device=torch.device(GPU_DEVICE))


def pack_tensors(tensors: Mapping[str, Tensor], matrices: tuple[str, ...]) -> dict[str, Tensor]:
    """Return a compact copy in float16, with the matrices whose names end so in int8 with a float16 scale per row."""
    packed: dict[str, Tensor] = {}
    for name, value in tensors.items():
        if name.endswith(matrices):
            scale = (value.abs().amax(dim=1) / 127).half().clamp(min=torch.finfo(torch.float16).tiny)  # (n,)
            packed[name] = (value / scale.float()[:, None]).round().clamp(-127, 127).to(torch.int8)
            packed[name + SCALE] = scale
        else:
            packed[name] = (value.half() if value.is_floating_point() else value).contiguous()
    return packed


def unpack_tensors(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors from `pack_tensors` in float32. Integers are unchanged."""
    found = {name: value.float() if value.is_floating_point() else value for name, value in packed.items()}
    for name in [name for name in found if name.endswith(SCALE)]:
        scale = found.pop(name)[:, None]
        found[name.removesuffix(SCALE)] = found[name.removesuffix(SCALE)] * scale
    return found


def save_concepts(folder: Path, concepts: Concepts) -> None:
    tensors = {"text": concepts.text.to(torch.int32)}
    for layer, dictionary in concepts.dictionaries.items():
        for name in (each.name for each in fields(Dictionary)):
            if (value := getattr(dictionary, name)) is not None:
                tensors[f"{layer}.{name}"] = torch.as_tensor(value)
    save_file(pack_tensors(tensors, MATRICES), folder / CONCEPTS)


def load_concepts(folder: Path, config: GPTConfig) -> Concepts | None:
    path = folder / CONCEPTS
    if not path.is_file():
        return None
    with reading(path, "concepts.other_model"):
        tensors = unpack_tensors(open_safetensors(path))
        found: dict[int, dict[str, Any]] = {}
        for name in tensors.keys() - {"text"}:
            layer, _, part = name.partition(".")
            found.setdefault(int(layer), {})[part] = tensors[name]
        dictionaries = {n: Dictionary(**found[n] | {"active": int(found[n]["active"])}) for n in sorted(found)}
        fits = max(dictionaries, default=config.n_layer) < config.n_layer
        for each in dictionaries.values():
            shapes, last_id = {each.encoder.shape, each.decoder.shape}, max(each.tokens.max(), each.promotes.max())
            fits &= shapes == {(len(each.bias), config.n_embd)} and each.tints.shape[2] == WINDOW
            fits &= int(last_id) < config.vocab_size
        require(fits, "concepts.other_model", file=path.name)
        entries = read_json(folder / NAMES, list) if (folder / NAMES).is_file() else []
        named = [NamedConcept(**entry | {"words": tuple(entry.get("words", ()))}) for entry in entries]
        known = tuple(each for each in named if 0 <= each.feature < len(dictionaries[each.layer].bias))
        return Concepts(dictionaries, tensors["text"], known)
