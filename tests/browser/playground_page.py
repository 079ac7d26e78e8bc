"""Common steps of the browser tests for Write."""

import re

from playwright.sync_api import expect

from components.i18n import t
from components.page import INNER
from tests.components.drawing import spoken_in

CHIPS = "#strip .gb-strip [role=option]"
FINISHED = re.compile("length reached|ended the text|context is full|stopped")
# Controls and words in the first view, except the text itself and what is scrolled out of a list.
FIRST_VIEW = r"""() => {
  const hidden = "[aria-hidden=true], .gb-skip, #prompt, #bars [role=listbox], script, style";
  const isSeen = (node) => {
    const { width, height, top, bottom } = node.getBoundingClientRect();
    const isShown = node.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    const list = node.closest("[role=listbox]")?.getBoundingClientRect() ?? { top: 0, bottom: innerHeight };
    const isInView = bottom > Math.max(list.top, 0) && top < Math.min(list.bottom, innerHeight) - 1;
    return isShown && width > 1 && height > 1 && isInView && !node.closest(hidden);
  };
  const kinds = "button, input:not([type=radio]), .gb-frame label, select, summary, a[href], [role=tab]";
  const controls = [...document.querySelectorAll(kinds)].filter(isSeen);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const words = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (isSeen(node.parentElement)) words.push(...node.textContent.split(/\s+/).filter(Boolean));
  }
  return [controls.map((node) => node.id || node.ariaLabel || node.textContent.trim()), words];
}"""


def open_playground(page, address):
    page.goto(address)
    expect(page.locator("#bars [role=option]").first).to_be_visible()
    expect(page.locator("#first-screen")).to_have_count(0)
    open_strip(page)


def open_more_controls(page):
    """Show the controls that are closed at first, unless a link has opened them."""
    closed = page.locator("#more-controls", has_text=re.compile("^(More controls|更多控件)$"))
    expect(closed.or_(page.locator("#heatmap .main-svg")).first).to_be_visible()
    if closed.is_visible():
        closed.click()
    expect(page.locator("#heatmap .main-svg").first).to_be_visible()


def open_strip(page):
    """Unfold the token-by-token view of the text."""
    open_more_controls(page)
    if not page.locator("#strip").is_visible():
        page.locator("#token-by-token > summary").click()


def tab(page, name):
    return page.get_by_role("tab", name=name, exact=True)


def show_step(page, name):
    """Choose how much of the machine is shown."""
    page.locator("#inside-step").get_by_role("radio", name=name, exact=True).check()


def open_tab(page, id, language="en"):
    """Open a tab, first opening the one that contains it."""
    for outer in (outer for outer, ids in INNER.items() if id in ids):
        open_tab(page, outer, language)
    expect(page.locator("#first-screen")).to_have_count(0)  # it covers the page until it is removed
    name = spoken_in(language, t, f"tab.{id}")
    if tab(page, name).is_visible():
        tab(page, name).click()
    else:  # on a phone it may be in the overflow menu of its row
        hidden = page.locator(".overflow-dropdown").get_by_text(name, exact=True)
        menu = page.locator("#tabs .overflow-menu:visible").filter(has=hidden)
        menu.locator("> button").click()
        menu.get_by_text(name, exact=True).click()


def open_more(page):
    """Open the page's menu with numbers, link and theme."""
    if not page.locator("#theme").is_visible():
        page.locator("#more > summary").click()
    expect(page.locator("#theme")).to_be_visible()


def close_more(page):
    """Close the menu by clicking next to it."""
    page.locator(".gb-page-title h1").click()
    expect(page.locator("#theme")).to_be_hidden()


def switch_theme(page):
    open_more(page)
    page.locator("#theme").click()
    close_more(page)


def show_numbers(page, shown=True):
    """Show or hide all digits, seeds, ids and speeds."""
    open_more(page)
    page.locator("#numbers input").set_checked(shown)
    close_more(page)
    expect(page.locator("body[data-numbers]")).to_have_count(int(shown))


def set_slider(page, name, value):
    page.locator(f"#{name} input[type=range]").fill(str(value))


def pick(page, elem_id, option):
    options = page.locator(f"#{elem_id} option")
    label = options.filter(has_text=option).first.inner_text() if isinstance(option, re.Pattern) else option
    page.locator(f"#{elem_id} select").select_option(label=label)


def picked(page, elem_id):
    """Return the locator of the chosen entry of a list."""
    return page.locator(f"#{elem_id} option:checked")


def set_run(page, length, seed="3", pace="full speed"):
    """Set the settings of a run; the previous test may have changed them."""
    set_slider(page, "length", length)
    page.locator("#seed textarea").fill(seed)
    pick(page, "pace", pace)


def says(page, elem_id):
    return page.locator(f"#{elem_id} .gb-says")


def forget_status(page):
    """Clear the status, so that the next one is certainly new. The page would redraw its stored one."""
    page.locator("#status p").evaluate(
        """async (line) => {
          const { modules } = await import(document.querySelector('script[src$="first.js"]').src);
          const { store } = modules["widgets/runtime.js"];
          store.view("status").text = line.textContent = "";
        }"""
    )


def written(page):
    """Wait until generation has ended and the buttons are back."""
    expect(page.locator("#status")).to_contain_text(FINISHED)
    expect(page.locator("#generate")).to_be_enabled()
    expect(page.locator("#stop")).to_be_disabled()


def generate(page, prompt, length=12, seed="3", pace="full speed"):
    page.locator("#clear").click()
    expect(page.locator("#prompt textarea")).to_have_value("")
    page.locator("#prompt textarea").fill(prompt)
    set_run(page, length, seed, pace)
    forget_status(page)
    page.locator("#generate").click()
    written(page)


def text(page):
    return "".join(page.locator(CHIPS).all_text_contents())


def shown_next(page):
    """Return the sentence and the bars of the next token once they belong to the text in the box."""
    expect(page.locator("body")).not_to_have_class(re.compile("gb-stale"))
    return says(page, "bars").text_content(), page.locator("#bars [role=option]").all_text_contents()
