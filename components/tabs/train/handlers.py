"""The handlers of the Train tab: begin, steer, follow, look back, open, take away, leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gradio as gr

from components.api import error
from components.errors import PageError, localize_error
from components.i18n import Language, t
from components.state.session import Session
from components.tabs.train import choices, views
from components.tabs.train.views import Moment
from gpt.training.live_run import N_EVALUATIONS, Evaluation, LiveRun, RunSnapshot
from gpt.training.run_queue import QueueFull

if TYPE_CHECKING:
    from components.tabs.train.tab import Train

Values = dict[Any, Any]


def about(ui: Train, values: Values) -> Values:
    """Another task was chosen: what it is, and the settings that it is learned well with."""
    language, kind = values[ui.frame.language], values[ui.task]
    recipe = choices.recipe_for(kind)
    return {
        ui.about: choices.about(kind, language),
        ui.own: gr.update(visible=kind == choices.TEXT),
        ui.n_layer: recipe.n_layer,
        ui.n_head: recipe.n_head,
        ui.n_embd: recipe.n_embd,
        ui.steps: recipe.steps,
        ui.rate: recipe.muon_lr,
        ui.notice: "",
    }


def take_file(ui: Train, values: Values) -> Values:
    """A file was uploaded: read it, and say what it is."""
    language, path = values[ui.frame.language], values[ui.file]
    if not path:
        return {ui.notice: gr.skip()}
    try:
        given = choices.read_text_file(path)
    except ValueError as problem:
        return {ui.notice: localize_error(problem, language), ui.source: "", ui.given: None}
    return {ui.notice: "", ui.given: given, ui.text: "", ui.source: choices.source(given, language)}


def take_code(ui: Train, values: Values) -> Values:
    """The text that is always at hand."""
    given = choices.own_code()
    told = choices.source(given, values[ui.frame.language])
    return {ui.notice: "", ui.given: given, ui.text: "", ui.source: told}


def typed(ui: Train, values: Values) -> Values:
    """A pasted text takes the place of an uploaded one."""
    return {ui.given: None, ui.source: ""}


def start(ui: Train, values: Values, request: gr.Request) -> Values:
    """Begin, or wait for a place; what cannot be trained is said in place."""
    language, owner = values[ui.frame.language], owner_of(request)
    moment: Moment = values[ui.moment]
    try:
        given = {name: values[getattr(ui, name)] for name in ("n_layer", "n_head", "n_embd", "steps", "rate")}
        text = values[ui.text] or (values[ui.given].text if values[ui.given] else "")
        dataset = choices.dataset_for(values[ui.task], text, language)
        recipe = choices.checked_recipe(values[ui.task], given, language)
        seconds = choices.checked_number("seconds", values[ui.seconds], *choices.SECONDS, language)
        run = LiveRun(dataset, recipe, time_limit_seconds=seconds)
        try:
            ui.desk.submit(owner, run)
        except QueueFull:
            raise PageError("train.error.full") from None
    except ValueError as problem:
        return {ui.notice: localize_error(problem, language)}
    moment.step = moment.layer = moment.head = None
    moment.drawn = None
    every = max(1, recipe.steps // N_EVALUATIONS)
    return {
        **show(ui, values, owner),
        ui.notice: "",
        ui.factor: 1.0,
        ui.scrubber: gr.update(maximum=recipe.steps, step=every, value=0),
        ui.timer: gr.Timer(active=True),
    }


def pause(ui: Train, values: Values, request: gr.Request) -> Values:
    """Pause, or go on."""
    run = ui.desk.run(owner_of(request))
    if run is not None:
        (run.resume if run.state == "paused" else run.pause)()
    return show(ui, values, owner_of(request))


def cancel(ui: Train, values: Values, request: gr.Request) -> Values:
    """Call the run off."""
    run = ui.desk.run(owner_of(request))
    if run is not None:
        run.cancel()
    return show(ui, values, owner_of(request))


def change_rate(ui: Train, values: Values, request: gr.Request) -> Values:
    """Another learning rate, from the next step on."""
    run = ui.desk.run(owner_of(request))
    if run is not None and values[ui.factor] in choices.FACTORS:
        run.set_rate_factor(values[ui.factor])
    return {ui.notice: ""}


def enter(ui: Train, values: Values, request: gr.Request) -> Values:
    """The tab was opened: the run as it is now, if there is one."""
    return show(ui, values, owner_of(request)) if ui.desk.run(owner_of(request)) else {ui.notice: gr.skip()}


def follow(ui: Train, values: Values, request: gr.Request) -> Values:
    """While it trains: everything that is new since the last look."""
    return show(ui, values, owner_of(request), only_new=True)


def scrub(ui: Train, values: Values, request: gr.Request) -> Values:
    """Look at the step of the scrubber; at its right end, at the newest."""
    progress = ui.desk.snapshot(owner_of(request))
    if progress is None or not progress.evaluations:
        return {ui.notice: gr.skip()}
    step = values[ui.scrubber]
    pinned = values[ui.moment].step = None if step >= progress.evaluations[-1].step else int(step)
    update = show(ui, values, owner_of(request))
    if pinned is not None and not progress.ended:  # a tick that was on its way may have moved it
        update[ui.scrubber] = pinned
    return update


def choose_step(ui: Train, values: Values, sent: Values, request: gr.Request) -> Values:
    """Look at the step that was clicked in the curve; what the browser sends may be anything."""
    progress, step = ui.desk.snapshot(owner_of(request)), sent.get("x")
    known = progress is not None and progress.evaluations and isinstance(step, (int, float))
    if not known or not 0 <= step <= progress.steps:
        return {ui.notice: gr.skip()}
    values[ui.moment].step = None if step >= progress.evaluations[-1].step else int(step)
    return show(ui, values, owner_of(request)) | {ui.scrubber: int(step)}


def choose_head(ui: Train, values: Values, sent: Values, request: gr.Request) -> Values:
    """Enlarge the head that was clicked."""
    moment: Moment = values[ui.moment]
    layer, head = sent.get("layer"), sent.get("head")
    if type(layer) is not int or type(head) is not int or layer < 0 or head < 0:
        return {ui.notice: gr.skip()}
    moment.layer, moment.head = layer, head
    return show(ui, values, owner_of(request))


def show(ui: Train, values: Values, owner: str, *, only_new: bool = False) -> Values:
    """The status, the buttons and the pictures of the owner's run; the timer rests once it is over."""
    language, moment = values[ui.frame.language], values[ui.moment]
    run, progress = ui.desk.run(owner), ui.desk.snapshot(owner)
    if run is None or progress is None:
        return {
            **_buttons(ui, None, language),
            ui.results: gr.update(visible=False),
            ui.status: t("train.idle", language),
            ui.timer: gr.Timer(active=False),
        }
    update = {ui.status: views.status(run, progress, language)}
    buttons = (progress.state, language)
    if moment.drawn is None or moment.drawn[0] != buttons or not only_new:
        update |= _buttons(ui, progress, language)
        if progress.state == "finished":
            update[ui.download] = gr.update(value=str(run.archive()), visible=True)
    look = moment.look(progress)
    drawn = (buttons, None if look is None else look.step, progress.step)
    if look is not None and not (only_new and moment.drawn == drawn):
        update[ui.curve] = views.curve(run, progress, moment, language)
        if not only_new or moment.drawn is None or moment.drawn[:2] != drawn[:2]:
            update |= _looked(ui, run, look, moment, language)
            if moment.step is None:
                update[ui.scrubber] = look.step
    elif look is None:
        update[ui.results] = gr.update(visible=False)
    moment.drawn = drawn
    return update | ({ui.timer: gr.Timer(active=False)} if progress.ended else {})


