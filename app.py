"""Glassbox GPT in the browser: python app.py [--host HOST] [--port PORT] [--model NAME] [--share] [--cluster WHERE]"""

from __future__ import annotations

import argparse
import atexit
import gc
import logging
import os
import runpy
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
# Without this, gradio builds a table of the last 10,000 events after every event, for a dashboard that is disabled.
os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "1")
os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", str(10**9))
# oneDNN caches a compiled matrix product (0.1 MB) per shape, by default for the last 1,024 shapes.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
# OpenMP's threads wait for one another in a loop, by default for about a millisecond. If other work occupies a core,
# the loop runs instead of the thread that is waited for. With a shorter one, four texts of GPT-2 are 1.5 times as fast.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

FINISH_SECONDS = 8.0  # time after SIGTERM for texts to finish; any still running then stop before their next token
CLUSTER_SECONDS = 90.0  # longest wait for a cluster at startup
SEND_SECONDS = 0.5  # time to send a text's last updates
CLOSE_SECONDS = 1  # time for connections to close
TRIM_SECONDS = 30.0  # interval for returning memory freed by texts and analyses to the operating system
# Commands other than the page and the course. Run as `python -m gpt.training`, or `glassbox training` once installed.
COMMANDS = ("gpt.training", "gpt.models.checkpoints")
_log = logging.getLogger("app")


def main() -> int:
    """Start the page and serve it until interrupted or terminated.

    Returns:
        The exit status: 1, with a message, if the page cannot start.
    """
    if sys.argv[1:2] == ["course"]:
        from gpt.course.command_line import main as run_course

        write_books: Callable[[Path], list[Path]] | None = None
        if find_spec("gradio") is not None:
            from components import book

            write_books = book.write_books
        return run_course(sys.argv[2:], f"{Path(sys.argv[0]).name} course", write_books)
    for module in COMMANDS:
        if sys.argv[1:2] == [module.partition(".")[2]]:
            del sys.argv[1]
            runpy.run_module(module, run_name="__main__")
            return 0
    arguments = parse_arguments()
    if arguments.version:
        from gpt import __version__

        print(f"Glassbox GPT {__version__}")
        return 0
    if find_spec("gradio") is None:
        print("The page needs gradio and other packages: pip install 'glassbox-gpt[app]'", file=sys.stderr)
        return 1
    gc.disable()  # startup produces no garbage, but collection took a quarter of its time
    if not arguments.mcp:
        sys.modules["mcp"] = None  # type: ignore[assignment]  # gradio would import it, which takes 0.4 s
    # These imports take seconds, so the command line is checked first.
    from components.frame import error_of, precision_sentence
    from components.monitoring import start_logging
    from components.page import build_app, launch_options, public_name
    from gpt.models.memory import limit_arenas
    from gpt.models.registry import configure, get_model, trim_models
    from gpt.models.sources import DEFAULT_MODEL, MODELS

    limit_arenas()
    try:
        check_address(arguments.host)
        if arguments.log or is_public(arguments):
            start_logging()
        configure(
            memory=None if arguments.memory is None else int(arguments.memory * 1e9),
            precision=arguments.precision,
            context=arguments.context,
            downloads=arguments.allow if is_public(arguments) else MODELS,
            cluster=connect(arguments.cluster, arguments.replicas) if arguments.cluster else None,
        )
        model = arguments.model or DEFAULT_MODEL
        options: dict[str, Any] = {"uploads": not is_public(arguments)}
        options["classes"] = arguments.classes or not is_public(arguments)
        if not is_public(arguments) and not arguments.cluster:
            options["course"] = Path(arguments.course)
        if arguments.visitor_memory is not None:
            options["visitor_memory"] = int(arguments.visitor_memory * 1e9)
        names = ("n_head", "activation", "attn_scale", "names", "weights", "base")
        hints = {name: getattr(arguments, name) for name in names}
        app = build_app(model, **hints, **options)
        try:
            with redirect_stdout(sys.stderr):  # gradio prints the address of its MCP server
                app.launch(
                    server_name=arguments.host,
                    server_port=arguments.port,
                    share=arguments.share,
                    prevent_thread_lock=True,
                    quiet=True,
                    mcp_server=arguments.mcp,
                    **launch_options(uploads=options["uploads"], api_key=arguments.api_key),
                )
        except OSError:
            ports = f"port {arguments.port} of {arguments.host} is" if arguments.port else "ports 7860 to 7959 are"
            raise OSError(f"{ports} in use or not allowed: choose another with --port") from None
    except (ValueError, OSError) as problem:
        print(f"Glassbox GPT could not start: {problem}", file=sys.stderr)
        return 1
    gc.freeze()  # later collections skip these long-lived objects, so they never delay a token
    gc.enable()
    if arguments.precision != "fp32":
        loaded = get_model(model if options["uploads"] else public_name(model))
        print(precision_sentence(loaded, error_of(loaded)), flush=True)
    print(f"Glassbox GPT is ready: {app.local_url}", flush=True)
    fields = {"port": app.server_port, "model": model, "public": is_public(arguments), "pid": os.getpid()}
    _log.info("start", extra={"fields": fields})
    if arguments.mcp and not app.mcp_server:
        print(f"MCP tools are unavailable: {app.mcp_error}", file=sys.stderr)
    if app.share_url:
        print(f"For others: {app.share_url}", flush=True)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        every(TRIM_SECONDS, trim_models)
        app.block_thread()
    except SystemExit:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # ignore a second SIGTERM
        finish_texts()
        close(app)
        leave()
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def connect(url: str, max_replicas: int) -> Any:
    """Start a local cluster or connect to the one at a URL, waiting at most CLUSTER_SECONDS.

    If the cluster is unreachable, the page reports it.
    """
    from gpt.inference.cluster import Cluster, LocalCluster

    cluster = LocalCluster(max_replicas) if url == "local" else Cluster(url, max_replicas)
    if not cluster.wait(CLUSTER_SECONDS):
        print(f"No cluster at {cluster.url} yet. The page keeps looking for it.", file=sys.stderr)
    return cluster


