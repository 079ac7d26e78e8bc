"""Read LoRA adapters (PEFT), nanochat's own checkpoints, OpenAI's GPT-2 folders, and float32 files of llama2.c.

OpenAI's are TensorFlow checkpoints, read without TensorFlow: the index file is a LevelDB table whose values are
protobuf messages; the data file contains the numbers.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpt.checks import require
from gpt.errors import GPTError
from gpt.models.checkpoints.chat_template import ChatTemplate
from gpt.models.checkpoints.families import FAMILIES
from gpt.models.checkpoints.files import (
    ADAPTER_CONFIG,
    Contents,
    Deferred,
    Reader,
    numbers_of,
    open_weights,
    read_vocabulary,
)
from gpt.models.checkpoints.hugging_face_tokenizer import TokenizerSettings, library_vocabulary
from gpt.models.checkpoints.layouts import Hints
from gpt.models.checkpoints.tokenizer_formats import (
    QWEN_SPLIT,
    byte_level_json,
    fields,
    letters_and_merges,
    put_around_texts,
    read_merges,
    read_varint,
)
from gpt.models.checkpoints.translate import strip_wrappers
from gpt.models.checkpoints.untrusted import Damaged, Record, existing, map_file, read_json, read_pickle, readable
from gpt.models.checkpoints.vocabularies import PlainIds, gpt2_or_ids
from gpt.tokenizer import END_OF_TEXT, Vocabulary

ADAPTER_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
ADAPTER_FORMAT = {"LoRA adapter of PEFT": f"`{ADAPTER_CONFIG}` next to `{'` or `'.join(ADAPTER_WEIGHTS)}`"}
PART = re.compile(r"(.*)\.lora_(embedding_)?([AB])(\.weight)?")
EMBEDDINGS = ("wte", "embed_tokens", "embed_in")
HEADS = ("lm_head", "embed_out")
TIED = ("tie_word_embeddings", "tie_weights")  # in transformers' config.json and in ours


def is_adapter(path: Path) -> bool:
    """Return whether a path is an adapter's folder or one of its files."""
    return (path if path.is_dir() else path.parent).joinpath(ADAPTER_CONFIG).is_file() and (
        path.is_dir() or path.name in (ADAPTER_CONFIG, *ADAPTER_WEIGHTS)
    )


def base_of(adapter: Path, base: Path | str | None) -> Path | str:
    """Return the adapter's base model: the given one, the one in the same folder, or the one that it states.

    That is a path, a folder of this name next to the adapter's, or a name. Raises ValueError if it states none.
    """
    folder = adapter if adapter.is_dir() else adapter.parent
    if base is not None:
        return base
    if (folder / "config.json").is_file():
        return folder
    stated = str(read_json(folder / ADAPTER_CONFIG, dict).get("base_model_name_or_path") or "")
    require(stated, "adapter.states_no_base", file=ADAPTER_CONFIG)
    places = (folder / stated, Path(stated), folder.resolve().parent / Path(stated).name)
    return next((each for each in places if each.exists()), stated)


@dataclass(frozen=True, eq=False)
class Adapted:
    """Reads a weight that an adapter changes; see `Deferred.read`. change: Returns the changed weight, given it."""

    weight: Tensor
    change: Callable[[Tensor], Tensor]

    def __call__(self, dtype: torch.dtype) -> Tensor:
        return self.change(numbers_of([self.weight])[0].float())


def adapted(weight: Tensor, change: Callable[[Tensor], Tensor]) -> Deferred:
    """Return a weight that an adapter changes, read when it is needed."""
    return Deferred(Adapted(weight, change), torch.empty(weight.shape, device="meta"))


