"""The processes of a Ray cluster."""

from __future__ import annotations

import os
import signal
import subprocess


def processes(text: str) -> list[int]:
    """The processes of this computer with this text in their command line."""
    lines = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    return [int(line.split()[0]) for line in lines if text in line.split(maxsplit=1)[1]]


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and those that they have."""
    found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.split()
    parents = dict(zip(map(int, found[::2]), map(int, found[1::2]), strict=True))

    def is_below(child: int) -> bool:
        return child in parents and (parents[child] == pid or is_below(parents[child]))

    return {child for child in parents if is_below(child)}


def own_processes(text: str) -> set[int]:
    """The processes below this one with this text in their command line."""
    return descendants(os.getpid()).intersection(processes(text))


def kill(pids: set[int]) -> None:
    """End processes at once."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
