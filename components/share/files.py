"""Downloadable files, created on request: text, document, next-token distribution as a table, and program."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.labels import token_text
from gpt import Generation, SamplingParams, distribution

COLUMNS = ("id", "token", "logit", "raw_probability", "final_probability")


@dataclass(frozen=True)
class File:
    """A file for the browser to save."""

    name: str
    mime: str
    content: str


def text_file(document: Generation) -> File:
    return File(f"{file_stem(document)}.txt", "text/plain", document.text)


def json_file(document: Generation, **hidden: Any) -> File:
    """Return the document with all its branches as a JSON file. hidden: the hidden words (see `hidden_values`)."""
    content = json.dumps(json.loads(document.to_json()) | hidden, indent=1)
    return File(f"{file_stem(document)}.json", "application/json", content)


def csv_file(document: Generation, position: int, params: SamplingParams) -> File:
    r"""Return the next-token distribution at a position: one row per token in the vocabulary, most probable first.

    Each token is a quoted JSON string: spaces and line breaks are visible, invalid bytes are \xNN, and no spreadsheet
    evaluates it as a formula.
    """
    logits = document.logits(position)
    stages = distribution(logits, params, previous_ids=document.ids[: position + 1])
    scores, raw, final = (row.cpu().numpy() for row in (logits.float(), stages.raw, stages.final))
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for i in np.lexsort((np.arange(len(raw)), -scores, -final)).tolist():
        text = json.dumps(token_text(document.tokenizer, i), ensure_ascii=False)
        writer.writerow((i, text, f"{scores[i]:.9g}", f"{raw[i]:.9g}", f"{final[i]:.9g}"))
    return File(f"{file_stem(document)}-after-{position}.csv", "text/csv", table.getvalue())


def file_stem(document: Generation) -> str:
    """Return a portable file name made from the model and the text's first words."""
    words = re.findall("[a-z0-9]+", document.text[:200].lower())[:4]
    model = re.findall("[a-z0-9]+", document.loaded.name.lower())[-2:]
    return "-".join(["glassbox", *model, *words])[:60].rstrip("-")