def merged(base: Contents, adapter: Path, strength: float = 1.0) -> Contents:
    """Return the contents of a base model with an adapter added to its weights.

    A weight W becomes W + strength * alpha / r * B A. A tied head or embedding that the adapter changes is no longer
    tied. Raises ValueError for other kinds of adapters, and for one that does not fit.
    """
    folder = adapter if adapter.is_dir() else adapter.parent
    options = read_json(folder / ADAPTER_CONFIG, dict)
    check_kind(options)
    file = existing(
        next((folder / name for name in ADAPTER_WEIGHTS if (folder / name).is_file()), folder / ADAPTER_WEIGHTS[0])
    )
    stored, _ = open_weights(file)
    own = base.config is not None and "tie_weights" in base.config
    names = {bare(name): name for name in base.tensors}
    tensors, parts = dict(base.tensors), dict[str, dict[str, Tensor]]()
    config = {} if base.config is None else dict(base.config)
    for name, tensor in stored.items():
        module = name.removeprefix("base_model.model.").replace(".base_layer.", ".")
        if match := PART.fullmatch(module):
            parts.setdefault(match[1], {})[match[3]] = tensor
        else:  # a weight that was trained as a whole, or a bias
            name = base_name(bare(module), names, tensors, config)
            fits = name in tensors and tensors[name].shape == tensor.shape
            require(fits or strength == 1, "adapter.misfit", file=file.name, name=module)
            change = partial(torch.lerp, end=tensor.float(), weight=strength)
            tensors[name] = adapted(tensors[name], change) if fits else tensor
    for module, pair in parts.items():
        require(pair.keys() == {"A", "B"}, "adapter.misfit", file=file.name, name=module)
        name = base_name(f"{bare(module)}.weight", names, tensors, config)
        require(name in tensors, "adapter.misfit", file=file.name, name=module)
        in_first = bool(options.get("fan_in_fan_out")) and not own and not module.endswith((*EMBEDDINGS, *HEADS))
        turned = in_first or module.endswith(EMBEDDINGS)
        scale = strength * scale_of(module, pair["A"], options)
        tensors[name] = added(tensors[name], pair["A"], pair["B"], scale, turned, file)
    return replace(base, tensors=tensors, config=config or None, folder=folder)


def bare(name: str) -> str:
    """Return a weight's name without prefixes that depend on how the model was saved."""
    return strip_wrappers(name).removeprefix("gpt_neox.")


def base_name(name: str, names: Mapping[str, str], tensors: dict[str, Tensor], config: dict[str, Any]) -> str:
    """Return the base model's name for a weight. Unties head and embedding if it is one of the two.

    The output head of a tied model gets a copy of the embedding.
    """
    module = name.removesuffix(".weight")
    if not module.endswith((*EMBEDDINGS, *HEADS)):
        return names.get(name, name)
    embedding = next((names[each] for each in names if each.removesuffix(".weight").endswith(EMBEDDINGS)), None)
    head = next((names[each] for each in names if each.removesuffix(".weight").endswith(HEADS)), "lm_head.weight")
    if embedding is not None:
        tensors.setdefault(head, tensors[embedding])
    for option in TIED:
        if option in config or (option == TIED[0] and "model_type" in config):
            config[option] = False
    return embedding if module.endswith(EMBEDDINGS) and embedding is not None else head


def check_kind(options: Mapping[str, Any]) -> None:
    """Raise ValueError for an adapter other than plain LoRA."""
    kind = str(options.get("peft_type"))
    more = [name for name in ("use_dora", "use_qalora", "alora_invocation_tokens") if options.get(name)]
    more += [key for key in options.get("alpha_pattern") or {} if not re.fullmatch(r"[\w.]+", key)]
    if kind != "LORA" or more:
        raise GPTError("adapter.kind", kind=", ".join([kind, *more]))


def scale_of(module: str, A: Tensor, options: Mapping[str, Any]) -> float:
    """Return the factor of an adapted module: alpha / r, or alpha / sqrt(r) with rsLoRA."""
    patterns = options.get("alpha_pattern") or {}
    alpha = next(
        (alpha for key, alpha in patterns.items() if f".{module}".endswith(f".{key}")), options.get("lora_alpha", 8)
    )
    return alpha / (math.sqrt(len(A)) if options.get("use_rslora") else len(A))