def _looked(ui: Train, run: LiveRun, look: Evaluation, moment: Moment, language: Language) -> Values:
    return {
        ui.results: gr.update(visible=True),
        ui.samples_says: views.samples_says(look, language),
        ui.samples: views.samples_table(look, language),
        ui.sample: views.sample_text(look),
        ui.heads: gr.update(value=views.overview(run, look, moment, language), labels=views.heads_labels(language)),
        ui.heatmap: views.heatmap(run, look, moment, language),
    }


def _buttons(ui: Train, progress: RunSnapshot | None, language: Language) -> Values:
    going = progress is not None and not progress.ended
    begun = going and progress.state != "waiting"
    done = progress is not None and progress.state == "finished"
    paused = progress is not None and progress.state == "paused"
    return {
        ui.start: gr.update(interactive=not going),
        ui.pause: gr.update(interactive=begun, value=t("train.continue" if paused else "train.pause", language)),
        ui.cancel: gr.update(interactive=going),
        ui.factor: gr.update(interactive=begun),
        ui.open: gr.update(visible=done),
        ui.download: gr.update(visible=done),
    }


def open_model(ui: Train, values: Values, request: gr.Request) -> Values:
    """Put the model into this visitor's list, choose it, and give it something to go on from."""
    language, owner = values[ui.frame.language], owner_of(request)
    run = ui.desk.run(owner)
    if run is None:
        raise error(t("train.gone", language))
    try:
        names = ui.desk.open(owner, run, used=values[ui.frame.model])
    except ValueError as problem:
        raise error(problem, language) from None
    session: Session = values[ui.playground.session]
    session.own_models, session.model = tuple(names), names[-1]
    session.typed = run.dataset.start
    return {
        ui.frame.own: names,
        **ui.playground.shown(session),
        ui.notice: t("train.opened", language),
        ui.tabs: gr.Tabs(selected="playground"),
    }


def retell(ui: Train, values: Values, request: gr.Request) -> Values:
    """Every sentence again, in the language chosen just now."""
    language = values[ui.frame.language]
    told = {ui.about: choices.about(values[ui.task], language), ui.notice: "", ui.source: ""}
    if values[ui.given]:
        told[ui.source] = choices.source(values[ui.given], language)
    return told | show(ui, values, owner_of(request))


def owner_of(request: gr.Request) -> str:
    """Whose run it is: the session of the browser's page."""
    return str(request.session_hash)
