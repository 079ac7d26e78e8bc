"""Processes of a Ray cluster."""

from __future__ import annotations

import os
import signal
import subprocess


def processes(text: str) -> list[int]:
    """Return the ids of this machine's processes whose command line contains a text."""
    lines = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    return [int(line.split()[0]) for line in lines if text in line.split(maxsplit=1)[1]]


def descendants(pid: int) -> set[int]:
    """Return the ids of all child processes of a process, including indirect ones."""
    found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.split()
    parents = dict(zip(map(int, found[::2]), map(int, found[1::2]), strict=True))

    def is_below(child: int) -> bool:
        return child in parents and (parents[child] == pid or is_below(parents[child]))

    return {child for child in parents if is_below(child)}


def kill(pids: set[int]) -> None:
    """Kill processes without letting them clean up."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
