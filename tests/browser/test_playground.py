"""Write in a browser: generate, select, search, change the settings."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from components.render import Renderer
from components.state.example import EXAMPLES
from tests.browser.playground_page import (
    CHIPS,
    FINISHED,
    forget_status,
    generate,
    open_more_controls,
    open_playground,
    open_tab,
    picked,
    says,
    set_run,
    show_numbers,
    shown_next,
    switch_theme,
    text,
    written,
)

pytestmark = pytest.mark.thorough

WATCH_SHIFTS = """() => {
  window.shifts = [];
  const keep = (list) => window.shifts.push(...list.getEntries().map((entry) => entry.value));
  new PerformanceObserver(keep).observe({ type: "layout-shift" });
  const { animate } = Element.prototype;
  window.moved = []; // rows of the bars that slid over others
  Element.prototype.animate = function (...how) {
    if (this.closest("#bars")) window.moved.push(this.textContent);
    return animate.apply(this, how);
  };
}"""


@pytest.fixture
def opened(stay, site):
    """A shared page. Each test types its own text and restores the settings."""
    return stay(lambda page: open_playground(page, site))


def test_language_and_theme_are_remembered_and_a_link_says_otherwise(page, site):
    open_playground(page, site)
    expect(says(page, "bars")).to_contain_text("After")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    switch_theme(page)
    expect(page.locator("body")).to_have_class(re.compile("dark"))
    assert page.evaluate(ground) != light
    page.locator("#language label", has_text="中文").click()
    expect(page.locator("#generate")).to_have_text("续写")
    expect(page.get_by_role("tab", name="写作")).to_be_visible()
    expect(says(page, "bars")).to_contain_text("之后")
    page.reload()
    expect(page.locator("#generate")).to_have_text("续写")
    expect(page.locator("body")).to_have_class(re.compile("dark"))
    page.goto(f"{site}?lang=en")
    expect(page.locator("#generate")).to_have_text("Continue")
    page.goto(f"{site}?tab=loss&lang=zh")  # following a link inside the session's browser tab
    expect(page.get_by_role("tab", name="实验室", selected=True)).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    page.locator("#language label", has_text="EN").click()
    expect(page).to_have_url(re.compile("lang=en"))


def test_a_page_under_a_path_that_the_app_does_not_know_says_so(browser, site):
    visitor = browser.new_page()
    visitor.route("**/lab/**", lambda route: route.continue_(url=route.request.url.replace("/lab/", "/")))
    visitor.goto(f"{site}lab/?lang=en")
    expect(visitor.locator("#first-screen")).to_contain_text("GRADIO_ROOT_PATH=/lab")
    expect(visitor.locator("#first-screen textarea")).to_be_hidden()
    visitor.close()


def test_a_browser_in_chinese_has_a_first_screen_in_chinese_before_gradio_and_opens_with_poems(browser, site):
    visitor = browser.new_page(locale="zh-CN")
    visitor.route("**/assets/*.js", lambda route: route.abort())
    visitor.goto(site)
    expect(visitor.locator("#first-screen")).to_contain_text("续写")
    expect(visitor.locator("#first-screen")).to_contain_text(EXAMPLES["zh"]["example.verse"])
    places = [visitor.locator(f"#first-screen {each}").bounding_box() for each in (".gb-copy", ".gb-others")]
    visitor.close()
    visitor = browser.new_page(locale="zh-CN")
    visitor.goto(site)
    expect(visitor.locator("#first-screen")).to_have_count(0)
    expect(visitor.locator("#prompt textarea")).to_have_value(re.compile(f"^{EXAMPLES['zh']['example.verse']}"))
    expect(picked(visitor, "model")).to_have_text(re.compile("唐宋诗"))
    assert [visitor.locator(each).bounding_box() for each in ("#prompt .gb-copy", "#bars .gb-others")] == places
    visitor.locator("#write-own").click()  # opens the workbench
    open_more_controls(visitor)
    visitor.locator("#example-title").click()
    expect(visitor.locator("#prompt textarea")).to_have_value(re.compile(r"^《秋夜》\n."))
    visitor.close()


def test_what_is_typed_before_and_while_the_page_takes_over_is_kept_in_order_and_answered(page, site):
    waiting, box, screen = [], page.locator("#prompt textarea"), page.locator("#first-screen")
    page.route("**/first.js", lambda route: waiting.append(route))
    with page.expect_request("**/first.js"):
        page.goto(site, wait_until="commit")
    example, typed = screen.locator("textarea").input_value(), " at"
    page.keyboard.type(typed)  # nothing has the focus
    page.wait_for_function("document.querySelector('#card-write')", polling=100)  # gradio has drawn the page
    waiting[0].continue_()
    while screen.count():
        page.keyboard.press("t")
        typed += "t"
    page.keyboard.press("!")
    expect(box).to_be_focused()
    expect(box).to_have_value(f"{example}{typed}!")
    assert box.evaluate("box => box.selectionStart") == len(f"{example}{typed}!")
    expect(says(page, "bars")).to_contain_text("After “!”")


def word_at(page, text):
    """Return the centre of a word in the box."""
    box = page.locator("#prompt .gb-copy span").filter(has_text=text).first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_page_at_rest_asks_for_no_animation_frames(browser, site):
    page = browser.new_page()
    page.add_init_script("""window.asked = 0;
      const ask = window.requestAnimationFrame;
      window.requestAnimationFrame = (draw) => (window.asked++, ask(draw));""")
    page.goto(site)
    expect(page.locator("#first-screen")).to_have_count(0)
    rests = """async () => {
      for (let frames = 0; frames < 600; frames += 3) {
        const before = window.asked;
        for (let i = 0; i < 3; i++) await new Promise((done) => window.requestAnimationFrame(done));
        if (window.asked === before + 3) return true;
      }
      return false;
    }"""
    assert page.evaluate(rests)
    page.close()


def test_at_the_first_visit_the_text_writes_itself_and_a_key_takes_over_without_being_lost(browser, site):
    visitor = browser.new_page(locale="en-US")
    visitor.route("**/first.js", lambda route: None)  # the page never becomes interactive
    visitor.goto(site, wait_until="commit")
    box = visitor.locator("#first-screen textarea")
    lengths = [len(box.input_value())]
    for _ in range(3):
        longer = "n => document.querySelector('#first-screen textarea').value.length > n"
        visitor.wait_for_function(longer, arg=lengths[-1])
        lengths.append(len(box.input_value()))
    assert lengths == sorted(lengths)
    assert lengths[0] < len("It was raining. Tom was sad because he could not play")
    visitor.keyboard.press("!")
    expect(box).to_have_value("It was raining. Tom was sad because he could not play!")
    visitor.close()


def test_text_is_inserted_between_words_by_click_and_tap_and_in_a_word_that_is_clicked_twice(browser, site):
    visitor = browser.new_page(locale="en-US", has_touch=True, reduced_motion="reduce")
    visitor.goto(site)
    expect(visitor.locator("#first-screen")).to_have_count(0)
    box = visitor.locator("#prompt textarea")
    for press in (visitor.touchscreen.tap, visitor.mouse.click):
        box.fill("Tom was sad because he lost his")
        shown_next(visitor)
        box.blur()
        word = visitor.locator("#prompt .gb-copy span").filter(has_text="his").bounding_box()  # begins with a space
        press(word["x"] + 3, word["y"] + word["height"] / 2)
        visitor.keyboard.type(" all")
        expect(box).to_have_value("Tom was sad because he lost all his")
        shown_next(visitor)
    visitor.mouse.dblclick(*word_at(visitor, "because"))
    visitor.keyboard.type("-")
    expect(box).to_have_value(re.compile("^Tom was sad b[a-z]+-[a-z]+ he lost all his$"))
    shown_next(visitor)
    expect(visitor.locator("#prompt .gb-hidden")).to_have_count(0)
    box.blur()
    word = visitor.locator("#prompt .gb-copy span").filter(has_text="lost").bounding_box()
    at = {"x": word["x"] + word["width"] - 3, "y": word["y"] + word["height"] / 2}
    finger, now = visitor.context.new_cdp_session(visitor), time.time()
    for seconds, touch in ((0, "touchStart"), (0.05, "touchEnd"), (0.15, "touchStart"), (0.2, "touchEnd")):
        points = [at] if touch == "touchStart" else []
        finger.send("Input.dispatchTouchEvent", {"type": touch, "touchPoints": points, "timestamp": now + seconds})
    expect(box).to_be_focused()
    visitor.keyboard.type("!")
    expect(box).to_have_value(re.compile("he lost! all his$"))
    shown_next(visitor)
    expect(visitor.locator("#prompt .gb-hidden")).to_have_count(0)
    visitor.close()


def test_a_word_is_hidden_by_a_click_or_the_keyboard_and_what_is_typed_stays_at_the_end(opened):
    box, hidden = opened.locator("#prompt textarea"), opened.locator("#prompt .gb-hidden")
    box.fill("Tom was sad because he lost his")
    shown_next(opened)
    expect(box).to_have_css("outline-style", "none")  # the caret shows the focus
    expect(opened.locator("#reason")).to_contain_text("main reason")
    assert opened.locator("#prompt path").count() > 1  # arcs to the words that the prediction depends on
    best = opened.locator("#bars [role=option]").first
    first = best.inner_text()
    expect(opened.locator("#bars [role=option]")).to_have_count(20)  # with all controls
    opened.locator("#bars .gb-bars").evaluate("bars => bars.scrollTo(0, 200)")
    opened.mouse.click(*word_at(opened, "lost"))
    expect(hidden).to_have_count(1)
    opened.wait_for_function("document.querySelector('#bars .gb-bars').scrollTop === 0")  # the top token is in view
    expect(opened.locator("#reason")).to_contain_text("Without “lost”")
    expect(best).not_to_have_text(first)
    assert box.evaluate("box => box.selectionStart") == len("Tom was sad because he lost his")
    for word, count in (("sad", 2), ("lost", 1), ("sad", 0)):  # no word twice in a row, which is a double click
        opened.mouse.click(*word_at(opened, word))
        expect(hidden).to_have_count(count)
    expect(opened.locator("#reason")).to_contain_text("main reason")
    opened.locator("#prompt [role=toolbar] [tabindex='0']").focus()
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("Enter")
    expect(opened.locator("#prompt [role=button][aria-pressed=true]")).to_have_accessible_name("Show “was” again")
    opened.locator("#hide-main").click()
    expect(hidden).to_have_count(0)
    opened.locator("#attention-off").click()
    expect(opened.locator("#bars-off [role=listitem]").first).to_be_visible()
    expect(opened.locator("#goes-on-off")).to_contain_text("The model would continue")
    opened.locator("#attention-off").click()
    expect(opened.locator("#bars-off")).to_be_hidden()


def test_numbers_shows_all_digits_and_stays_on_and_a_technical_word_is_explained(page, site):
    open_playground(page, site)
    expect(page.locator("#bars [role=option]").nth(3)).to_contain_text("under 1%")
    show_numbers(page)
    expect(page.locator("#bars [role=option]").nth(3)).to_contain_text(re.compile(r"0\.\d\d%"))
    page.reload()
    expect(page.locator("#bars [role=option]").nth(3)).to_contain_text(re.compile(r"0\.\d\d%"))
    open_tab(page, "why")
    page.locator("dfn:visible", has_text="token").first.hover()
    expect(page.get_by_role("tooltip").filter(has_text="reads as one unit")).to_be_visible()


def test_a_text_is_written_on_and_again_to_the_same_end_for_the_same_seed_and_can_be_stopped(opened):
    generate(opened, "Once upon a time", length=12, seed="3")
    first = text(opened)
    expect(opened.locator(CHIPS)).to_have_count(4 + 12)
    forget_status(opened)
    opened.locator("#again").click()
    written(opened)
    assert text(opened) == first
    forget_status(opened)
    opened.locator("#prompt textarea").press("Control+Enter")
    expect(opened.locator(CHIPS)).to_have_count(4 + 12 + 12)
    written(opened)
    assert text(opened).startswith(first)
    set_run(opened, 200, pace="4")
    forget_status(opened)
    opened.locator("#again").click()
    expect(opened.locator("#status")).to_contain_text("tokens written")
    opened.locator("#full-speed").click()
    expect(opened.locator("#full-speed")).to_be_disabled()
    opened.locator("#stop").dispatch_event("click")  # on a slow machine, generation may have ended already
    expect(opened.locator("#status")).to_contain_text(FINISHED)
    expect(opened.locator("#generate")).to_be_enabled()
    opened.locator("#seed textarea").fill("3 ")  # the server strips it
    opened.locator("#pipeline > summary").click()
    opened.locator("#pipeline-follow input").fill("zzzqqq")
    opened.locator("#pipeline-follow input").press("Enter")
    expect(opened.locator("#pipeline-follow")).not_to_contain_text("zzzqqq")
    expect(opened.locator("#seed textarea")).to_have_value("3 ")


def test_nothing_jumps_while_a_text_is_written(opened):
    generate(opened, "Once upon a time", length=2)
    set_run(opened, 60, pace="16")
    forget_status(opened)
    opened.locator("#prompt textarea").press("Control+Enter")
    expect(opened.locator("#status")).to_contain_text("tokens written")  # the letters have the size of the whole text
    opened.evaluate(WATCH_SHIFTS)
    written(opened)
    assert opened.evaluate("window.shifts.reduce((sum, each) => sum + each, 0)") < 0.02
    assert opened.evaluate("window.moved") == []


def test_the_end_of_a_long_text_is_in_sight_again_after_a_short_one_and_typing_in_the_text_moves_what_follows(opened):
    box, sheet = opened.locator("#prompt textarea"), opened.locator(".gb-composer").first
    long = "\n".join(["A line of the text."] * 12)
    box.fill(long)
    sheet.evaluate("sheet => sheet.scrollTo(0, 0)")
    for text_typed in ("One", long):
        box.fill(text_typed)
    opened.wait_for_function("sheet => sheet.scrollTop > 0", arg=sheet.element_handle())
    before = sheet.evaluate("sheet => sheet.scrollTop")
    box.evaluate(f"box => box.setSelectionRange({len(long) - 25}, {len(long) - 25})")
    box.press("Enter")
    assert sheet.evaluate("sheet => sheet.scrollTop") == before


@contextmanager
def busy_server() -> Iterator[None]:
    """Prevent frames from being drawn inside the block."""
    draw, free = Renderer.frame, Event()

    def frame(*arguments: Any) -> str | None:
        free.wait(timeout=60)
        return draw(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Renderer, "frame", frame)
        try:
            yield
        finally:
            free.set()


def test_of_two_quick_actions_none_is_lost_while_the_server_is_busy_with_the_first(opened: Page) -> None:
    open_tab(opened, "change")
    lead, heads = opened.locator("#change-lead"), opened.locator("#change-switches .gb-switch-head")
    expect(lead).to_contain_text("No changes yet")
    with busy_server():
        heads.nth(1).click()
        heads.nth(2).click()
    expect(lead).to_contain_text("layer 0, head 1 off; layer 0, head 2 off")
    opened.locator("#change-reset").click()
    open_tab(opened, "playground")
