"""The event handlers of the Shapes tab: set a configuration, build it, generate with both models."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import cache
from itertools import zip_longest

from components.api.arguments import checked_text
from components.errors import PageError
from components.render import Analysis, Lines
from components.state.admission import admitted
from components.state.example import OPENINGS, language_of_model
from components.state.jobs import Job, run_steps
from components.state.loading import load_with_progress
from components.state.session import Session
from components.state.settings import LIMITS, sampling_params
from components.state.snapshot import Snapshot
from components.state.token_statistics import TokenStatisticsCache
from components.tabs.shapes.settings import OWN, PICKED, SHAPES, Choice, Shape
from components.tabs.shapes.state import Built, ShapesState, choice_of
from components.tabs.shapes.views import fits
from components.text_views import document_lines
from gpt import Generation, GPTConfig, SamplingParams
from gpt.documents.prompt import check_prompt_length
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
from gpt.tokenizer import prompt_ids

LENGTH = 40  # tokens that each model generates
STAGE_TOKENS = 32  # of the prompt, for the shapes of the forward pass
EXAMPLE_PARAMETERS = 20_000_000  # limit of the example, so that the page starts quickly
UPDATE_SECONDS = 0.05  # between two frames, at least


def set_shape(session: Session, config: GPTConfig, skeleton: bool = False) -> None:
    """Set the controls to a configuration."""
    session.change(ShapesState, choice=Choice.of(config, skeleton), trouble=None)


def choose_preset(session: Session, name: object) -> None:
    """Set a preset."""
    if name == PICKED:
        session.change(ShapesState, choice=None, trouble=None)
    elif name == OWN:
        session.change(ShapesState, choice=choice_of(session))
    elif isinstance(name, str) and name in SHAPES:
        set_shape(session, SHAPES[name])


def set_value(name: str, session: Session, value: object) -> None:
    """Set a slider or a switch."""
    session.change(ShapesState, choice=choice_of(session).moved(name, value), trouble=None)


def missing(s: Snapshot) -> str | None:
    """The chosen model, if its configuration is to be shown and it is not loaded yet."""
    there = s.loaded is not None and s.loaded.name == s.model
    return None if there or s.state(ShapesState).choice is not None else s.model


def load(session: Session) -> Iterator[None]:
    """Load the chosen model. Its errors are shown where it was chosen."""
    with suppress(ValueError):
        yield from load_with_progress(session, session.model)


PICKED_MODEL = Analysis(missing, load)


def example_analysis(models: RandomModels, written: Generation) -> Analysis:
    """The analysis that shows a text beside the output of random weights in the same configuration when the tab is
    first opened. Computed once for all visitors."""

    @cache
    def made() -> Built | None:
        return example(models, written)

    def wanted(s: Snapshot) -> str | None:
        state = s.state(ShapesState)
        return None if state.example_shown or state.busy else "example"

    def show(session: Session) -> Iterator[None]:
        try:
            built = made()
        except MemoryInUse:
            built = None
        state = session.state(ShapesState)
        session.change(ShapesState, built=state.built or (None if state.busy else built), example_shown=True)
        yield

    return Analysis(wanted, show)


def example(models: RandomModels, written: Generation) -> Built | None:
    """The text beside the output of random weights for its prompt; None for a large model."""
    loaded = written.loaded
    config, prompt = loaded.model.config, written.ids[: written.n_prompt]
    if count_parameters(config) > EXAMPLE_PARAMETERS or memory_bytes(config) > models.max_memory_bytes:
        return None
    began = time.perf_counter()
    with models.model(config, loaded.tokenizer) as random:
        seconds = time.perf_counter() - began
        document = Generation(random, prompt)
        length, seed = OPENINGS[language_of_model(loaded.name)]
        built = _built(Shape(config), (document, written), seconds, seed)
        params = sampling_params(temperature=LIMITS["temperature"].default, seed=seed)
        for _ in document.local_steps(params, length):
            pass
        lines = document_lines(document), document_lines(written)
        n_tokens = len(document.ids) - document.n_prompt
        return replace(built, lines=lines, n_tokens=n_tokens, finished=True)


def build(models: RandomModels, session: Session) -> Iterator[None]:
    """Initialise the configuration and generate with it and the chosen model in lockstep; errors are shown."""

    def steps(job: Job) -> Generator[None]:
        with closing(_build(models, session)) as made:
            try:
                for built in made:
                    if built is not None:
                        session.change(ShapesState, built=replace(built, job=job), example_shown=True)
                    yield
            except MemoryInUse:
                raise PageError("shapes.busy") from None

    yield from run_steps(session, ShapesState, steps, problem="trouble")


def _build(models: RandomModels, session: Session) -> Generator[Built | None]:
    """Yields the state of the build as it grows; None while waiting."""
    trained = yield from load_with_progress(session, session.model)
    choice = choice_of(session)
    config, skeleton = choice.shape.config, choice.shape.skeleton
    if choice.problem is not None:
        raise choice.problem
    if not fits(choice.shape):
        need = format_bytes(memory_bytes(config, skeleton=skeleton))
        raise PageError("shapes.room.none", need=need, limit=format_bytes(MAX_MEMORY_BYTES))
    prompt, params = checked_text("prompt", session.next_prompt), session.settings.sampling_with_seed()
    vocabulary = resize_vocabulary(trained.tokenizer, config.vocab_size)
    for limit, ids in (
        (config.block_size, prompt_ids(vocabulary, prompt)),
        (trained.model.config.block_size, prompt_ids(trained.tokenizer, prompt)),
    ):
        check_prompt_length(len(ids), limit)
    with admitted(session, trained) as waiting:
        yield from waiting
        began = time.perf_counter()
        with models.model(config, vocabulary, skeleton_only=skeleton) as random:
            seconds = time.perf_counter() - began
            documents = Generation(random, prompt), Generation(trained, prompt)
            built = _built(choice.shape, documents, seconds, params.seed)
            yield built
            yield from _write(built, documents, params)


def _built(shape: Shape, documents: tuple[Generation, Generation], seconds: float, seed: int | None) -> Built:
    random, trained = documents
    assert seed is not None  # set by `Settings.sampling_with_seed`
    stages = tuple(module_shapes(random.loaded.model, random.ids[:STAGE_TOKENS]))
    keys = random.key, trained.key
    return Built(shape, stages, seconds, trained.loaded.name, seed, keys, (Lines(), Lines()))


def _write(built: Built, documents: tuple[Generation, Generation], params: SamplingParams) -> Iterator[Built]:
    """Both texts as they grow."""
    random, trained = documents
    measured = TokenStatisticsCache(), TokenStatisticsCache()

    def grown() -> Built:
        lines = document_lines(random, measured[0]), document_lines(trained, measured[1])
        return replace(built, lines=lines, n_tokens=len(random.ids) - random.n_prompt)

    for document in documents:
        document.read()
    yield grown()
    shown = time.perf_counter()
    # The random model is not in the registry.
    for steps in zip_longest(random.local_steps(params, LENGTH), trained.steps(params, LENGTH)):
        for document, statistics, step in zip(documents, measured, steps, strict=True):
            if step is not None:
                statistics.add(document, step)
        if time.perf_counter() - shown >= UPDATE_SECONDS:
            yield grown()
            shown = time.perf_counter()
    yield replace(grown(), finished=True)
