"""Single tabs in a browser: Shapes, Concepts, Challenges, Activations, Compare, Change it."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_playground, open_tab, says, switch_theme

pytestmark = pytest.mark.thorough


@pytest.fixture
def shapes(stay, site):
    page = stay(lambda page: open_playground(page, site))
    open_tab(page, "shapes")
    expect(page.locator("#shape-parts .main-svg").first).to_be_visible()
    return page


def type_number(page, name, value):
    """Type into the field beside the slider, which only has whole steps."""
    number = page.locator(f"#{name} input[type=number]")
    number.fill(str(value))
    number.blur()


def test_build_runs_the_playground_s_prompt_through_both_models_and_nothing_scrolls_sideways_on_a_phone(shapes):
    open_tab(shapes, "playground")
    shapes.locator("#prompt textarea").fill("The <b>dog</b> and")
    open_tab(shapes, "shapes")
    type_number(shapes, "shape-vocab-size", 5000)
    shapes.locator("#shape-skeleton input").click()
    expect(shapes.locator("#shape-headline")).to_contain_text("1,009,152 parameters")
    shapes.locator("#shape-start").click()
    expect(shapes.locator("#shape-status")).to_contain_text("1,009,152 random weights drawn")
    expect(shapes.locator("#shape-start")).to_be_enabled()
    for side in ("random", "trained"):
        written = re.compile(r"^The <b>dog</b> and(.{22,}|.*∎\s*$)", re.DOTALL)  # a text may end early
        expect(shapes.locator(f"#shape-{side} .gb-strip")).to_have_text(written)
    expect(says(shapes, "shape-stages")).to_contain_text(re.compile(r"\[1, \d+\] .* \[1, \d+, 5000\]"))
    shapes.set_viewport_size({"width": 390, "height": 844})
    for _ in range(2):
        shapes.wait_for_function("document.documentElement.scrollWidth <= 390")
        switch_theme(shapes)


BARS = "#bars .gb-changed"
TINTED = "#concepts-features [role=option][style*='--tint']"


def test_a_slider_turns_a_concept_up_and_nothing_moves_while_the_texts_are_written(page, site):
    open_playground(page, site)
    desk, below = page.locator("#concepts"), page.locator("#upload")
    expect(page.locator(BARS)).to_have_count(0)
    expect(page.locator("#hide-main")).to_be_visible()  # what the prediction depends on has been measured
    dog = desk.get_by_role("slider", name="dog")
    dog.focus()
    at = below.bounding_box()
    dog.press("End")
    expect(dog).to_have_css("outline-offset", "-4px")  # the list clips
    expect(page.locator(BARS).first).to_be_visible()
    expect(desk.locator("figcaption")).to_have_text(["As it is", "With dog"])
    expect(desk.locator("output").first).to_have_text("100")
    expect(page).to_have_url(re.compile(r"edits=c\d\.\d+(%3D|=)4"))
    desk.get_by_role("button", name="more ideas").click()
    expect(desk.get_by_role("slider", name="music")).to_have_count(1)
    expect(page.locator("#reason")).to_contain_text("matters most")  # two lines
    assert below.bounding_box() == at
    desk.get_by_role("button", name="All to the centre").click()
    expect(dog).to_have_value("50")
    expect(page.locator(BARS)).to_have_count(0)
    expect(desk.locator("figcaption")).to_have_text([""])


def test_a_feature_tints_the_text_while_it_is_pointed_at_and_shows_its_evidence_by_a_click(page, site):
    open_playground(page, site)
    open_tab(page, "concepts")
    page.get_by_label("Find a concept").fill("rain")
    features = page.locator("#concepts-features").get_by_role("listbox", name="Concepts at this word")
    rain = features.get_by_role("option", name="rain (layer 2)")
    rain.hover()
    expect(page.locator(TINTED).filter(has_text="rain").first).to_be_visible()
    rain.click()
    expect(page.locator("#concepts-title")).to_have_text("Concept: rain")
    expect(page.locator("#concepts-evidence mark")).to_have_count(12)


def test_a_link_opens_a_challenge_which_clicks_or_a_text_solve_and_the_browser_keeps_what_was_solved(page, site):
    page.goto(f"{site}?challenge=put_back")
    verdict = page.locator("#challenge-foot .gb-standing")
    expect(verdict).to_contain_text("With head 4.1 off")
    page.locator("#challenge-text .gb-arcs-token").nth(4).click()
    page.locator("#challenge-layer").get_by_text("4", exact=True).click()
    expect(verdict).to_contain_text("With just this piece put back")
    page.locator("#challenge-foot .gb-on").click()
    expect(page).to_have_url(re.compile("challenge=sure"))
    expect(verdict).to_contain_text("39")
    page.locator("#challenge-box textarea").fill("They lived happily ever")
    expect(verdict).to_contain_text("“after”")
    page.reload()
    solved = page.locator("#challenge-head a[data-level='2']")
    expect(solved).to_have_count(2)
    expect(page.locator("#challenge-head a[aria-current]")).to_have_attribute("data-key", "sure")


def test_a_link_restores_edits_and_switches_by_mouse_keyboard_and_slider_change_the_prediction_at_once(page, site):
    page.goto(f"{site}?lang=en&tab=change&seed=10&length=12&edits=h0.5%3D0,act%3Drelu")
    says, lead = page.locator("#change-says"), page.locator("#change-lead")
    expect(says).to_contain_text("ReLU instead of GELU (tanh); layer 0, head 5 off")
    expect(page.locator("#change-activation input[value=relu]")).to_be_checked()
    page.locator("#change-reset").click()
    expect(lead).to_contain_text("No changes yet")
    rows = page.locator("#change-switches .gb-switch-row")  # after that of the columns' names, one for each layer
    rows.nth(2).locator(".gb-switch").nth(1).click()
    expect(says).to_contain_text(re.compile(r"went from .* to .* because of this change: layer 1 attention off"))
    grid = page.locator("#change-switches [role=grid]")
    for key in ("ArrowRight", "ArrowRight", "Space"):
        grid.press(key)
    expect(lead).to_contain_text("layer 1 attention off; layer 1, head 1 off")
    page.locator("#change-switches input[type=range]").fill("0.5")
    expect(lead).to_contain_text("layer 1, head 1 × 0.5")


# In each tab, a control and the part that shows what it does.
ANSWERED = {
    "playground": ("#bars [role=option]", "bars"),
    "inside": ("#inside-step .gb-segments label:not(.selected)", "inside-step"),
    "why": ("#why-by .gb-segments label:not(.selected)", "why-flow"),
    "concepts": ("#concepts-features .gb-features-list [role=option]", "concepts-detail"),
    "change": ("#change-try-attention-0", "change-bars"),
    "activations": ("#activations-swap .gb-segments label:not(.selected)", "activation-swapped"),
    "lessons": ("#lesson-body .gb-answer label", "lesson-body"),
    "challenges": ("#challenge-text .gb-arcs-token", "challenge-foot"),
    "learned": ("#learned-copying", "learned-player"),
    "compare": ("#compare-seeds", "compare-left-strip"),
    "shapes": ("#shape-start", "shape-random"),
    "loss": ("#loss-example-turn", "loss-strip"),
    "train": ("#train-start", "train-loss"),
}
GROWING = ("concepts", "learned", "train")  # several pictures arrive one after the other, each above the next
FAR = ("concepts", "learned", "compare", "loss", "train")  # on a phone, the answer is not beside the control
# Whether the text with its arches is in sight as a whole.
FITS = """() =>
  [...document.querySelectorAll(".gb-composer")].every((one) => one.scrollHeight <= one.clientHeight)"""
WATCH_SHIFTS = """() => {
  window.shifts = [];
  window.changed = performance.now();
  const keep = (list) => window.shifts.push(...list.getEntries().map((entry) => entry.value));
  new PerformanceObserver(keep).observe({ type: "layout-shift" });
  const changes = new MutationObserver(() => (window.changed = performance.now()));
  changes.observe(document.body, { subtree: true, childList: true, attributes: true });
}"""
QUIET = """() => {
  const waits = [...document.querySelectorAll("[data-waiting]")].some((each) => each.checkVisibility());
  if (waits) window.changed = performance.now();
  return performance.now() - window.changed > 500;
}"""
PLACE = """(each) => {
  const { top, bottom, height } = each.getBoundingClientRect();
  return { top, height, onPage: top + scrollY, seen: Math.min(bottom, innerHeight) - Math.max(top, 0) };
}"""

# The left edge of the first card, and its distance from what stands above the tab.
EDGES = """() => {
  scrollTo(0, 0);
  const box = (each) => each.getBoundingClientRect();
  const boxes = (names) => [...document.querySelectorAll(names)].map(box).filter(({ height }) => height > 1);
  const [card] = boxes(".gb-tab :is(.gb-card, .gb-growth)");
  const above = boxes("#card-frame, #card-dock, :is(#tabs, #look, #learn, #lab) > :first-child");
  return [card.left, card.top - Math.max(...above.map(({ bottom }) => bottom))];
}"""


@pytest.mark.parametrize(("width", "names"), [(1280, tuple(ANSWERED)), (390, FAR)])
def test_the_answer_is_in_sight_of_what_is_pressed_which_stays_in_place_as_everything_else_does(
    stay, site, width, names
):
    page = stay(lambda page: open_playground(page, site), anew=True)
    page.set_viewport_size({"width": width, "height": 800 if width > 390 else 844})
    page.wait_for_function(FITS)
    page.evaluate(WATCH_SHIFTS)
    wrong = {}
    for name in names:
        open_tab(page, name)
        control, answer = ANSWERED[name]
        pressed, shown = page.locator(control).first, page.locator(f"#{answer}")
        expect(pressed).not_to_be_empty()  # on a slow machine, nothing may move although the tab isn't drawn yet
        page.wait_for_function(QUIET)
        assert page.evaluate(EDGES) == [24 if width > 390 else 12, 16], name
        pressed.scroll_into_view_if_needed()
        page.wait_for_function(QUIET)
        page.evaluate("window.shifts = []")
        before = pressed.evaluate(PLACE)
        pressed.click()
        expect(shown).to_be_visible()
        if name == "train":  # the page changes until the run ends
            expect(shown.locator(".main-svg").first).to_be_visible()
        else:
            page.wait_for_function(QUIET)
        shift = page.evaluate("window.shifts.reduce((sum, each) => sum + each, 0)")
        after = pressed.evaluate(PLACE) if pressed.count() and pressed.is_visible() else before
        result = shown.evaluate(PLACE)
        moved = min(abs(after[side] - before[side]) for side in ("top", "onPage"))
        jumps = shift > 0.02 and width > 390 and name not in GROWING
        if jumps or moved > 2 or result["seen"] < min(result["height"], 150):
            wrong[name] = (
                f"shift {shift:.3f}, {moved:.0f} px, {result['seen']:.0f} of {result['height']:.0f} px in sight"
            )
    page.locator("#train-cancel").click()
    assert not wrong, wrong
