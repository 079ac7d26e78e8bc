"""The page's limits, per visitor and in total: constants for the code, and `TABLE` for docs/hosting.md."""

from __future__ import annotations

from dataclasses import dataclass

from gpt.experiments.random_models import MAX_MEMORY_BYTES
from gpt.inference.admission import TURN_TOKENS
from gpt.inference.engine import MAX_TEXTS
from gpt.models.memory import format_bytes
from gpt.training.live_run import TIME_LIMIT_SECONDS
from gpt.training.run_queue import MAX_WAITING, MAX_WAITING_OF_OWNER

IDLE_SECONDS = 30 * 60.0  # idle time after which a session ends; the browser can restore the text
MAX_SESSIONS = 2_000
MAX_SESSION_BYTES = 2**31  # total for all sessions
MAX_ARCHIVED_BYTES = 1_000_000  # replaced documents kept for undo, as JSON: 100 of 150 tokens

MAX_CONCURRENT_EVENTS = 96  # per queue
MAX_MODEL_EVENTS = 256  # events that run a model: they wait in its admission queue, which reports their position
MAX_WAITING_EVENTS = 256  # gradio rejects further events
MAX_CONCURRENT_ANALYSES = 8  # each takes up to 100 MB while it runs
MAX_CONCURRENT_EXPERIMENTS = 1
MAX_UNREAD_ANSWERS = 100  # answers to calls that no client has fetched
UNREAD_SECONDS = 300.0  # age at which they are deleted
MAX_AGENT_CALLS = 24  # simultaneous MCP calls; each occupies one of the 40 threads that also send files

MAX_CHARACTERS = 100_000  # of a text
MAX_SCORED_TOKENS = 4096  # of a text whose loss is measured
MAX_ATTENTION_TOKENS = 512  # of a text whose attention weights, tokens by tokens, an endpoint returns
MAX_PATCHED_TOKENS = 64  # per text; a sweep runs one forward pass per layer and position
MAX_LENGTH = 1024  # maximum number of new tokens, for any model
MAX_VISITOR_BYTES = 2**29  # a visitor's queries, keys and values; command-line default
MAX_TRAINED_MODELS = 4  # models trained by one visitor that are still loaded

MAX_BODY_BYTES = 16_000_000  # size of one request
MAX_UPLOAD_BYTES = 16_000_000  # size of one upload request on a public page
MAX_UPLOADED_BYTES = 64_000_000  # total size of the files that visitors have uploaded to a public page
UPLOAD_SECONDS = 3600  # age at which uploaded files are deleted
MAX_TRACE_BYTES = 2**26  # size of one saved file of activations
MAX_SHORT_LINKS = 1_000  # each of up to 16,000 characters
MAX_FOLLOWERS = 60  # followers of one teacher's page
MAX_CLASSES = 8  # pages being followed
MAX_FILE_BYTES = 2**29  # total for all saved files


@dataclass(frozen=True)
class Limit:
    """A table row: the limit per visitor, the total limit, and what happens when it is reached."""

    what: str
    visitor: str
    total: str
    reached: str


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:g} MB"


TABLE = (
    Limit(
        "sessions",
        f"{IDLE_SECONDS / 60:g} minutes without an event",
        f"{MAX_SESSIONS:,}, and {format_bytes(MAX_SESSION_BYTES)}",
        "the session that has been idle longest is closed; its page restores the text",
    ),
    Limit(
        "texts being generated",
        "1",
        f"{MAX_TEXTS} per model",
        f"texts take turns of {TURN_TOKENS} tokens; waiting visitors see their position in the queue",
    ),
    Limit(
        "tokens of a text",
        f"{MAX_SCORED_TOKENS:,} for the loss, {MAX_ATTENTION_TOKENS} for `/attention`, {MAX_PATCHED_TOKENS} to patch",
        "",
        "the text is refused",
    ),
    Limit("new tokens per text", f"{MAX_LENGTH:,}", "", "the text ends"),
    Limit("replaced texts kept for undo", _megabytes(MAX_ARCHIVED_BYTES), "", "the oldest are deleted"),
    Limit(
        "events",
        "",
        f"{MAX_CONCURRENT_EVENTS} per queue at once, {MAX_MODEL_EVENTS} that run a model, {MAX_WAITING_EVENTS} waiting",
        "the event waits; when the queue is full, it is refused",
    ),
    Limit("analyses", "1", f"{MAX_CONCURRENT_ANALYSES} at once", "the analysis waits"),
    Limit("timed experiments", "", f"{MAX_CONCURRENT_EXPERIMENTS} at once", "the experiment waits"),
    Limit("memory for looking inside a model", format_bytes(MAX_VISITOR_BYTES), "", "only the beginning is shown"),
    Limit("memory of a model built in Shapes", format_bytes(MAX_MEMORY_BYTES), "", "the model is refused"),
    Limit(
        "training runs",
        f"1 of {TIME_LIMIT_SECONDS / 60:g} minutes",
        f"one per two cores, {MAX_WAITING} waiting, {MAX_WAITING_OF_OWNER} per address",
        "the run waits, and shorter ones go first; if too many wait, it is refused",
    ),
    Limit("open trained models", f"{MAX_TRAINED_MODELS}", "", "the oldest is closed"),
    Limit(
        "models from the hub on a public page",
        "",
        "those on the server or listed with `--allow`",
        "the model is refused with a list of those available",
    ),
    Limit("MCP calls", "", f"{MAX_AGENT_CALLS} at once", "the call waits"),
    Limit(
        "answers that no client has fetched",
        f"{UNREAD_SECONDS / 60:g} minutes",
        f"{MAX_UNREAD_ANSWERS}",
        "the oldest is deleted",
    ),
    Limit("size of a call", _megabytes(MAX_BODY_BYTES), "", "status 413"),
    Limit(
        "uploads to a public page",
        _megabytes(MAX_UPLOAD_BYTES),
        f"{_megabytes(MAX_UPLOADED_BYTES)}, {UPLOAD_SECONDS // 3600} hour",
        "status 413; the oldest is deleted",
    ),
    Limit(
        "saved files",
        "one of each kind, until it is downloaded",
        format_bytes(MAX_FILE_BYTES),
        "the oldest is deleted",
    ),
    Limit("short links", "", f"{MAX_SHORT_LINKS:,}, until the server stops", "the oldest is deleted"),
    Limit(
        "pages that follow another page",
        f"{MAX_FOLLOWERS}",
        f"{MAX_CLASSES} pages are followed at once",
        "the page is refused",
    ),
)


def markdown() -> str:
    """Return the table in Markdown, as printed in docs/hosting.md."""
    head = ("| Limit | Per visitor | In total | When it is reached |", "|---|---|---|---|")
    return "\n".join((*head, *(f"| {row.what} | {row.visitor} | {row.total} | {row.reached} |" for row in TABLE)))
