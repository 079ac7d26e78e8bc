"""Exported files are readable by other programs."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
import torch

from components.share import handlers
from components.share.handlers import csv_file, file_stem, json_file
from components.state.session import Session
from gpt import Edits, Generation, SamplingParams
from tests.gpt.fake_models import N_VOCAB, tiny_model

TINY = tiny_model()
PARAMS = SamplingParams(temperature=0.7, top_k=40, repetition_penalty=1.3)


def document(prompt="the cat"):
    made = Generation(TINY, prompt)
    list(made.steps(SamplingParams(temperature=2.0, seed=4), 5))
    made.read()
    return made


def rows(position=3):
    made = document()
    return made, list(csv.reader(io.StringIO(csv_file(made, position, PARAMS).content, newline="")))


def test_its_numbers_are_those_of_the_plain_definitions():
    made, (_, *table) = rows()
    logits = made.logits(3).double()
    by_id = {int(row[0]): [float(value) for value in row[2:]] for row in table}
    ours = torch.tensor([by_id[i] for i in range(N_VOCAB)], dtype=torch.float64)
    torch.testing.assert_close(ours[:, 0], logits, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(ours[:, 1], logits.softmax(0), atol=1e-7, rtol=1e-5)
    said = torch.tensor(sorted(set(made.ids[:4])))
    logits[said] = torch.where(logits[said] < 0, logits[said] * 1.3, logits[said] / 1.3)
    logits /= 0.7
    kept = logits.topk(40).indices
    expected = torch.zeros(N_VOCAB, dtype=torch.float64)
    expected[kept] = logits[kept].softmax(0)
    torch.testing.assert_close(ours[:, 2], expected, atol=1e-7, rtol=1e-5)


def test_no_cell_is_a_formula_and_every_token_can_be_read_back():
    made, (_, *table) = rows()
    cells = {int(row[0]): row[1] for row in table}
    for token_id, cell in cells.items():
        assert cell.startswith('"')
        assert cell.isprintable() or not json.loads(cell).isprintable()
        data = made.tokenizer.token_bytes(token_id)
        if data.isascii():
            assert json.loads(cell).encode() == data
    assert {json.loads(cells[ord(char)]) for char in '=+-@,"\n\r\t'} == set('=+-@,"\n\r\t')
    assert not any("\n" in cell or "\r" in cell or "\t" in cell for cell in cells.values())


@pytest.mark.parametrize("prompt", ["../../etc/passwd", 'a/b\\c:d*?"<>|\n', "你好", "", "CON", ".hidden -rf"])
def test_file_names_are_plain(prompt):
    made = Generation(TINY, prompt)
    assert re.fullmatch(r"glassbox(-[a-z0-9]+)+\.json", json_file(made).name)
    assert len(file_stem(made)) <= 60


def test_a_document_of_an_edited_model_opens_with_the_edits_beside_it(monkeypatch):
    edits = Edits({(0, 1): 0.0}, activation="relu")
    made = Generation(TINY, "the cat", edits=edits)
    list(made.steps(SamplingParams(temperature=2.0, seed=4), 5))

    def load(session, name):
        yield
        return TINY

    monkeypatch.setattr(handlers, "load_with_progress", load)
    monkeypatch.setattr(handlers, "list_models", lambda: [TINY.name])
    for each, found, beside in ((document(), Edits(), False), (made, edits, True)):
        session = Session(None)
        text = json_file(each).content
        list(handlers.answer_files(session, {"what": "open", "name": "<b>.json", "text": text, "size": len(text)}))
        assert session.document.ids == each.ids
        assert session.document.edits is None
        assert session.edits == found
        assert ("Change it" in session.state(handlers.ShareState).files["says"]) is beside


@pytest.mark.parametrize(
    "sent",
    [
        {"what": "open"},
        {"what": "open", "name": "x", "text": "{", "size": 1},
        {"what": "open", "name": "x", "text": "", "size": 10**9},
        {"what": "open", "name": "x", "text": "x", "size": True},
        {"what": "nothing"},
        {},
    ],
)
def test_an_invalid_file_gives_one_sentence_and_the_text_stays(sent):
    made = document()
    session = Session(made)
    list(handlers.answer_files(session, sent))
    answer = session.state(handlers.ShareState).files
    assert (answer["how"], session.document) == ("tell", made)
    assert " " in answer["says"]


def test_a_link_that_would_be_too_long_offers_the_file(monkeypatch):
    monkeypatch.setattr("components.share.address.MAX_LINK", 20)
    session = Session(document())
    handlers.answer_link({}, session, {})
    link = session.state(handlers.ShareState).link
    assert (link["how"], "Save the document" in link["says"]) == ("tell", True)