def finish_texts() -> None:
    """Reject new texts, wait for the current ones to finish, and stop those still running after FINISH_SECONDS."""
    from gpt.models.registry import models_in_memory

    began, engines = time.monotonic(), [loaded.engine for loaded in models_in_memory()]

    def n_texts() -> int:
        return sum(engine.admission.n_admitted + engine.admission.n_waiting for engine in engines)

    n_running = n_texts()
    for engine in engines:
        engine.admission.close()
    while n_texts() and time.monotonic() < began + FINISH_SECONDS:
        time.sleep(0.05)
    n_stopped = n_texts()
    for engine in engines:
        engine.stopped = True
    time.sleep(SEND_SECONDS)
    fields = {"texts": n_running, "stopped": n_stopped, "seconds": round(time.monotonic() - began, 3)}
    _log.info("shutdown", extra={"fields": fields})


def close(app: Any) -> None:
    """Close the server, drop any open connections, and suppress uvicorn's messages about them."""
    logging.getLogger("uvicorn.error").disabled = True
    app.server.config.timeout_graceful_shutdown = CLOSE_SECONDS
    app.close(verbose=False)


def leave() -> NoReturn:
    """Exit with status 0 while threads are still running; a normal exit would abort a thread that is inside torch."""
    atexit._run_exitfuncs()  # removes temporary files
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def every(seconds: float, call: Callable[[], object]) -> None:
    """Call a function at regular intervals, in a thread that ends with the process."""

    def run() -> NoReturn:
        while True:
            time.sleep(seconds)
            call()

    threading.Thread(target=run, name=call.__name__, daemon=True).start()


