"""nginx and HAProxy with the configurations in deploy/, in front of two local ports."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
NAMES = ("nginx", "haproxy")
CONFIGURED_PORTS = (7861, 7862, 8080)  # the first and second process, and the balancer
# Wraps a file of conf.d. The paths allow nginx to run without being started as a service.
NGINX = """
daemon off;
pid {folder}/nginx.pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {site};
}}
"""


def free_ports(n: int) -> list[int]:
    """Return n unused ports."""
    with ExitStack() as open_sockets:
        sockets = [open_sockets.enter_context(socket.socket()) for _ in range(n)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def balancer(name: str, backends: list[int], folder: Path) -> Iterator[str]:
    """Run a balancer in front of two ports and return its address. If its program is missing, skip the test; in CI,
    fail.
    """
    program = shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
    if program is None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing(f"{name} is not installed (on Debian: apt-get install {name})")
    ports = [*backends, *free_ports(1)]
    command = [program, *(_nginx(ports, folder) if name == "nginx" else _haproxy(ports, folder))]
    with (folder / f"{name}.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            url = f"http://127.0.0.1:{ports[-1]}"
            with httpx.Client(transport=httpx.HTTPTransport(retries=7)) as client:  # retries until the server listens
                client.head(url, timeout=60)
            yield url
        finally:
            process.terminate()


def _nginx(ports: list[int], folder: Path) -> list[str]:
    site, main = folder / "site.conf", folder / "nginx.conf"
    site.write_text(_with_ports("nginx.conf", ports))
    user = "user root;" if os.geteuid() == 0 else ""  # the folder is readable only by its owner
    main.write_text(user + NGINX.format(folder=folder, site=site))
    return ["-p", str(folder), "-c", str(main), "-e", "stderr"]


def _haproxy(ports: list[int], folder: Path) -> list[str]:
    file = folder / "haproxy.cfg"
    file.write_text(_with_ports("haproxy.cfg", ports))
    return ["-db", "-f", str(file)]


def _with_ports(name: str, ports: list[int]) -> str:
    """Return the contents of a file in deploy/ with other ports in place of CONFIGURED_PORTS."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    for configured, used in zip(CONFIGURED_PORTS, ports, strict=True):
        text, n = re.subn(rf"(?<=[ :]){configured}\b", str(used), text)
        assert n > 0, f"{name} has no port {configured}"
    return text
