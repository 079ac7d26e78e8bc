"""What can be saved: read again by programs that others wrote."""

from __future__ import annotations

import csv
import io
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from components.share import menu, panel
from components.share.files import COLUMNS, csv_file, file_stem, json_file, text_file
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


def test_the_table_has_every_token_once_the_most_likely_first():
    _, (head, *table) = rows()
    assert tuple(head) == COLUMNS
    assert sorted(int(row[0]) for row in table) == list(range(N_VOCAB))
    final = [float(row[4]) for row in table]
    assert final == sorted(final, reverse=True)
    assert sum(value > 0 for value in final) == 40


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
    names = [text_file(made).name, json_file(made).name]
    assert [name.rsplit(".", 1)[1] for name in names] == ["txt", "json"]
    assert all(re.fullmatch(r"glassbox(-[a-z0-9]+)+\.[a-z]+", name) for name in names)
    assert len(file_stem(made)) <= 60


def test_the_document_comes_back_whole():
    made = document("<b>é\u2028 & </script>")
    made.append(99, after=4)
    again = Generation.from_json(json_file(made).content, TINY)
    assert again.ids == made.ids
    assert again.tree.tokens == made.tree.tokens
    assert text_file(again).content == made.text


def test_a_document_of_an_edited_model_opens_with_the_edits_beside_it(monkeypatch):
    edits = Edits({(0, 1): 0.0}, activation="relu")
    made = Generation(TINY, "the cat", edits=edits)
    list(made.steps(SamplingParams(temperature=2.0, seed=4), 5))
    adopted = []

    def loading(status, model, language):
        yield {status: model}
        return TINY

    monkeypatch.setattr(panel.starting, "loading", loading)
    monkeypatch.setattr(panel, "list_models", lambda: [TINY.name])
    monkeypatch.setattr(panel, "adopt", lambda ui, session, document, *_: adopted.append(document) or {})
    ui = SimpleNamespace(frame=SimpleNamespace(language="language"), session="session", status="status", files="files")
    for each, found, beside in ((document(), Edits(), False), (made, edits, True)):
        session = Session(None)
        text = json_file(each).content
        sent = {"what": "open", "name": "<b>.json", "text": text, "size": len(text)}
        *_, update = panel.answer_files(ui, {"language": "en", "session": session}, sent)
        assert adopted[-1].ids == each.ids
        assert adopted[-1].edits is None
        assert session.edits == found
        assert ("Change it" in update["files"]) is beside


def test_what_travels_to_the_page_holds_no_tag_and_is_never_the_same_twice():
    made = document("</script><img src=x>")
    sent = [menu.saved(text_file(made), "<b>") for _ in range(2)]
    assert "<" not in sent[0]
    assert sent[0] != sent[1]
    assert json.loads(sent[0])["content"] == made.text


def test_the_order_of_equals_is_that_of_their_ids():
    class Flat:
        """A document whose next token can be anything."""

        loaded, tokenizer, ids, text = TINY, TINY.tokenizer, [1], "a"

        def logits(self, position):
            return torch.zeros(N_VOCAB)

    table = list(csv.reader(io.StringIO(csv_file(Flat(), 0, SamplingParams()).content, newline="")))[1:]
    assert [int(row[0]) for row in table] == list(range(N_VOCAB))
    assert np.allclose([float(row[3]) for row in table], 1 / N_VOCAB)
