"""Panels about a model's text, for models of other families: RMSNorm, gated feed-forward part, parallel branches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from components.i18n import t
from components.panels.layer_norm import Chosen, norms, rows
from components.state.session import Session
from gpt import Generation, Trace
from tests.components.panels.panel_session import drawn, said, values
from tests.gpt.fake_models import family_model


def session_of(family: str) -> Session:
    document = Generation(family_model(family), "the cat sat")
    document.read()
    session = Session(document)
    session.select(position=3, layer=1)
    return session


def trace_of(session: Session) -> Trace:
    document, trace = session.document, Trace()
    with torch.no_grad():
        document.loaded.model(torch.tensor([document.ids]), trace=trace)
    return trace


NORMS = ("ln_1", "ln_2", "ln_f")


@pytest.mark.parametrize(("family", "norm"), [(family, norm) for family in ("llama", "gpt_neox") for norm in NORMS])
def test_the_rows_of_a_norm_are_normalised_as_the_model_does(family: str, norm: str) -> None:
    session = session_of(family)
    panel = drawn(session, "norm")
    Chosen.source.set(session, "model")
    Chosen.which.set(session, norm)
    kind = "rms" if family == "llama" else "layer"
    assert panel.update()["norm-note"]["text"] == t(f"norm.note.{kind}")
    model, trace = session.document.loaded.model, trace_of(session)
    layer = trace.layers[1]
    inputs = {"ln_1": layer.resid_pre, "ln_2": layer.resid_pre if family == "gpt_neox" else layer.resid_mid}
    x = inputs.get(norm, trace.layers[-1].resid_post)[0, 2:4]
    module = model.ln_f if norm == "ln_f" else getattr(model.h[1], norm)
    torch.testing.assert_close(rows(session.snapshot()).numbers.after, module(x).detach(), atol=1e-4, rtol=1e-4)
    Chosen.source.set(session, "example")
    assert panel.update()["norm-note"]["text"] == t("norm.note.layer")


@pytest.mark.parametrize(
    ("chosen", "output"), [("ln_1", "attn_out"), ("ln_1_post", "attn_out"), ("ln_2_post", "mlp_out")]
)
def test_a_model_without_norms_before_its_branches_shows_those_after_them(chosen: str, output: str) -> None:
    session = session_of("olmo2")
    session.change(Chosen, source="model", which=chosen)  # ln_1 was chosen for another model
    drawn(session, "norm").update()
    assert norms(session.snapshot()) == ("ln_1_post", "ln_2_post", "ln_f")
    expected = getattr(trace_of(session).layers[1], output)[0, 2:4].detach()
    torch.testing.assert_close(rows(session.snapshot()).numbers.after, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("family", "bars"), [("llama", 5), ("gpt2", 4)])
def test_the_feed_forward_part_shows_the_gate_of_a_gated_model(family: str, bars: int) -> None:
    session = session_of(family)
    panel, layer = drawn(session, "ff"), trace_of(session).layers[1]
    views = panel.update()
    for view, expected in (("ff-before", layer.mlp_pre), ("ff-after", layer.mlp_post)):
        grid = values(views[view]["figure"]["data"][0], "z").ravel()
        np.testing.assert_allclose(grid[: expected.shape[-1]], expected[0, 3].numpy(), rtol=1e-3, atol=1e-4)
    assert len(values(views["ff-widths"]["figure"]["data"][0])) == bars
    text = "".join(said(views, f"ff-{view}") for view in ("answer", "name-after", "widths"))
    assert ("gate" in text) == ("three matrices" in text) == (family == "llama")
    session.language = "zh"
    assert ("门控" in said(panel.update(), "ff-answer")) == (family == "llama")
