"""Measure what a written token costs the page and the server, and compare with an earlier commit.

    python -m benchmarks.page [--against COMMIT] [--rounds 5] [--tokens 60]

Starts the app from this checkout and from the commit, each in a process of its own, and a headless Chromium at 1280 x
800. The commit's app does without the web server's faster loop and parser if it did not require them. In turns, each
writes a text at its default pace on the default tab. Prints the medians of the time for which the page's main thread is
busy and of the server's processor time, per token, and their ratios.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks.decode import cpu_name

ROOT = Path(__file__).parent.parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
FASTER = ("uvloop", "httptools")  # packages that uvicorn uses if they can be imported
WARM_UP = 8  # tokens that are not measured
SEEN = "localStorage.setItem('glassbox-seen', '1')"  # the workbench, not a new visitor's first screen
ENDED = "!document.querySelector('#stop').checkVisibility()"  # the model may end the text first
WRITTEN = "document.querySelectorAll('#prompt .gb-copy .gb-written').length"


def hide_packages(folder: Path) -> None:
    """Make those of FASTER that a checkout does not require impossible to import there."""
    required = (folder / "requirements.txt").read_text(encoding="utf-8")
    for name in FASTER:
        if name not in required:
            (folder / f"{name}.py").write_text("raise ImportError\n", encoding="utf-8")


def serve(folder: str, stack: ExitStack) -> tuple[int, str]:
    """Start the app of a checkout; return its process id and address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "app.py", "--no-mcp", "--port", str(port)]
    app = stack.enter_context(subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL))
    stack.callback(app.terminate)
    url = f"http://127.0.0.1:{port}/"
    for _ in range(240):
        try:
            urllib.request.urlopen(url).close()
            return app.pid, url
        except OSError:
            time.sleep(0.5)
    raise SystemExit(f"the app in {folder} does not start")


def processor_ms(pid: int) -> float:
    """Return a process's processor time in ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy_ms(client: CDPSession) -> float:
    """Return the total time for which the page's main thread has been busy, in ms."""
    metrics = client.send("Performance.getMetrics")["metrics"]
    return 1000 * next(each["value"] for each in metrics if each["name"] == "TaskDuration")


def write(browser: Browser, pid: int, url: str, tokens: int) -> tuple[float, float]:
    """Return the page's busy time and the server's processor time per token, in ms."""
    with browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-US") as context:
        context.add_init_script(SEEN)
        page: Page = context.new_page()
        client = context.new_cdp_session(page)
        client.send("Performance.enable")
        page.goto(url)
        page.locator("#first-screen").wait_for(state="detached")
        page.wait_for_timeout(3000)  # let the page finish loading
        page.locator("#generate").click()
        page.wait_for_function(f"{WRITTEN} >= {WARM_UP}")
        count, busy, used = page.evaluate(WRITTEN), busy_ms(client), processor_ms(pid)
        page.wait_for_function(f"{WRITTEN} >= {WARM_UP + tokens} || {ENDED}", polling=200)
        n = page.evaluate(WRITTEN) - count
        return (busy_ms(client) - busy) / n, (processor_ms(pid) - used) / n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", metavar="COMMIT")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=60)
    args = parser.parse_args()
    with ExitStack() as stack:
        folders = {"this checkout": str(ROOT)}
        if args.against:
            folders[args.against] = stack.enter_context(tempfile.TemporaryDirectory())
            archive = subprocess.run(["git", "archive", args.against], cwd=ROOT, capture_output=True, check=True).stdout
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                tar.extractall(folders[args.against], filter="data")
            hide_packages(Path(folders[args.against]))
        apps = {name: serve(folder, stack) for name, folder in folders.items()}
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        costs: dict[str, list[tuple[float, float]]] = {name: [] for name in apps}
        for _ in range(args.rounds):
            for name, app in apps.items():
                costs[name].append(write(browser, *app, args.tokens))
        browser.close()
    print(f"{cpu_name()}; system load {os.getloadavg()[0]:.1f}")
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in costs.items()}
    for name, (page_ms, server_ms) in medians.items():
        print(f"{name}: {page_ms:.1f} ms of the page's main thread and {server_ms:.1f} ms of the server per token")
    if args.against:
        ours, theirs = medians["this checkout"], medians[args.against]
        print(f"ratios: page {ours[0] / theirs[0]:.2f}, server {ours[1] / theirs[1]:.2f}")


if __name__ == "__main__":
    main()
