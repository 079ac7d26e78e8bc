"""Read nanochat's own checkpoints: model_<step>.pt and meta_<step>.json, with the tokenizer in tokenizer.pkl."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gpt.errors import GPTError
from gpt.models.checkpoints.bpe_files import byte_level_json, letters_and_merges
from gpt.models.checkpoints.chat_template import ChatTemplate
from gpt.models.checkpoints.contents import Contents, Reader
from gpt.models.checkpoints.files import open_weights
from gpt.models.checkpoints.hugging_face_tokenizer import TokenizerSettings, library_vocabulary, put_around_texts
from gpt.models.checkpoints.stated import Hints
from gpt.models.checkpoints.torch_file import Record, read_pickle
from gpt.models.checkpoints.translate import strip_wrappers
from gpt.models.checkpoints.untrusted import damaged, read_json
from gpt.models.checkpoints.vocabularies import PlainIds
from gpt.tokenizer import Vocabulary

MODEL, TOKENIZER = re.compile(r"model_(\d+)\.pt"), "tokenizer.pkl"
FOLDERS = (".", "tokenizer", "../tokenizer", "../../tokenizer")  # nanochat keeps one tokenizer for all models
OPTIONS = {
    "sequence_len": "max_position_embeddings",
    "vocab_size": "vocab_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_kv_head": "num_key_value_heads",
    "n_embd": "hidden_size",
}
NAMES = {
    "wte": "model.embed_tokens",
    "attn.c_q": "self_attn.q_proj",
    "attn.c_k": "self_attn.k_proj",
    "attn.c_v": "self_attn.v_proj",
    "attn.c_proj": "self_attn.o_proj",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
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
    """Read a model as transformers' NanoChat, with nanochat's own epsilon.

    Raises ValueError for the models of 2026, which are not implemented.
    """
    model, meta = files[0], read_json(meta_of(files[0]), dict)
    stated = meta.get("model_config")
    if not isinstance(stated, dict) or not OPTIONS.keys() <= stated.keys():
        raise damaged(meta_of(model), f"model_config {sorted(OPTIONS)}")
    tensors, _ = open_weights(model, hints.weights)
    names = {strip_wrappers(name): name for name in tensors}
    if newer := [name for name in names if re.search(r"lambdas|value_embeds|ve_gate|smear|backout", name)]:
        raise GPTError("layout.nanochat_2026", file=model.name, names=", ".join(newer[:3]))
    found = {}
    for name, original in names.items():
        block, _, role = re.sub(r"^h\.(\d+)\.", r"model.layers.\1./", name).rpartition("/")
        role = role.removesuffix(".weight")
        tensor = tensors[original]
        padded = role in ("wte", "lm_head")  # to a multiple of 64
        found[f"{block}{NAMES.get(role, role)}.weight"] = tensor[: stated["vocab_size"]] if padded else tensor
    options: dict[str, Any] = {theirs: stated[ours] for ours, theirs in OPTIONS.items()}
    options |= {"model_type": "nanochat", "intermediate_size": 4 * stated["n_embd"]}
    options["rms_norm_eps"] = torch.finfo(torch.float32).eps
    return Contents(found, partial(read_vocabulary, model.parent), options, folder=model.parent)


def read_vocabulary(folder: Path, n_vocab: int) -> Vocabulary:
    """Return the tiktoken vocabulary in tokenizer.pkl, which is not run, or ids if there is none."""
    path = next((folder / each / TOKENIZER for each in FOLDERS if (folder / each / TOKENIZER).is_file()), None)
    if path is None:
        return PlainIds(n_vocab)
    saved = read_pickle(path)
    parts = saved if isinstance(saved, Record) else {}
    ranks, special, pattern = (parts.get(name) for name in ("mergeable_ranks", "special_tokens", "pat_str"))
    if not isinstance(ranks, dict) or not isinstance(special, dict) or not all(type(each) is bytes for each in ranks):
        raise damaged(path, "mergeable_ranks, special_tokens")
    content = byte_level_json(*letters_and_merges(ranks))
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    byte_level = content["pre_tokenizer"]["pretokenizers"][-1] | {"use_regex": False}
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, byte_level]}
    put_around_texts(content, special, START, None)
    chat = ChatTemplate(TEMPLATE) if END in special else None
    ends = tuple(special[name] for name in (END, START) if name in special)
    more = [{"id": token_id, "content": name, "special": True} for name, token_id in special.items()]
    settings = TokenizerSettings({"bos_token": START}, ends, chat)
    return library_vocabulary(content, n_vocab, TOKENIZER, settings, more)


NANOCHAT = Reader("nanochat (model_*.pt, meta_*.json)", find_model, read_nanochat)
