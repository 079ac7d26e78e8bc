"""Computing beside the shared model without slowing it: on one core, behind whoever waits for an answer."""

from __future__ import annotations

import os
import sys
import threading

import torch

NICENESS = 10  # of 19: the thread gets what the others leave


def step_aside() -> None:
    """Let the calling thread compute on one core and, on Linux, only while nobody else wants it.

    torch's setting counts for the thread that makes it, and for all threads that begin to compute later: another
    thread puts that back.
    """
    before = torch.get_num_threads()  # also makes torch set this thread up, which it does once
    torch.set_num_threads(1)
    others = threading.Thread(target=torch.set_num_threads, args=(before,))
    others.start()
    others.join()
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
