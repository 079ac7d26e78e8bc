"""Files of other programs that are not read here: what they are, and how to convert them."""

from __future__ import annotations

import re
from pathlib import Path

from gpt.errors import GPTError

FLAX = "transformers 4: from_pretrained(folder, from_flax=True).save_pretrained(new)"
KERAS = "keras_hub: model.export_to_transformers(new)"
ORIGINAL, UNPACK = "original", "unpack"
# {pattern of names: (format, command that converts it)}. The first one that fits applies.
NAMES = {
    r".*\.msgpack": ("Flax", FLAX),
    r".*\.keras|.*\.weights\.h5": ("Keras", KERAS),
    r".*\.h5": ("TensorFlow", FLAX.replace("flax", "tf")),
    r".*\.(index|data-\d+-of-\d+)": ("TensorFlow", ORIGINAL),
    r".*\.onnx(_data)?": ("ONNX", ORIGINAL),
    r".*\.(tflite|task|litertlm)": ("LiteRT", ORIGINAL),
    r".*\.(mlmodel|mlpackage)": ("Core ML", ORIGINAL),
    r".*\.pte": ("ExecuTorch", ORIGINAL),
    r".*\.distcp|\.metadata": (
        "torch.distributed.checkpoint",
        "python -m torch.distributed.checkpoint.format_utils dcp_to_torch folder file.pt",
    ),
    r"(bf16_)?zero_pp_rank_.*\.pt|zero_to_fp32\.py": ("DeepSpeed", "python zero_to_fp32.py folder new"),
    r"lit_model\.pth": ("LitGPT", "litgpt convert_from_litgpt folder new"),
    r".*\.np[yz]": ("NumPy", "safetensors.numpy.save_file(dict(numpy.load(file)), new)"),
    r".*\.(zip|tar|tgz|gz|7z|rar|zst)": ("zip / tar", UNPACK),
}
STARTS = {  # by the first bytes
    b"\x89HDF": ("HDF5 (Keras)", KERAS),
    b"\x93NUMPY": NAMES[r".*\.np[yz]"],
    (20240326).to_bytes(4, "little"): ("llm.c", "python dev/eval/export_hf.py --input file --output new"),
    b"24ka": ("llama2.c", ORIGINAL),
    b"version https://git-lfs": ("Git LFS", "git lfs pull"),
    b"\x1f\x8b": ("gzip", UNPACK),
    b"\x28\xb5\x2f\xfd": ("zstd", UNPACK),
    b"7z\xbc\xaf": ("7z", UNPACK),
}


def other_format(file: Path, start: bytes = b"") -> GPTError | None:
    """Return the error for a file of another program, or None for an unknown kind of file. start: its first bytes."""
    found = next((row for name, row in NAMES.items() if re.fullmatch(name, file.name)), None)
    found = found or next((row for magic, row in STARTS.items() if start.startswith(magic)), None)
    if found is None and (file.parent / "shared_vocabulary.json").is_file():
        found = ("CTranslate2", ORIGINAL)
    if found is None:
        return None
    name, command = found
    advice = {
        ORIGINAL: GPTError("format.original"),
        UNPACK: GPTError("format.unpack"),
    }.get(command) or GPTError("format.command", command=command)
    return GPTError("checkpoint.other_format", file=file.name, format=name, advice=advice)
