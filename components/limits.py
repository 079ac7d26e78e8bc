"""The page's limits, per visitor and in total; docs/hosting.md lists them."""

from __future__ import annotations

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