def added(weight: Tensor, A: Tensor, B: Tensor, scale: float, turned: bool, file: Path) -> Tensor:
    """Return weight + scale * B A, computed when it is needed. turned: whether the weight is stored as (in, out)."""
    shape = (A.shape[1], B.shape[0]) if turned else (B.shape[0], A.shape[1])
    if A.dim() != 2 or B.dim() != 2 or A.shape[0] != B.shape[1] or tuple(weight.shape) != shape:
        raise GPTError("adapter.misfit", file=file.name, name=f"{tuple(weight.shape)} / {shape}")
    left, right = (A.t(), B.t()) if turned else (B, A)
    return adapted(weight, lambda weight: weight.addmm(left.float(), right.float(), alpha=scale))


MODEL, TOKENIZER = re.compile(r"model_(\d+)\.pt"), "tokenizer.pkl"
FOLDERS = (".", "tokenizer", "../tokenizer", "../../tokenizer")  # nanochat keeps one tokenizer for all models
NANOCHAT_OPTIONS = {
    "sequence_len": "max_position_embeddings",
    "vocab_size": "vocab_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_kv_head": "num_key_value_heads",
    "n_embd": "hidden_size",
}
NANOCHAT_NAMES = {
    "wte": "wte",
    "h.{n}.attn.q": "h.{n}.attn.c_q",
    "h.{n}.attn.k": "h.{n}.attn.c_k",
    "h.{n}.attn.v": "h.{n}.attn.c_v",
    "h.{n}.attn.c_proj": "h.{n}.attn.c_proj",
    "h.{n}.mlp.c_fc": "h.{n}.mlp.c_fc",
    "h.{n}.mlp.c_proj": "h.{n}.mlp.c_proj",
    "lm_head": "lm_head",
}
START, END = "<|bos|>", "<|assistant_end|>"
# Like `render_conversation` in nanochat: a system message becomes the beginning of the first message.
TEMPLATE = """{{ '<|bos|>' }}{% for message in messages %}
{%- set system = messages[0].content + '\n\n' if loop.index0 == 1 and messages[0].role == 'system' else '' %}
{%- if message.role == 'assistant' %}{{ '<|assistant_start|>' + message.content + '<|assistant_end|>' }}
{%- elif message.role == 'user' %}{{ '<|user_start|>' + system + message.content + '<|user_end|>' }}
{%- endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant_start|>' }}{% endif %}"""


def meta_of(model: Path) -> Path:
    """Return the file with the options of a model."""
    return model.with_name(model.name.replace("model_", "meta_")).with_suffix(".json")


def find_model(path: Path) -> list[Path]:
    """Return the model of the last step in a folder, or the path if it is a model."""
    models = sorted(path.glob("model_*.pt")) if path.is_dir() else [path]
    return [each for each in models if MODEL.fullmatch(each.name) and meta_of(each).is_file()][-1:]


def read_nanochat(files: list[Path], hints: Hints) -> Contents:
    """Read a model as transformers' NanoChat, with nanochat's own epsilon."""
    model, meta = files[0], read_json(meta_of(files[0]), dict)
    stated = meta.get("model_config")
    if not isinstance(stated, dict) or not NANOCHAT_OPTIONS.keys() <= stated.keys():
        raise GPTError("file.damaged", file=meta_of(model).name, reason=f"model_config {sorted(NANOCHAT_OPTIONS)}")
    tensors, _ = open_weights(model, hints.weights)
    if newer := [name for name in tensors if re.search(r"lambdas|value_embeds|ve_gate|smear|backout", name)]:
        raise GPTError("layout.nanochat_2026", file=model.name, names=", ".join(map(strip_wrappers, newer[:3])))
    for name in [name for name in tensors if name.endswith(("wte.weight", "lm_head.weight"))]:
        tensors[name] = tensors[name][: stated["vocab_size"]]  # without padding to a multiple of 64
    options: dict[str, Any] = {theirs: stated[ours] for ours, theirs in NANOCHAT_OPTIONS.items()}
    options |= {"model_type": "nanochat", "intermediate_size": 4 * stated["n_embd"]}
    options["rms_norm_eps"] = torch.finfo(torch.float32).eps
    family = replace(FAMILIES["nanochat"], names=NANOCHAT_NAMES, prefix="")
    vocabulary = partial(nanochat_vocabulary, model.parent)
    return Contents(tensors, vocabulary, options, folder=model.parent, family=family)


