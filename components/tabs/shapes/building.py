"""The handlers of the Shapes tab that run models: random weights and a trained model go on with the same prompt."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import gradio as gr

from components import legacy
from components.api import checked_text, find_model
from components.errors import PageError, localize_error
from components.i18n import Language, t
from components.legacy import params_of
from components.panels.shape_settings import RANGES, SWITCHES, shape_of
from components.state.example import EXAMPLE_LENGTH, EXAMPLE_SEED
from components.state.settings import LIMITS, sampling_params
from components.tabs.shapes import views as shape_views
from components.tabs.shapes.views import Facts
from gpt import Generation, LoadedModel, SamplingParams, with_seed
from gpt.errors import GPTError
from gpt.experiments.random_models import (
    MAX_MEMORY_BYTES,
    MemoryInUse,
    RandomModels,
    memory_bytes,
    module_shapes,
    resize_vocabulary,
)
from gpt.experiments.shapes import count_parameters
from gpt.models.memory import format_bytes

if TYPE_CHECKING:
    from components.tabs.shapes.tab import ShapeLab

Values = dict[Any, Any]
LENGTH = 40  # tokens that each model writes
STAGE_TOKENS = 32  # of the prompt, whose shapes are shown
EXAMPLE_PARAMETERS = 20_000_000  # a larger one would keep the page waiting when it starts
UPDATE_SECONDS = 0.02


@dataclass(frozen=True)
class Built:
    """What the tab shows of a model that was built."""

    facts: Facts
    random_strip: str
    trained_strip: str


def example(models: RandomModels, written: Generation) -> Built | None:
    """The page's example, beside what random weights of the same shape make of its prompt; None for a large model."""
    loaded = written.loaded
    config, prompt = loaded.model.config, written.ids[: written.n_prompt]
    if count_parameters(config) > EXAMPLE_PARAMETERS or memory_bytes(config) > models.max_memory_bytes:
        return None
    began = time.perf_counter()
    with models.model(config, loaded.tokenizer) as built:
        facts = _facts(built, False, prompt, time.perf_counter() - began, loaded.name, EXAMPLE_SEED)
        document = Generation(built, prompt)
        params = sampling_params(temperature=LIMITS["temperature"].default, seed=EXAMPLE_SEED)
        for _ in document.local_steps(params, EXAMPLE_LENGTH):
            pass
        facts = replace(facts, n_tokens=len(document.ids) - document.n_prompt, example=True)
        return Built(facts, legacy.strip(document), legacy.strip(written))


def compare(ui: ShapeLab, values: Values) -> Iterator[Values]:
    """Build the shape and let both models write, token by token in turn."""
    language: Language = values[ui.frame.language]
    yield {
        ui.build: gr.update(interactive=False),
        ui.stop: gr.update(interactive=True),
        ui.trouble: "",
        ui.status: t("shapes.building", language),
    }
    try:
        yield from _compare(ui, values, language)
    except MemoryInUse:
        yield {ui.trouble: t("shapes.busy", language)}
    except ValueError as problem:
        yield {ui.trouble: localize_error(problem, language)}


def _compare(ui: ShapeLab, values: Values, language: Language) -> Iterator[Values]:
    given = {name: values[getattr(ui, name)] for name in (*RANGES, *SWITCHES)}
    config, bare = shape_of(given), bool(given["skeleton"])
    if not shape_views.fits(config, bare):
        need = format_bytes(memory_bytes(config, skeleton=bare))
        raise PageError("shapes.room.none", need=need, limit=format_bytes(MAX_MEMORY_BYTES))
    trained = find_model(values[ui.frame.model])
    prompt = checked_text("prompt", values[ui.playground.prompt] or "")
    params = with_seed(params_of(ui.playground, values, seeded=True))
    vocabulary = resize_vocabulary(trained.tokenizer, config.vocab_size)
    for limit, ids in (
        (config.block_size, vocabulary.encode(prompt)),
        (trained.model.config.block_size, trained.tokenizer.encode(prompt)),
    ):
        if len(ids) > limit:
            raise GPTError("context.prompt_too_long", n=len(ids), excess=len(ids) - limit, limit=limit)
    began = time.perf_counter()
    with ui.models.model(config, vocabulary, skeleton_only=bare) as built:
        seconds = time.perf_counter() - began
        documents = Generation(built, prompt), Generation(trained, prompt)
        facts = _facts(built, bare, documents[0].ids, seconds, trained.name, params.seed)
        yield {
            ui.session: facts,
            ui.stages: shape_views.stages(facts, language),
            ui.trained_name: shape_views.trained(trained.name, language),
        }
        yield from _write(ui, documents, params)
        facts = replace(facts, n_tokens=len(documents[0].ids) - documents[0].n_prompt)
    yield {ui.session: facts, ui.status: shape_views.status(facts, language)}


def _write(ui: ShapeLab, documents: tuple[Generation, Generation], params: SamplingParams) -> Iterator[Values]:
    """Both strips as they grow."""
    for document in documents:
        document.read()
    strips = [legacy.strip(document) for document in documents]
    shown = 0.0
    random, trained = documents  # the random model is known to this process alone
    for pair in zip_longest(random.local_steps(params, LENGTH), trained.steps(params, LENGTH)):
        for i, step in enumerate(pair):
            if step is not None:
                strips[i] += legacy.strip_step(documents[i], step)
        if time.perf_counter() - shown >= UPDATE_SECONDS:
            shown = time.perf_counter()
            yield {ui.random_strip: strips[0], ui.trained_strip: strips[1]}
    yield {ui.random_strip: strips[0], ui.trained_strip: strips[1]}


def _facts(built: LoadedModel, bare: bool, ids: list[int], seconds: float, model: str, seed: int) -> Facts:
    seen = tuple(module_shapes(built.model, ids[:STAGE_TOKENS]))
    return Facts(built.model.config, bare, seen, seconds, model, 0, seed)


def finish(ui: ShapeLab, values: Values) -> Values:
    """After a run, however it ended."""
    language: Language = values[ui.frame.language]
    given = {name: values[getattr(ui, name)] for name in (*RANGES, *SWITCHES)}
    try:
        again = shape_views.fits(shape_of(given), bool(given["skeleton"]))
    except ValueError:  # moved to a wrong combination meanwhile
        again = False
    return {
        ui.build: gr.update(interactive=again),
        ui.stop: gr.update(interactive=False),
        ui.status: shape_views.status(values[ui.session], language),
    }
