#!/usr/bin/env bash
# gradio 6.31.0 on Linux: a page of one Markdown, launched, with no visitor.
# Expected: the server sleeps, as uvicorn without an application does (under 1 % of a processor core).
# Seen: 8 % of a core for as long as it runs, because the queue looks for events 1,000 times a second and for progress 100
# times (both intervals are attributes of the queue without a documented option). With 20 and 100 ms instead, 1.5 %.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet gradio==6.31.0
cd "$folder"
GRADIO_ANALYTICS_ENABLED=False "$folder/env/bin/python" - <<'PYTHON'
import os
import time

import gradio as gr

with gr.Blocks() as page:
    gr.Markdown("hello")
page.launch(prevent_thread_lock=True, quiet=True)
time.sleep(5)


def seconds() -> float:
    used = os.times()
    return used.user + used.system


def share_of_core() -> float:
    before = seconds()
    time.sleep(10)
    return (seconds() - before) / 10


queue = page._queue
assert (queue.sleep_when_free, queue.progress_update_sleep_when_free) == (0.001, 0.01)
default = share_of_core()
queue.sleep_when_free, queue.progress_update_sleep_when_free = 0.02, 0.1
slower = share_of_core()
print(f"idle: {default:.1%} of a core; with longer intervals: {slower:.1%}")
assert default > 0.02
assert slower < default / 2
page.close()
PYTHON