def parse_arguments() -> argparse.Namespace:
    """Parse the options in GLASSBOX_OPTIONS, followed by those on the command line.

    PORT or GRADIO_SERVER_PORT sets the default port, and GRADIO_SERVER_NAME sets the default host.
    """
    parser = argparse.ArgumentParser(
        description="Type a prompt, watch a GPT write, and look at every number along the way.",
        epilog="Also: "
        + ", ".join(f"%(prog)s {module.partition('.')[2]}" for module in COMMANDS)
        + ", each with --help",
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    host_help = (
        "address to listen on; the default, 127.0.0.1, is reachable from this computer only; 0.0.0.0 means all networks"
    )
    parser.add_argument("--host", default=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"), help=host_help)
    port_default = os.environ.get("PORT") or os.environ.get("GRADIO_SERVER_PORT")
    parser.add_argument(
        "--port", type=port, default=port_default, help="default: the first free port from 7860 to 7959"
    )
    parser.add_argument("--model", help="the model to open first: a name, a path, or owner/name on the hub")
    parser.add_argument("--n-head", type=int, help="number of heads, if the checkpoint doesn't state it")
    parser.add_argument(
        "--activation",
        choices=("gelu_tanh", "gelu", "relu", "silu"),
        help="activation function, if the checkpoint doesn't state it; default: depends on its layout",
    )
    parser.add_argument(
        "--attn-scale",
        type=attn_scale,
        metavar="{head_size,n_embd,FACTOR}",
        help="scale of the attention scores, if the checkpoint doesn't state it",
    )
    parser.add_argument("--names", help="file that maps the weights' names, or infer to accept the suggested mapping")
    parser.add_argument("--weights", help="entry to read from a file that contains several models, such as ema")
    parser.add_argument("--base", help="base model of a LoRA adapter given with --model; default: the one it states")
    parser.add_argument(
        "--precision",
        choices=("fp32", "half", "int8"),
        default="fp32",
        help="number format of the weights; fp32 is exact, half is the 16-bit format this computer reads fastest",
    )
    context_help = "longest text in tokens, for models trained on longer ones; default: 4096; see also --memory"
    parser.add_argument("--context", type=above_zero, metavar="N", default=4096, help=context_help)
    memory_help = "memory for all models and the texts they generate; default: half of the free memory"
    parser.add_argument("--memory", type=positive, metavar="GB", help=memory_help)
    visitor_help = (
        "memory for one visitor's view inside a model; default: 0.54; of longer texts, only the beginning is shown"
    )
    parser.add_argument("--visitor-memory", type=positive, metavar="GB", help=visitor_help)
    course_help = (
        "folder with your own GPT, see gpt.course; default: my-gpt; ignored on a public page or with a cluster"
    )
    parser.add_argument("--course", metavar="FOLDER", default="my-gpt", help=course_help)
    parser.add_argument("--no-mcp", dest="mcp", action="store_false", help="don't offer tools to agents (MCP)")
    key_help = "key that API calls and agents must send as Authorization: Bearer KEY; default: $GLASSBOX_API_KEY"
    key = os.environ.get("GLASSBOX_API_KEY") or None
    parser.add_argument("--api-key", metavar="KEY", default=key, help=key_help)
    parser.add_argument("--share", action="store_true", help="also create a public link")
    public_help = "apply the limits for public pages; implied by --share and --host, and always on in a Space"
    parser.add_argument("--public", action="store_true", help=public_help)
    allow_help = "listed models that visitors of a public page may download if they are not on this computer yet"
    class_help = "on a public page, let visitors invite others to follow along; also set by GLASSBOX_CLASS=1"
    in_class = os.environ.get("GLASSBOX_CLASS") == "1"
    parser.add_argument("--class", dest="classes", action="store_true", default=in_class, help=class_help)
    cluster_help = "generate on a Ray cluster: the URL of Ray Serve, such as http://HOST:8000, or local to start one"
    parser.add_argument("--cluster", type=cluster, metavar="URL", help=cluster_help)
    replicas_help = "maximum number of replicas in the cluster; default: 4"
    parser.add_argument("--replicas", type=above_zero, metavar="N", default=4, help=replicas_help)
    log_help = "log each event to standard error as a line of JSON, without visitors' texts; always on for public pages"
    parser.add_argument("--log", action="store_true", help=log_help)
    parser.add_argument("--allow", nargs="+", default=[], metavar="NAME", help=allow_help)
    return parser.parse_args([*shlex.split(os.environ.get("GLASSBOX_OPTIONS", "")), *sys.argv[1:]])


def is_public(arguments: argparse.Namespace) -> bool:
    """Return whether others can open the page. Only a private page may load arbitrary local checkpoints."""
    local = arguments.host in ("127.0.0.1", "localhost", "::1")
    return arguments.public or arguments.share or not local or "SPACE_ID" in os.environ


def check_address(host: str) -> None:
    """Raise OSError unless this computer can listen on the address."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host.strip("[]"), 0), family=family).close()
    except OSError:
        raise OSError(f"this computer has no address {host}: choose another with --host") from None


def positive(text: str) -> float:
    """Parse a positive number of gigabytes."""
    if not text.replace(".", "", 1).isdecimal() or float(text) <= 0:
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return float(text)


def above_zero(text: str) -> int:
    """Parse a positive whole number."""
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text!r}")
    return int(text)


def cluster(text: str) -> str:
    """Parse the address of a cluster."""
    if text != "local" and not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"must be local or a URL such as http://HOST:8000, not {text!r}")
    return text


def attn_scale(text: str) -> str | float:
    """Parse the value of --attn-scale."""
    return text if text in ("head_size", "n_embd") else float(text)


def port(text: str) -> int:
    """Parse a port number from the command line or the environment."""
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"the port must be a number from 1 to 65535, not {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
