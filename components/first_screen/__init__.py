"""The first screen as plain HTML, shown until gradio's scripts have drawn the page.

On the first visit, the example writes itself word by word. first_screen.js chooses language and theme, and removes the
screen once the page shows the same text; anything typed until then moves to the page.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import torch
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from components.concepts import has_desk
from components.i18n import LANGUAGES, Language, speaking, t
from components.labels import bar_label, marked, percent
from components.state.session import Session
from components.state.settings import LIMITS
from components.state.snapshot import Snapshot
from components.state.typed_text import shown_tokens, words_of
from components.tabs.playground.box import box
from components.tabs.playground.prediction import asked, bars, hide_label, why
from components.text_views import model_choices
from gpt.analysis.tracing import to_float32

MAX_BARS = 5  # maximum number of visible bars
MAX_WRITTEN = 40  # maximum tokens in a text that writes itself
MIN_ARC_SHARE = 0.05  # smallest drop in probability that an arc shows, as a fraction
COMPRESSION = 5
SCREEN = "first_screen"  # attribute of gr.Blocks with the screen's HTML


def first_screen(openings: Mapping[Language, Session], tabs: Sequence[str]) -> str:
    """Return the first screen's HTML. openings: the initial session for each language; tabs: ids of the tabs."""
    screens = []
    for language, session in openings.items():
        opened = session.copy()
        opened.language = language
        with speaking(language, exact=False):
            screens.append(f'<template data-language="{language}">{_screen(opened.snapshot(), tabs)}</template>')
    files = (Path(__file__).with_name(f"first_screen.{kind}") for kind in ("css", "js"))
    style, script = (file.read_text(encoding="utf-8") for file in files)
    return f'<div id="first-screen"><style>{style}</style>{"".join(screens)}<script>{script}</script></div>'


@torch.inference_mode()
def writing_steps(s: Snapshot) -> list[dict[str, Any]]:
    """Return the data shown after each word but the last while the text writes itself.

    n: number of characters so far. at: position of the next token. bars: (token, probability) for the likeliest tokens.
    arc: (position, share) of the word whose removal lowers the top token's probability most.
    """
    if s.text is None or len(s.text.ids) > MAX_WRITTEN:
        return []
    ids, tokenizer, model = s.text.ids, s.text.tokenizer, s.text.loaded.model
    pieces, words, steps = shown_tokens(tokenizer, ids), words_of(tokenizer, ids), []
    # No token sees a later one, so the states of the text without a word include those of its beginnings without it.
    rests = [[*ids[: word.start], *ids[word.stop :], *[0] * len(word)] for word in words]
    without = model.hidden_states(torch.tensor(rests, device=model.device))  # (words, T, C), padded at the end
    for number, word in enumerate(words[:-1]):
        seen = ids[: word.stop]
        final = s.stages(s.text.document.logits(word.stop - 1), seen).final
        best = final.topk(min(MAX_BARS, len(final)))
        token, p = int(best.indices[0]), float(best.values[0])
        ends = [word.stop - len(left_out) - 1 for left_out in words[:number]]
        logits = to_float32(model.logits(without[range(number), ends]))
        shares = [1 - s.stages(each, seen).final[token].item() / p for each in logits]
        share, start = max(zip(shares, (each.start for each in words), strict=False), default=(0.0, 0))
        labels = [bar_label(tokenizer, i) for i in best.indices.tolist()]
        steps.append(
            {
                "n": sum(map(len, pieces[: word.stop])),
                "at": word.stop,
                "bars": [*zip(labels, best.values.tolist(), strict=True)],
                "arc": (start, round(share, 3)) if share > MIN_ARC_SHARE else None,
            }
        )
    return steps


class FirstScreen:
    """ASGI middleware that inserts the first screen into the page.

    head: HTML for the page's head; gradio would insert it only after its scripts have run.
    """

    def __init__(self, app: ASGIApp, head: str) -> None:
        self.app, self.head = app, head

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"].rstrip("/"):
            await self.app(scope, receive, send)
            return
        first: list[Message] = []
        body = bytearray()

        async def collect(message: Message) -> None:
            if message["type"] == "http.response.start":
                first.append(message)
                return
            body.extend(message.get("body", b""))
            if message.get("more_body", False):
                return
            headers, page = MutableHeaders(raw=first[0]["headers"]), bytes(body)
            if headers.get("content-type", "").startswith("text/html"):
                html: str = vars(scope["app"].get_blocks()).get(SCREEN, "")
                page = page.replace(b"</head>", f"{self.head}</head>".encode(), 1)
                page = re.sub(rb"<body[^>]*>", lambda tag: tag[0] + html.encode(), page, count=1)
                headers.add_vary_header("Accept-Encoding")
                if "gzip" in Headers(scope=scope).get("accept-encoding", ""):
                    page = gzip.compress(page, COMPRESSION)
                    headers["Content-Encoding"] = "gzip"
                headers["Content-Length"] = str(len(page))
            await send(first[0])
            await send({"type": "http.response.body", "body": page})

        await self.app(scope, receive, collect)