def nanochat_vocabulary(folder: Path, n_vocab: int) -> Vocabulary:
    """Return the tiktoken vocabulary in tokenizer.pkl, which is not run, or ids if there is none."""
    path = next((folder / each / TOKENIZER for each in FOLDERS if (folder / each / TOKENIZER).is_file()), None)
    if path is None:
        return PlainIds(n_vocab)
    saved = read_pickle(path)
    parts = saved if isinstance(saved, Record) else {}
    ranks, special, pattern = (parts.get(name) for name in ("mergeable_ranks", "special_tokens", "pat_str"))
    if not isinstance(ranks, dict) or not isinstance(special, dict) or not all(type(each) is bytes for each in ranks):
        raise GPTError("file.damaged", file=path.name, reason="mergeable_ranks, special_tokens")
    content = byte_level_json(*letters_and_merges(ranks), splits=[QWEN_SPLIT | {"pattern": {"Regex": pattern}}])
    put_around_texts(content, special, START, None)
    chat = ChatTemplate(TEMPLATE) if END in special else None
    ends = tuple(special[name] for name in (END, START) if name in special)
    more = [{"id": token_id, "content": name, "special": True} for name, token_id in special.items()]
    settings = TokenizerSettings({"bos_token": START}, ends, chat)
    return library_vocabulary(content, n_vocab, TOKENIZER, settings, more)


NANOCHAT = Reader(find_model, read_nanochat, {"nanochat, October 2025": "`model_*.pt` next to `meta_*.json`"})


OPTIONS, VOCAB, MERGES = "hparams.json", "encoder.json", "vocab.bpe"
MAGIC, FOOTER_BYTES = 0xDB4775248B80FB57, 48
TYPES = {1: torch.float32, 2: torch.float64, 3: torch.int32, 9: torch.int64, 14: torch.bfloat16, 19: torch.float16}
NAME = re.compile(r"model/(?:h(\d+)/)?([\w/]+?)(?:/(w|b|g))?")
LEAVES = {"w": "weight", "g": "weight", "b": "bias", None: "weight"}


def find_index(path: Path) -> list[Path]:
    """Return the index file in a folder, or the path if it is one. Returns no file without an hparams.json."""
    found = sorted(path.glob("*.index")) if path.is_dir() else [path] if path.suffix == ".index" else []
    return found[-1:] if found and (found[-1].parent / OPTIONS).is_file() else []


def read_openai(files: list[Path], hints: Hints) -> Contents:
    """Read hparams.json, model.ckpt.index and model.ckpt.data-00000-of-00001."""
    index, folder = files[0], files[0].parent
    options = read_json(folder / OPTIONS, dict)
    options = {{"n_vocab": "vocab_size", "n_ctx": "n_positions"}.get(name, name): n for name, n in options.items()}
    tensors = {}
    for name, tensor in read_tensors(index).items():
        if match := NAME.fullmatch(name):
            block = "" if match[1] is None else f"h.{match[1]}."
            tensor = tensor[0] if tensor.dim() == 3 else tensor  # (1, C, 3C), a convolution of width 1
            tensors[f"{block}{match[2].replace('/', '.')}.{LEAVES[match[3]]}"] = tensor
    return Contents(tensors, partial(openai_vocabulary, folder), {"model_type": "gpt2", **options}, folder=folder)


