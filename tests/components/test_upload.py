"""Sentences about an opened checkpoint and its precision."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from components.errors import localize_error
from components.frame import notice
from components.i18n import Language
from components.state.session import Session
from components.tabs.playground.upload import (
    Upload,
    choose_files,
    message,
    names_table,
    open_upload,
    try_scales,
)
from gpt import Generation, get_model
from gpt.errors import GPTError
from gpt.models.registry import remove_model
from gpt.tokenizer import PlainIds
from tests.components.drawing import spoken_in
from tests.gpt.family_configs import randomized
from tests.parity.named_models import LectureGPT, NanoGPT, NumberedGPT, NumpyGPT


def opened_with(session: Session, path: Path | None = None, **answers: object) -> str:
    """Choose a file, if any, answer questions, and press Open. Returns the panel's message."""
    if path is not None:
        choose_files(session, [str(path)])
    for name, value in answers.items():
        getattr(Upload, name).set(session, value)
    with suppress(ValueError):
        list(open_upload(session))
    said = message(session.snapshot())
    return said if isinstance(said, str) else localize_error(said)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_inferred_layout_is_shown_with_the_order_and_the_orientation_of_its_matrices(
    tmp_path: Path, language: Language
) -> None:
    session = Session(None, language=language)
    for model, expected in (
        (NumpyGPT(), {"en": "query, key, value, transposed", "zh": "查询、键、值（转置）"}),
        (NumberedGPT(), {"en": "key, query, value", "zh": "键、查询、值"}),
    ):
        path = tmp_path / f"{type(model).__name__}.pt"
        torch.save(model.state_dict(), path)
        assert "match any known layout" in opened_with(session, path)
        head, *rows = spoken_in(language, names_table, session.snapshot())["rows"]
        assert len(head) == 3
        fused = [row[0] for row in rows if row[1].startswith("h.{n}.attn.c_attn") and not row[1].endswith("bias")]
        assert fused == [expected[language]]
        assert session.state(Upload).activation == "gelu"


def test_what_cannot_be_inferred_is_a_question_mark_to_replace(tmp_path: Path) -> None:
    session, path = Session(None), tmp_path / "mine.pt"
    state = NumberedGPT().state_dict()
    torch.save({name.replace("kqv", "mixing"): value for name, value in state.items()}, path)
    assert "of them are unclear: nothing looks like h.{n}.attn.q" in opened_with(session, path)
    rows = names_table(session.snapshot())["rows"]
    assert ["token embedding", "wte", "token_emb"] in rows
    assert ["query, key, value", "h.{n}.attn.c_attn", "?"] in rows
    draft = session.state(Upload).layout
    assert 'c_attn is still "?"' in opened_with(session)
    layout = json.loads(draft)
    parts = {"attn.c_attn": "0.to_mixing", "attn.c_proj": "0.to_out", "mlp.c_fc": "1.1", "mlp.c_proj": "1.4"}
    layout["names"] |= {f"h.{{n}}.{ours}": f"layers.{{n}}.{theirs}" for ours, theirs in parts.items()}
    opened_with(session, layout=json.dumps(layout))
    opened_with(session, heads=3)
    remove_model(session.model)
    assert session.state(Upload).layout == ""


def test_a_scale_that_nothing_states_is_asked_for_with_the_loss_of_a_text_under_each(tmp_path: Path) -> None:
    session, path = Session(None), tmp_path / "lecture.pt"
    torch.manual_seed(0)
    model, letters = randomized(LectureGPT()), [chr(60 + number) for number in range(61)]
    torch.save({"model": model.state_dict(), "chars": letters}, path)
    assert re.search(r"√8 .* others by √24", opened_with(session, path))
    text = "ABBA" * 30
    ids = torch.tensor([[ord(letter) - 60 for letter in text[:16]]])
    list(try_scales(session, text[:16]))
    losses = dict(session.state(Upload).losses)
    expected = torch.nn.functional.cross_entropy(model(ids)[0, :-1], ids[0, 1:]).item()
    assert losses["head_size"] == pytest.approx(expected, abs=1e-4)
    best = min(losses, key=losses.__getitem__)
    assert losses.keys() == {"head_size", "n_embd"}
    choices = Upload.scale.options(session.snapshot())
    assert (session.state(Upload).scale, [value for _, value in choices]) == (best, ["head_size", "n_embd"])
    assert f"loss {losses['n_embd']:.3f} nats" in choices[1][0]
    opened_with(session, scale="n_embd")
    assert get_model(session.model).model.config.attn_scale == 24**-0.5
    remove_model(session.model)


def test_of_several_models_in_a_file_one_is_asked_for(tmp_path: Path) -> None:
    session, path = Session(None), tmp_path / "both.ckpt"
    net, ema = randomized(NanoGPT()), randomized(NanoGPT(), std=0.1)
    torch.save({"net": net.state_dict(), "ema": ema.state_dict(), "n_head": 3}, path)
    assert "both.ckpt contains several models" in opened_with(session, path)
    assert [value for _, value in Upload.weights.options(session.snapshot())] == ["net", "ema"]
    opened_with(session, weights="ema")
    assert torch.equal(get_model(session.model).model.wte.weight, ema.gpt.wte.weight)
    remove_model(session.model)


def test_a_vocabulary_that_cannot_be_read_is_said():
    loaded = get_model()
    problem = GPTError("vocabulary.parts", "{file} lacks parts", file="a.json")
    loaded = replace(loaded, tokenizer=PlainIds(loaded.tokenizer.n_vocab, problem))
    session = Session(Generation(loaded, [1, 2]), language="en")
    assert "shown as ids: a.json lacks parts." in notice(session.snapshot())