def _screen(s: Snapshot, tabs: Sequence[str]) -> str:
    moved = escape(t("status.moved", path="{path}"))
    waiting = f'<p class="first-waiting" data-moved="{moved}">{_text("status.page")}</p>'
    desk = f'<div class="first-card first-desk"><h2>{_text("concepts.question")}</h2></div>' if has_desk(s) else ""
    content = f'<div class="first-content">{_card(s)}{desk}</div>'
    steps = escape(json.dumps(writing_steps(s), ensure_ascii=False), quote=False).replace("'", "&#39;")
    return f"<div class=\"first-page\" data-steps='{steps}'>{_frame(s, tabs)}{waiting}{content}</div>"


def _frame(s: Snapshot, tabs: Sequence[str]) -> str:
    model = next(label for label, name in model_choices() if name == s.model)
    languages = (f"<span{' class=on' if key == s.language else ''}>{name}</span>" for key, name in LANGUAGES.items())
    row = (f"<span>{escape(t(f'tab.{tab}'))}</span>" for tab in tabs)
    return (
        f'<div class="first-frame"><div><h1 class="gb-mark">{_text("page.title")}</h1></div>'
        f'<div class="first-tabs">{"".join(row)}</div>'
        f'<span class="first-model"><span>{escape(model)}</span></span>'
        f'<span class="first-languages">{"".join(languages)}</span>'
        f'<span class="first-more">{_text("page.more")}</span></div>'
    )


def _card(s: Snapshot) -> str:
    text, predicted = box(s), bars(s)
    temperature, high = s.settings.temperature, LIMITS["temperature"].high
    lines = [json.loads(line) for line in text["lines"]]
    typed = escape("".join(word for word, *_ in lines))
    tokens = "".join(_token(word, written) for word, written, *_ in lines)
    rows = "".join(_bar(*bar[:3]) for bar in predicted["bars"][:MAX_BARS])
    return (
        f'<div class="first-card"><p class="first-question">{escape(asked(s))}</p>'
        f'<p class="first-reason">{escape(why(s))}</p>'
        f'<div class="gb-composer" data-size="line"><div class="gb-sheet"><div class="gb-copy">{tokens}'
        f'<span class="gb-ghost">{escape(marked(text["ghost"]))}</span></div><svg aria-hidden="true"></svg>'
        f'<textarea spellcheck="false" aria-label="{_text("prompt.text")}">\n{typed}</textarea></div></div>'
        f'<p class="first-status">{_text("prompt.hint")}</p>'
        '<div class="first-next"><figure class="gb-predictions">'
        f"<figcaption><h2>{escape(predicted['title'])}</h2>"
        f'<p class="gb-says" data-same="#bars .gb-says">{escape(predicted["text"])}</p></figcaption>'
        f'<div class="gb-bars">{rows}</div><p class="gb-others">{escape(predicted["others"])}</p></figure></div>'
        f'{_button(hide_label(s), "first-hide")}<div class="first-buttons">'
        '<span class="first-run"><span class="first-button first-primary" '
        f'data-same="#generate">{_text("generate")}</span></span>'
        f'<span class="first-slider">{_text("temperature")}<i style="--at:{temperature / high:.0%}"></i>'
        f"</span>{_button(t('controls.more'), 'first-controls')}{_button(t('film.open'), 'first-film')}"
        f"{_button(t('hero.write'), 'first-own')}</div></div>"
    )


def _button(label: str, classes: str) -> str:
    return f'<span class="first-button {classes}">{escape(label)}</span>'


def _token(text: str, written: float | None) -> str:
    name = "" if written is None else "gb-written"
    return f'<span class="{name}" style="--p:{written or 0}">{escape(text)}</span>'


def _bar(token: str, before: float, after: float) -> str:
    return (
        f'<div role="option" style="--before:{before:.4f};--after:{after:.4f}"><code>{escape(token)}</code>'
        '<span class="gb-track"><span><i class="gb-before"></i><i class="gb-after"></i></span>'
        f"<b>{percent(after)}</b></span></div>"
    )


def _text(key: str) -> str:
    return escape(t(key))
