"""Every view of every tab draws for models of other families, whatever their blocks contain."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from components.page import build_app
from components.render import Renderer
from components.session_events import analyse
from components.state.session import Session
from components.state.text import Selection, Text
from components.tabs.inside.scene import Chosen as Inside
from components.tabs.lessons.course import LESSONS
from components.tabs.lessons.pictures import PICTURES, model_pictures, shape_pictures, text_pictures
from components.tabs.why.explained import Chosen as Explaining
from components.text_views import attention_heatmap
from gpt import Edits, Generation, SamplingParams
from tests.components.tabs.lesson_session import new_page, opened
from tests.gpt.fake_models import family_model
from tests.gpt.family_configs import FAMILIES

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    """The renderer with all views, controls and analyses of the page."""
    built: list[Renderer] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Renderer, "build", lambda renderer, session: built.append(renderer))
        build_app()
    return built[0]


@pytest.fixture(scope="module", params=FAMILIES)
def document(request: pytest.FixtureRequest) -> Generation:
    document = Generation(family_model(request.param, block_size=48), "the cat sat on the mat")
    list(document.steps(SamplingParams(seed=1), 4))
    document.read()
    return document


def drawn(renderer: Renderer, session: Session) -> dict[str, dict[str, object]]:
    """Return the views of the open tab once its analyses are done."""
    renderer.start(session)
    list(analyse(renderer, session))
    snapshot = session.snapshot()
    assert renderer.wanted(session, snapshot) is None
    return {view.name: view.draw(snapshot) for view in renderer.views[session.tab]}


def session_of(document: Generation, tab: str, **edits: object) -> Session:
    """Create a session with the last head of the last layer selected."""
    config = document.loaded.model.config
    session = Session(document.copy(), selection=Selection(9, config.n_layer - 1, config.n_head - 1))
    session.tab, session.edits = tab, Edits(**edits)
    return session


@pytest.mark.parametrize("tab", ["playground", "why", "change", "compare", "challenges", "shapes", "loss"])
def test_every_view_of_a_tab_draws(renderer: Renderer, document: Generation, tab: str) -> None:
    shown = drawn(renderer, session_of(document, tab, head_scale={(1, 3): 0.0}, mlp_scale={0: 0.5}))
    assert any(shown.values())


@pytest.mark.parametrize("method", ["gradient", "hidden"])
def test_why_measures_every_influence(renderer: Renderer, document: Generation, method: str) -> None:
    session = session_of(document, "why")
    session.change(Explaining, method=method, sample="noise")
    shown = drawn(renderer, session)
    charts = [
        name for name in ("influence", "lens", "path", "parts", "heads", "head") if shown[f"why-{name}"]["figure"]
    ]
    assert len(charts) == 6
    assert shown["why-flow"]["heads"] == sorted(shown["why-flow"]["heads"], key=lambda head: head[2])


@pytest.mark.parametrize(
    ("tab", "picture"),
    [
        ("inside", "path"),
        ("inside", "flow"),
        ("inside", "stages"),
        ("activations", "neurons"),
        ("embeddings", "nearest-tokens"),
    ],
)
def test_every_picture_of_the_machine_draws(renderer: Renderer, document: Generation, tab: str, picture: str) -> None:
    session = session_of(document, tab)
    session.change(Inside, step="path" if picture == "path" else "heads")
    shown = drawn(renderer, session)[picture]
    assert shown["words" if picture == "path" else "text"]


# The pictures of other lessons are the same for every model; test_lesson_pictures.py draws them.
OF_THE_MODEL = {
    key
    for key, picture in (shape_pictures.PICTURES | model_pictures.PICTURES | text_pictures.PICTURES).items()
    if key != "untrained"
}


def test_every_picture_of_a_lesson_draws(document: Generation) -> None:
    loaded, page = document.loaded, new_page()
    for lesson in LESSONS:
        if lesson.key in OF_THE_MODEL and not PICTURES[lesson.key].takes_time():
            views = opened(page, lesson.key, loaded=loaded)
            assert views["notice"]["text"] == "", lesson.key
            assert not any(view.get("waiting") or view.get("failed") for view in views.values()), lesson.key


@pytest.mark.parametrize("layer", [0, 1])
def test_the_heatmap_is_blank_where_a_layer_does_not_see(layer: int) -> None:
    document = Generation(family_model("gemma3", block_size=48), "the cat sat on the mat")
    document.read()
    window, n = document.loaded.model.config.window_of(layer), document.n_read
    shown = attention_heatmap(Text.of(document), Selection(n - 1, layer, 1))
    rows = [np.frombuffer(base64.b64decode(row), "<f4") for row in shown["cells"]]
    z = np.array([np.pad(row, (0, n - len(row)), constant_values=np.nan) for row in rows])
    back = np.arange(n)[:, None] - np.arange(n)
    np.testing.assert_array_equal(np.isnan(z), (back < 0) | (back >= (window or n)))
    assert ("sees only the last 5 tokens" in shown["text"]) == (window == 5) == (layer == 0)
