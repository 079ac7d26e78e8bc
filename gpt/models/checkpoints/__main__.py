"""python -m gpt.models.checkpoints convert IN OUT: read a checkpoint in any layout and write it in another."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import get_args

from gpt.config import Activation
from gpt.models.checkpoints.layouts import SCALES, Hints
from gpt.models.checkpoints.writing import Kind, convert
from gpt.models.sources import find_source


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m gpt.models.checkpoints", description="Convert checkpoints.")
    command = parser.add_subparsers(required=True).add_parser(
        "convert", help="read any layout, write our layout, Hugging Face's or GGUF"
    )
    add = command.add_argument
    add("source", metavar="IN", help="checkpoint to read: a file, a folder, or OWNER/NAME on the hub")
    add("target", type=Path, metavar="OUT", help="folder to write, or file for gguf")
    add("--n-head", type=int, help="number of heads, if it is not in the checkpoint")
    add("--activation", choices=get_args(Activation), help="activation, if it is not in the checkpoint")
    add(
        "--attn-scale",
        type=lambda text: text if text in SCALES else float(text),
        metavar="{head_size,n_embd,FACTOR}",
        help="scale of the attention scores, if it is not in the checkpoint",
    )
    add("--names", help="file with the names of the weights, or 'infer' to accept the names shown")
    add("--weights", help="entry to read from a file that contains several models")
    add("--base", help="base model of an adapter, if not the one that it states")
    add("--to", choices=("ours", "hf", "gguf"), default="ours", help="layout to write")
    add("--type", choices=get_args(Kind), default="F16", help="type of the matrices in GGUF")
    chosen = parser.parse_args()
    if chosen.target.is_file() or (chosen.target.is_dir() and any(chosen.target.iterdir())):
        sys.exit(f"{chosen.target} already exists: choose a new or empty folder")
    try:
        hints = Hints(chosen.n_head, chosen.activation, chosen.attn_scale, chosen.names, chosen.weights, chosen.base)
        source, hints = find_source(chosen.source, hints).fetch()
        layout = convert(source, chosen.target, to=chosen.to, kind=chosen.type, hints=hints)
    except ValueError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"{error.filename or chosen.target} cannot be written: {error.strerror or error}")
    print(f"{chosen.source}: {layout} -> {chosen.target}")


main()
