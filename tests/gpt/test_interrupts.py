"""Ctrl-C, sent for real."""

from __future__ import annotations

import signal
import threading

import pytest

from gpt import KVCache
from gpt.inference.engine import Engine
from gpt.inference.interrupts import interrupts_later
from tests.gpt.fake_models import tiny_model

HAS_HANDLER = callable(signal.getsignal(signal.SIGINT))
pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread() or not HAS_HANDLER, reason="no Ctrl-C reaches this thread"
)


def test_an_interrupt_waits_for_the_end_and_then_comes():
    before, done = signal.getsignal(signal.SIGINT), []

    @interrupts_later()
    def work():
        signal.raise_signal(signal.SIGINT)
        done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_does_not_wait():
    before, done = signal.getsignal(signal.SIGINT), []

    @interrupts_later()
    def work():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("not this")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert not done
    assert signal.getsignal(signal.SIGINT) is before


def test_without_an_interrupt_nothing_happens_in_any_thread():
    def quietly():
        with interrupts_later():
            pass

    quietly()
    thread = threading.Thread(target=quietly)
    thread.start()
    thread.join()


@pytest.mark.parametrize("tokens", [1, 40])
def test_an_interrupted_read_is_finished_and_the_next_one_goes_on(monkeypatch, tokens):
    loaded = tiny_model(block_size=64)
    engine, cache = Engine(loaded.model), KVCache(loaded.model.config)
    run = engine.decoder.run

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return run(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(engine.decoder, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.read(list(range(tokens)), cache)
    assert cache.length == tokens
    states, _ = engine.read([3], cache)
    assert states.shape == (1, loaded.model.config.n_embd)
