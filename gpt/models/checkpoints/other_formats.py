"""Read LoRA adapters (PEFT and MLX), nanochat's own checkpoints, OpenAI's GPT-2 folders, and llama2.c in float32."""

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

from gpt.config import GPTConfig
from gpt.errors import GPTError, require
from gpt.models.checkpoints.families import FAMILIES
from gpt.models.checkpoints.files import ADAPTER_CONFIG, Contents, Deferred, Reader, numbers_of, open_weights
from gpt.models.checkpoints.hugging_face_tokenizer import HuggingFaceTokenizer, splitter
from gpt.models.checkpoints.layouts import META, Hints
from gpt.models.checkpoints.tokenizer_formats import byte_level_json, letters_and_merges
from gpt.models.checkpoints.translate import stored_shapes, strip_wrappers
from gpt.models.checkpoints.untrusted import existing, map_file, read_json, read_pickle, reading
from gpt.models.checkpoints.vocabularies import read_vocabulary
from gpt.tokenizer import PlainIds, Vocabulary

ADAPTER_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin", "adapters.safetensors")
ADAPTER_FORMAT = {"LoRA (PEFT, MLX)": f"`{ADAPTER_CONFIG}` next to `{'`, `'.join(ADAPTER_WEIGHTS)}`"}
PART = re.compile(r"(.*)\.lora_(embedding_)?([ABab])(\.weight)?")
EMBEDDINGS = ("wte", "embed_tokens", "embed_in")
HEADS = ("lm_head", "embed_out")
TIED = ("tie_word_embeddings", "tie_weights")  # in transformers' config.json and in ours


def is_adapter(path: Path) -> bool:
    return (path if path.is_dir() else path.parent).joinpath(ADAPTER_CONFIG).is_file() and (
        path.is_dir() or path.name in (ADAPTER_CONFIG, *ADAPTER_WEIGHTS)
    )


def base_of(adapter: Path, base: Path | str | None) -> Path | str:
    """Return the adapter's base model: the given one, the one in the same folder, or the one that it states.

    That is a path, a folder of this name next to the adapter's, or a name. A model that is no adapter is its own base.
    Raises ValueError if an adapter states none, or if one is given for another model.
    """
    if not is_adapter(adapter):
        require(base is None, "adapter.none", folder=adapter.name, file=ADAPTER_CONFIG)
        return adapter
    if base is not None:
        return base
    folder = adapter if adapter.is_dir() else adapter.parent
    if (folder / "config.json").is_file():
        return folder
    options = read_json(folder / ADAPTER_CONFIG, dict)
    stated = str(options.get("base_model_name_or_path") or options.get("model") or "")  # the latter in MLX
    require(stated, "adapter.states_no_base", file=ADAPTER_CONFIG)
    places = (folder / stated, Path(stated), folder.resolve().parent / Path(stated).name)
    return next((each for each in places if each.exists()), stated)


@dataclass(frozen=True, eq=False)
class Adapted:
    """Reads a weight that an adapter changes; see `Deferred.read`. change: Returns the changed weight, given it."""

    weight: Tensor
    change: Callable[[Tensor], Tensor]

    def __call__(self, dtype: torch.dtype, rows: range) -> Tensor:
        return self.change(numbers_of([self.weight])[0].float())[rows.start : rows.stop]


