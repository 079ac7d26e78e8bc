"""Who trains what: the visitors' runs, the models they open from them, the files they take away; gone when they go."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile

from gpt.models.registry import remove_model
from gpt.training.live_run import LiveRun
from gpt.training.run_queue import LiveQueue

OPENED = 4  # models that one visitor keeps; one more takes the place of the oldest
VISITORS = 64  # who keep models; one more takes the place of the one longest away


class Desk:
    """One for each page; owners are the sessions of the browser. All methods can be called from any thread."""

    def __init__(self, queue: LiveQueue | None = None) -> None:
        self.queue = queue or LiveQueue()
        self._lock = threading.Lock()
        self._opened: OrderedDict[str, list[str]] = OrderedDict()  # names of models by owner
        self._files: dict[LiveRun, TemporaryDirectory[str]] = {}

    def open(self, owner: str, run: LiveRun, *, used: str = "") -> list[str]:
        """Let every tab know the model of a run that has finished; returns the owner's, the newest last.

        used: the name of a model that is not to be forgotten. Raises ValueError if the run has not finished.
        """
        name = run.open()
        with self._lock:
            names = [*self._opened.pop(owner, []), name]
            old = [each for each in names[:-1] if each != used][: max(0, len(names) - OPENED)]
            names = self._opened[owner] = [each for each in names if each not in old]
            while len(self._opened) > VISITORS:
                old += self._opened.popitem(last=False)[1]
        for each in old:
            remove_model(each)
        return list(names)

    def archive(self, run: LiveRun) -> Path:
        """A zip of the model's three files, made once. Raises ValueError if the run has not finished."""
        with self._lock:
            folder = self._files.get(run)
            if folder is None:
                folder = TemporaryDirectory(prefix="glassbox-", ignore_cleanup_errors=True)
                run.save(Path(folder.name) / "model")
                with ZipFile(Path(folder.name) / f"{run.material.name}.zip", "w", ZIP_DEFLATED) as packed:
                    for file in sorted((Path(folder.name) / "model").iterdir()):
                        packed.write(file, file.name)
                self._files[run] = folder
        return Path(folder.name) / f"{run.material.name}.zip"

    def discard(self, run: LiveRun | None) -> None:
        """Delete the files of a run."""
        with self._lock:
            folder = self._files.pop(run, None) if run is not None else None
        if folder is not None:
            folder.cleanup()

    def leave(self, owner: str) -> None:
        """The visitor has gone: call the run off, forget the models, delete the files."""
        self.discard(self.queue.run(owner))
        self.queue.leave(owner)
        with self._lock:
            names = self._opened.pop(owner, [])
        for name in names:
            remove_model(name)