def openai_vocabulary(folder: Path, n_vocab: int) -> Vocabulary:
    """Return the vocabulary in encoder.json and vocab.bpe, or GPT-2's if there is none."""
    if not ((folder / VOCAB).is_file() and (folder / MERGES).is_file()):
        return gpt2_or_ids(n_vocab)
    content = byte_level_json(read_json(folder / VOCAB, dict), read_merges(folder / MERGES))
    settings = TokenizerSettings({"eos_token": END_OF_TEXT})
    return library_vocabulary(content, n_vocab, VOCAB, settings, [{"content": END_OF_TEXT, "special": True}])


def read_tensors(index: Path) -> dict[str, Tensor]:
    """Return the tensors of a TensorFlow checkpoint, memory-mapped. Raises ValueError if it is damaged."""
    data = index.with_suffix(".data-00000-of-00001")

    def read() -> dict[str, Tensor]:
        table = read_table(index.read_bytes())
        del table[b""]  # the number of parts
        whole = map_file(data)
        return {name.decode(): read_tensor(value, whole) for name, value in table.items()}

    return readable(index, read)


def read_table(data: bytes) -> dict[bytes, bytes]:
    """Return the keys and values of a LevelDB table."""
    footer = data[-FOOTER_BYTES:]
    if int.from_bytes(footer[-8:], "little") != MAGIC:
        raise Damaged("no LevelDB table")
    _, at = read_handle(footer, 0)  # the other index is empty
    blocks = read_block(data, read_handle(footer, at)[0])
    return {
        key: value for handle in blocks.values() for key, value in read_block(data, read_handle(handle, 0)[0]).items()
    }


def read_handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """Return the offset and the size of a block, and the place after them."""
    offset, at = read_varint(data, at)
    size, at = read_varint(data, at)
    return (offset, size), at


def read_block(data: bytes, handle: tuple[int, int]) -> dict[bytes, bytes]:
    """Return the entries of a block. Each key begins with a number of bytes of the key before it."""
    start, size = handle
    block, kind = data[start : start + size], data[start + size]
    if kind != 0:
        raise Damaged("compressed")
    end = len(block) - 4 - 4 * int.from_bytes(block[-4:], "little")  # the rest are places to start at
    found: dict[bytes, bytes] = {}
    key, at = b"", 0
    while at < end:
        shared, at = read_varint(block, at)
        n_key, at = read_varint(block, at)
        n_value, at = read_varint(block, at)
        key = key[:shared] + block[at : at + n_key]
        found[key] = block[at + n_key : at + n_key + n_value]
        at += n_key + n_value
    return found


def read_tensor(entry: bytes, whole: torch.UntypedStorage) -> Tensor:
    """Return the tensor that an entry of the index describes: its type, shape, offset and size."""
    values: dict[int, Any] = dict(fields(entry))
    sizes = [dict(fields(size)).get(1, 0) for number, size in fields(values.get(2, b"")) if number == 2]
    dtype, start, n_bytes = TYPES[values.get(1, 0)], values.get(4, 0), values.get(5, 0)
    shape = torch.Size(sizes)
    if start + n_bytes > whole.nbytes() or shape.numel() * dtype.itemsize != n_bytes or 7 in values:
        raise Damaged(f"{tuple(shape)}: {start} + {n_bytes} / {whole.nbytes()}")
    return torch.empty(0, dtype=dtype).set_(whole[start : start + n_bytes]).view(shape)


OPENAI = Reader(find_index, read_openai, {"OpenAI's GPT-2": "`*.index` next to `hparams.json`"})


LLAMA2C_MAGIC = b"24ka"
LLAMA2C_OPTIONS = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "max_seq_len")
LLAMA2C_HEADER = {0: 28, 1: 256}  # bytes; version 0 has neither a magic number nor a version


