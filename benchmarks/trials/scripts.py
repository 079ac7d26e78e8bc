"""Enter texts that would run as scripts if the page inserted them as HTML, wherever the page displays its input."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.trials.app_process import SECONDS, Result, running_app
from tests.browser.playground_page import open_strip, open_tab

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
TEXTS = (
    "<script>ran()</script>",
    "<ScRiPt>ran()</sCrIpT>",
    "<script src=data:text/javascript,ran()></script>",
    "</script><script>ran()</script>",
    "</textarea><script>ran()</script>",
    "</title><script>ran()</script>",
    "</style><script>ran()</script>",
    "<!--><script>ran()</script>-->",
    "<img src=x onerror=ran()>",
    "<IMG SRC=x ONERROR=ran()>",
    '"><img src=x onerror=ran()>',
    "'><img src=x onerror=ran()>",
    "<img/src=x/onerror=ran()>",
    "<img src=x onerror=ran()//",
    "<<img src=x onerror=ran()>>",
    "&lt;img src=x onerror=ran()&gt;",
    "&#60;img src=x onerror=ran()&#62;",
    "%3Cimg%20src=x%20onerror=ran()%3E",
    "\\u003cimg src=x onerror=ran()\\u003e",
    "<svg onload=ran()>",
    "<svg/onload=ran()>",
    "<svg><script>ran()</script></svg>",
    "<svg><animate onbegin=ran() attributeName=x dur=1s>",
    "<math><mtext><img src=x onerror=ran()></mtext></math>",
    "<body onload=ran()>",
    "<iframe srcdoc='<script>parent.ran()</script>'></iframe>",
    "<iframe src=javascript:parent.ran()></iframe>",
    "<object data=javascript:ran()></object>",
    "<embed src=javascript:ran()>",
    "<video><source onerror=ran()></video>",
    "<audio src=x onerror=ran()></audio>",
    "<details open ontoggle=ran()>",
    "<input autofocus onfocus=ran()>",
    "<style>@keyframes a{}</style><b style=animation-name:a onanimationstart=ran()>",
    "<a href=javascript:ran() id=click>x</a>",
    "<template><img src=x onerror=ran()></template>",
    "[x](javascript:ran()) ![x](x onerror=ran())",
    "${ran()} {{ran()}} {{constructor.constructor('ran()')()}}",
    "<noscript><p title='</noscript><img src=x onerror=ran()>'>",
    "<xmp><p title='</xmp><img src=x onerror=ran()>'>",
)
INIT = "window.n_ran = 0; window.ran = () => { window.n_ran += 1; };"


def scripts(scale: float = 1.0) -> Result:
    """Enter 40 texts wherever the page displays its input, and check that none runs as a script."""
    texts, failures, passed = TEXTS[:: max(1, round(1 / scale))], list[str](), list[int]()
    with running_app("--no-mcp") as app, sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        chromium = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)))
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        expect.set_options(timeout=SECONDS * 1000)
        for text in texts:
            page = browser.new_page()  # a new visitor
            page.set_default_timeout(SECONDS * 1000)
            page.add_init_script(INIT)
            for door in (by_link, by_typing, by_loss, by_compare, by_file):
                door(page, app.url, text, Path(folder))
                passed.append(1)
                if page.evaluate(RAN):
                    failures.append(f"{text} ran {door.__name__.replace('_', ' ')}")
                    break
            page.close()
        browser.close()
    said = f"{len(passed)} visits through link, text box, loss, comparison, model and file; {len(failures)} scripts ran"
    return Result("texts containing scripts", len(texts), tuple(failures), said)


RAN = """async () => {
  await fetch(location.href);  // requests of images have been answered by now
  await new Promise(requestAnimationFrame);
  return window.n_ran || document.querySelectorAll("img[src='x']").length;
}"""


def by_link(page: Page, url: str, text: str, folder: Path) -> None:
    """Put the text into the prompt, model and layer of a link."""
    asked = quote(text, safe="")
    page.goto(f"{url}?prompt={asked}&model={asked}&layer={asked}&seed=1&length=2&text=2&temperature=0")
    expect(page.locator("#notice")).to_contain_text("model")
    open_strip(page)
    expect(page.locator("#strip .gb-strip")).to_contain_text(text)
    expect(page.locator("#generate")).to_be_enabled()


def by_typing(page: Page, url: str, text: str, folder: Path) -> None:
    """Type the text into the prompt, which updates the tokens, bars and heatmap."""
    page.locator("#prompt textarea").fill(f"typed {text}")
    expect(page.locator("#strip .gb-strip")).to_contain_text(f"typed {text}")


def by_loss(page: Page, url: str, text: str, folder: Path) -> None:
    """Type the text into the Loss tab."""
    page.get_by_role("tab", name="Lab", exact=True).click()
    page.get_by_role("tab", name="Loss", exact=True).click()
    expect(page.locator("#loss-strip .gb-strip")).to_contain_text("Once")  # the tab opens with an example
    page.locator("#loss-text textarea").fill(text)
    page.locator("#loss-text textarea").press("Control+Enter")
    expect(page.locator("#loss-strip .gb-strip")).to_contain_text(text)


def by_compare(page: Page, url: str, text: str, folder: Path) -> None:
    """Type the text into the comparison's two prompts."""
    page.get_by_role("tab", name="Compare", exact=True).click()
    page.locator("#compare-length input[type=number]").fill("2")
    page.locator("#compare-prompt textarea").fill(text)
    page.locator("#compare-start").click()
    for side in ("left", "right"):
        expect(page.locator(f"#compare-{side}-strip .gb-strip")).to_contain_text(text)


def by_file(page: Page, url: str, text: str, folder: Path) -> None:
    """Open a document that names the text as its model."""
    (folder / "a.json").write_text(json.dumps({"format": text, "model": text, "tokens": [text]}), encoding="utf-8")
    open_tab(page, "playground")
    page.locator("#share-files input[type=file]").set_input_files(folder / "a.json")
    expect(page.locator("#share-files .gb-share-says")).not_to_be_empty()