def merged(base: Contents, adapter: Path, strength: float = 1.0) -> Contents:
    """Return the contents of a base model with an adapter added to its weights.

    A weight W becomes W + strength * alpha / r * B A. A tied head or embedding that the adapter changes is no longer
    tied. Raises ValueError for other kinds of adapters, and for one that does not fit.
    """
    folder = adapter if adapter.is_dir() else adapter.parent
    options = read_json(folder / ADAPTER_CONFIG, dict)
    kind = str(options.get("peft_type") or options.get("fine_tune_type")).upper()
    more = [name for name in ("use_dora", "use_qalora", "alora_invocation_tokens") if options.get(name)]
    # These initialisations move a part of the base model's weights into the adapter.
    more += re.findall(r"^(?:pissa|olora|corda|loftq|lora_ga)\w*", str(options.get("init_lora_weights")), re.IGNORECASE)
    more += [key for key in options.get("alpha_pattern") or {} if not re.fullmatch(r"[\w.]+", key)]
    require(kind == "LORA" and not more, "adapter.kind", kind=", ".join([kind, *more]))
    repeats = bool(options.get("layer_replication"))  # a layer with two changes, which PEFT would merge into one
    require(not repeats, "adapter.misfit", file=ADAPTER_CONFIG, name="layer_replication")
    files = [folder / name for name in ADAPTER_WEIGHTS]
    file = existing(next(filter(Path.is_file, files), files[0]))
    names = {bare(name): name for name in base.tensors}
    tensors, parts = dict(base.tensors), dict[str, dict[str, Tensor]]()
    config = {} if base.config is None else dict(base.config)
    own = "tie_weights" in config

    def adapt(name: str, change: Callable[[Tensor], Tensor]) -> None:
        tensors[name] = Deferred(Adapted(tensors[name], change), torch.empty(tensors[name].shape, device="meta"))

    for name, tensor in open_weights(file)[0].items():
        module = name.removeprefix("base_model.model.").replace(".base_layer.", ".")
        if match := PART.fullmatch(module):
            parts.setdefault(match[1], {})[match[3].upper()] = tensor.t() if match[3].islower() else tensor  # in MLX
            continue
        name = base_name(bare(module), names, tensors, config)  # trained as a whole, or a bias
        if name in tensors and tensors[name].shape == tensor.shape:
            adapt(name, partial(torch.lerp, end=tensor.float(), weight=strength))
        else:
            require(strength == 1, "adapter.misfit", file=file.name, name=module)
            tensors[name] = tensor
    for module, pair in parts.items():
        name = base_name(f"{bare(module)}.weight", names, tensors, config)
        fits = pair.keys() == {"A", "B"} and name in tensors and all(part.dim() == 2 for part in pair.values())
        require(fits, "adapter.misfit", file=file.name, name=module)
        in_first = bool(options.get("fan_in_fan_out")) and not own and not module.endswith((*EMBEDDINGS, *HEADS))
        A, B = pair["A"], pair["B"]
        left, right = (A.t(), B.t()) if in_first or module.endswith(EMBEDDINGS) else (B, A)  # stored as (in, out)
        shapes = (*tensors[name].shape,), (*left.shape[:1], *right.shape[1:])
        if A.shape[0] != B.shape[1] or shapes[0] != shapes[1]:
            raise GPTError("adapter.misfit", file=file.name, name=" / ".join(map(str, shapes)))
        scale = strength * scale_of(module, A, options)
        adapt(name, partial(torch.addmm, mat1=left.float(), mat2=right.float(), alpha=scale))
    return replace(base, tensors=tensors, config=config or None, folder=folder)


def bare(name: str) -> str:
    """Return a weight's name without prefixes that depend on how the model was saved."""
    return strip_wrappers(name).removeprefix("gpt_neox.")


def base_name(name: str, names: Mapping[str, str], tensors: dict[str, Tensor], config: dict[str, Any]) -> str:
    """Return the base model's name for a weight. If it is a tied head or embedding, the head becomes a copy."""
    module = name.removesuffix(".weight")
    if not module.endswith((*EMBEDDINGS, *HEADS)):
        return names.get(name, name)
    embedding, head = (
        next((names[each] for each in names if each.removesuffix(".weight").endswith(ends)), default)
        for ends, default in ((EMBEDDINGS, ""), (HEADS, "lm_head.weight"))
    )
    if embedding:
        tensors.setdefault(head, tensors[embedding])
    for option in TIED:
        if option in config or (option == TIED[0] and "model_type" in config):
            config[option] = False
    return embedding if module.endswith(EMBEDDINGS) and embedding else head


def scale_of(module: str, A: Tensor, options: Mapping[str, Any]) -> float:
    """Return the factor of an adapted module: alpha / r, alpha / sqrt(r) with rsLoRA, or what MLX states."""
    if isinstance(mlx := options.get("lora_parameters"), dict):
        return float(mlx["scale"])
    patterns = options.get("alpha_pattern") or {}
    stated = (alpha for key, alpha in patterns.items() if re.fullmatch(rf"(.*\.)?{key}", module))
    alpha = next(stated, options.get("lora_alpha", 8))
    return alpha / (math.sqrt(len(A)) if options.get("use_rslora") else len(A))


MODEL, TOKENIZER = re.compile(r"model_(\d+)\.pt"), "tokenizer.pkl"
FOLDERS = (".", "tokenizer", "../tokenizer", "../../tokenizer")  # nanochat keeps one tokenizer for all models
NANOCHAT_OPTIONS = {name: name for name in ("n_layer", "n_head", "n_kv_head", "n_embd", "vocab_size")}
NANOCHAT_OPTIONS["sequence_len"] = "block_size"
NANOCHAT_NAMES = {name: name for name in ("wte", "lm_head")}
NANOCHAT_NAMES |= {f"h.{{n}}.{name}": f"h.{{n}}.{name}" for name in ("attn.c_proj", "mlp.c_fc", "mlp.c_proj")}
NANOCHAT_NAMES |= {f"h.{{n}}.attn.{name}": f"h.{{n}}.attn.c_{name}" for name in "qkv"}
START, END = "<|bos|>", "<|assistant_end|>"
# Like `render_conversation` in nanochat: a system message becomes the beginning of the first message.
TEMPLATE = """{{ '<|bos|>' }}{% for message in messages %}
{%- set system = messages[0].content + '\n\n' if loop.index0 == 1 and messages[0].role == 'system' else '' %}
{%- if message.role == 'assistant' %}{{ '<|assistant_start|>' + message.content + '<|assistant_end|>' }}
{%- elif message.role == 'user' %}{{ '<|user_start|>' + system + message.content + '<|user_end|>' }}
{%- endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant_start|>' }}{% endif %}"""