def read_header(file: Path) -> tuple[int, dict[str, int], bool] | None:
    """Return version, options, and whether the head is the embedding, or None if a file is not float32 of llama2.c.

    Version 0 has no sign of its own but options of a likely size.
    """
    with file.open("rb") as opened:
        start = opened.read(37)
    is_new = start.startswith(LLAMA2C_MAGIC)
    if len(start) < 37 or (is_new and start[4:8] != b"\1\0\0\0"):
        return None
    numbers = dict(zip(LLAMA2C_OPTIONS, struct.unpack_from("<7i", start, 8 if is_new else 0), strict=True))
    is_tied = start[36] != 0 if is_new else numbers["vocab_size"] > 0
    numbers["vocab_size"] = abs(numbers["vocab_size"])
    if min(numbers.values()) <= 0 or max(numbers.values()) > 2**20 or numbers["dim"] % numbers["n_heads"]:
        return None
    return int(is_new), numbers, is_tied


def parts_of_llama2c(version: int, options: Mapping[str, int], is_tied: bool) -> list[tuple[str, tuple[int, ...]]]:
    """Return the names and shapes of the stored tensors, in order. "{n}" stands for all blocks, one after the other."""
    C, hidden, L, n_head, n_kv_head, V, T = (options[name] for name in LLAMA2C_OPTIONS)
    size = C // n_head
    norms = [(f"layers.{{n}}.{name}_norm", (L, C)) for name in ("attention", "ffn")]
    q, kv = (L, C, C), (L, n_kv_head * size, C)
    attention = [(f"layers.{{n}}.attention.w{name}", shape) for name, shape in zip("qkvo", (q, kv, kv, q), strict=True)]
    ff = [(f"layers.{{n}}.feed_forward.w{i}", (L, C, hidden) if i == 2 else (L, hidden, C)) for i in (1, 2, 3)]
    first, last = ("tok_embeddings", (V, C)), ("norm", (C,))
    angles = [("freqs_cos", (T, size // 2)), ("freqs_sin", (T, size // 2))]
    head = [] if is_tied else [("output", (V, C))]
    if version == 0:
        return [first, norms[0], *attention, norms[1], *ff, last, *angles, *head]
    return [*norms, last, first, *attention, *ff, *head]


def find_llama2c(path: Path) -> list[Path]:
    """Return the only file of llama2.c in a folder, or the path if it is one."""
    files = sorted(path.glob("*.bin")) if path.is_dir() else [path] if path.suffix == ".bin" else []
    found = [file for file in files if file.is_file() and read_header(file)]
    return found if len(found) == 1 else []


def read_llama2c(files: list[Path], hints: Hints) -> Contents:
    """Read the float32 weights under Meta's names, memory-mapped."""
    header = read_header(files[0])
    if header is None:
        raise GPTError("file.damaged", file=files[0].name, reason="header")
    whole, at = map_file(files[0]), LLAMA2C_HEADER[header[0]]
    tensors: dict[str, Tensor] = {}
    for name, shape in parts_of_llama2c(*header):
        n_bytes = 4 * math.prod(shape)
        if at + n_bytes > whole.nbytes():
            raise GPTError("file.damaged", file=files[0].name, reason=f"llama2.c, {name}")
        tensor = torch.empty(0).set_(whole[at : at + n_bytes]).view(shape)
        blocks = tensor.unbind() if "{n}" in name else [tensor]
        if not name.startswith("freqs"):  # angles, which follow from the options
            tensors |= {f"{name.format(n=number)}.weight": block for number, block in enumerate(blocks)}
        at += n_bytes
    entries = {"model_args": header[1]}
    vocabulary = partial(read_vocabulary, files[0].parent, {})
    return Contents(tensors, vocabulary, entries=entries, folder=files[0].parent)


LLAMA2C = Reader(find_llama2c, read_llama2c, {"llama2.c": "`*.bin` with its header"})