def meta_of(model: Path) -> Path:
    return model.with_name(model.name.replace("model_", "meta_")).with_suffix(".json")


def find_model(path: Path) -> list[Path]:
    """Return the model of the last step in a folder, or the path if it is a model."""
    models = sorted(path.glob("model_*.pt")) if path.is_dir() else [path]
    return [each for each in models if MODEL.fullmatch(each.name) and meta_of(each).is_file()][-1:]


def read_nanochat(files: list[Path], hints: Hints) -> Contents:
    """Read a model as transformers' NanoChat, with nanochat's own epsilon."""
    model, meta = files[0], meta_of(files[0])
    with reading(meta):
        stated = read_json(meta, dict)["model_config"]
        values = {ours: stated[name] for name, ours in NANOCHAT_OPTIONS.items()}
        values |= {"n_ff": 4 * stated["n_embd"], "norm_eps": torch.finfo(torch.float32).eps}
    tensors, _ = open_weights(model, hints.weights)
    if newer := [name for name in tensors if re.search(r"lambdas|value_embeds|ve_gate|smear|backout", name)]:
        raise GPTError("layout.nanochat_2026", file=model.name, names=", ".join(map(strip_wrappers, newer[:3])))
    with reading(meta):  # the number of tokens may not be an integer
        for name in [name for name in tensors if name.endswith(("wte.weight", "lm_head.weight"))]:
            tensors[name] = tensors[name][: values["vocab_size"]]  # without padding to a multiple of 64
    family = replace(FAMILIES["nanochat"], names=NANOCHAT_NAMES, prefix="")
    options = {"model_type": "nanochat", **{family.theirs[ours]: value for ours, value in values.items()}}
    vocabulary = partial(nanochat_vocabulary, model.parent)
    return Contents(tensors, vocabulary, options, folder=model.parent, family=family)


def nanochat_vocabulary(folder: Path, n_vocab: int) -> Vocabulary:
    """Return the tiktoken vocabulary in tokenizer.pkl, which is not run, or ids if there is none."""
    path = next((folder / each / TOKENIZER for each in FOLDERS if (folder / each / TOKENIZER).is_file()), None)
    if path is None:
        return PlainIds(n_vocab)
    saved: Any = read_pickle(path)
    with reading(path, "vocabulary.invalid"):
        special = saved["special_tokens"]
        pair = letters_and_merges(saved["mergeable_ranks"])
        return HuggingFaceTokenizer(
            byte_level_json(*pair, splits=[splitter(saved["pat_str"])]),
            n_vocab,
            TOKENIZER,
            tokens={"bos_token": START},
            end_ids=[special[name] for name in (END, START) if name in special],
            chat=TEMPLATE if END in special else None,
            more=[{"id": token_id, "content": name, "special": True} for name, token_id in special.items()],
            around=(START, ""),
        )


NANOCHAT = Reader(find_model, read_nanochat, {"nanochat (2025-10)": "`model_*.pt` next to `meta_*.json`"})


OPTIONS = "hparams.json"
OPENAI_SIZES = {"vocab_size": "n_vocab", "block_size": "n_ctx"} | {n: n for n in ("n_layer", "n_head", "n_embd")}


def tensorflow_name(name: str) -> str:
    """Return OpenAI's name for a weight, such as "h0/ln_1/g" for "h.0.ln_1.weight"."""
    module, _, leaf = re.sub(r"^h\.", "h", name).rpartition(".")
    ends = {"bias": "/b", "weight": "" if module in ("wte", "wpe") else "/g" if "ln_" in module else "/w"}
    return module.replace(".", "/") + ends[leaf]


def find_index(path: Path) -> list[Path]:
    """Return the index file in a folder, or the path if it is one. Returns no file without an hparams.json."""
    found = sorted(path.glob("*.index")) if path.is_dir() else [path] if path.suffix == ".index" else []
    return found[-1:] if found and (found[-1].parent / OPTIONS).is_file() else []


def read_openai(files: list[Path], hints: Hints) -> Contents:
    """Read hparams.json and the data, which are in order of their names. The index, which states them, is not read."""
    folder, data = files[0].parent, files[0].with_suffix(".data-00000-of-00001")
    options = read_json(folder / OPTIONS, dict)
    with reading(folder / OPTIONS):
        check_size(existing(data), options["n_layer"], options["n_embd"])
        sizes = {ours: options[name] for ours, name in OPENAI_SIZES.items()}
        shapes = stored_shapes(FAMILIES["gpt2"], GPTConfig(**sizes))
    tensors = split_file(data, {name: shapes[name] for name in sorted(shapes, key=tensorflow_name)})
    config = {"model_type": "gpt2", "vocab_size": options["n_vocab"], "n_positions": options["n_ctx"], **options}
    return Contents(tensors, partial(read_vocabulary, folder, {}), config, folder=folder)


def check_size(file: Path, n_layer: int, n_embd: int) -> None:
    """Raise ValueError if a file is too small for its number of layers, before each layer's weights are listed."""
    size, least = file.stat().st_size, 4 * n_layer * n_embd**2
    require(size >= least, "file.damaged", file=file.name, reason=f"{size:,} < {least:,}")


def split_file(file: Path, shapes: Mapping[str, tuple[int, ...]], start: int = 0) -> dict[str, Tensor]:
    """Return the float32 tensors that fill the rest of a file from byte `start` on, memory-mapped."""
    sizes = [math.prod(shape) for shape in shapes.values()]
    stop, whole = start + 4 * sum(sizes), map_file(file)
    require(whole.nbytes() == stop, "file.damaged", file=file.name, reason=f"{whole.nbytes():,} != {stop:,}")
    parts = torch.empty(0).set_(whole[start:stop]).split(sizes)
    return {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


OPENAI = Reader(find_index, read_openai, {"OpenAI GPT-2": "`*.index` next to `hparams.json`"})


LLAMA2C_MAGIC = b"24ka"
LLAMA2C_OPTIONS = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "max_seq_len")
# Modules in the order of their weights in a file, each for all layers, in this version and the first one.
LLAMA2C_ORDER = "attention_norm ffn_norm norm tok_embeddings wq wk wv wo w1 w2 w3 output"
LLAMA2C_FIRST_ORDER = "tok_embeddings attention_norm wq wk wv wo ffn_norm w1 w2 w3 norm freqs_cos freqs_sin output"


def read_header(file: Path) -> tuple[int, dict[str, int], bool]:
    """Return where the weights start, 0 in another format; options; and whether the head is the embedding."""
    with file.open("rb") as opened:
        start = opened.read(37)
    is_new = start.startswith(LLAMA2C_MAGIC)
    if len(start) < 37 or (is_new and start[4:8] != b"\1\0\0\0"):
        return 0, {}, False
    numbers = dict(zip(LLAMA2C_OPTIONS, struct.unpack_from("<7i", start, 8 if is_new else 0), strict=True))
    is_tied = start[36] != 0 if is_new else numbers["vocab_size"] > 0
    numbers["vocab_size"] = abs(numbers["vocab_size"])
    # Version 0 has neither a magic number nor a version, but options of a likely size.
    if min(numbers.values()) <= 0 or max(numbers.values()) > 2**20 or numbers["dim"] % numbers["n_heads"]:
        return 0, {}, False
    return 256 if is_new else 28, numbers, is_tied


def llama2c_shapes(is_new: bool, options: Mapping[str, int], is_tied: bool) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the stored tensors, in order, under Meta's names."""
    C, hidden, L, n_head, n_kv_head, V, T = options.values()
    sizes = {"n_embd": C, "n_ff": hidden, "n_layer": L, "n_head": n_head, "n_kv_head": n_kv_head, "vocab_size": V}
    config = GPTConfig(**{**META.options, **sizes, "bias": False, "gated": True, "tie_weights": is_tied})
    angles = dict.fromkeys(("freqs_cos", "freqs_sin"), (T, C // n_head // 2))  # buffers, which follow from the options
    shapes = stored_shapes(META, config) | ({} if is_new else angles)
    order = LLAMA2C_ORDER if is_new else LLAMA2C_FIRST_ORDER
    modules = {name: name.removesuffix(".weight").rpartition(".")[2] for name in shapes}
    return {name: shapes[name] for module in order.split() for name in shapes if modules[name] == module}


def find_llama2c(path: Path) -> list[Path]:
    """Return the only file of llama2.c in a folder, or the path if it is one."""
    files = sorted(path.glob("*.bin")) if path.is_dir() else [path] if path.suffix == ".bin" else []
    found = [file for file in files if file.is_file() and read_header(file)[0]]
    return found if len(found) == 1 else []


def read_llama2c(files: list[Path], hints: Hints) -> Contents:
    folder, (start, options, is_tied) = files[0].parent, read_header(files[0])
    check_size(files[0], options["n_layers"], options["dim"])
    tensors = split_file(files[0], llama2c_shapes(start > 28, options, is_tied), start)
    return Contents(tensors, partial(read_vocabulary, folder, {}), entries={"model_args": options}, folder=folder)


LLAMA2C = Reader(find_llama2c, read_llama2c, {"llama2.c": "`*.bin` with its header"})
