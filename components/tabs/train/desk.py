"""What each visitor holds of the training tab: runs, models opened from them, and the archive to download."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile

from gpt.models.registry import remove_model
from gpt.training.live_run import LiveRun
from gpt.training.run_queue import LiveQueue

MAX_MODELS = 4  # opened models per visitor; one more replaces the oldest
MAX_VISITORS = 64  # visitors who hold models or an archive; one more replaces the one who used his least recently


@dataclass
class Held:
    """Models and archive of one visitor. models: names, the newest last; archived: the run that is in the archive."""

    models: list[str] = field(default_factory=list)
    archived: LiveRun | None = None
    folder: TemporaryDirectory[str] | None = None

    def delete_archive(self) -> None:
        """Delete the archive from the disk."""
        if self.folder is not None:
            self.folder.cleanup()
        self.archived = self.folder = None

    def delete(self) -> None:
        """Delete the archive, and the models from the registry and the disk."""
        self.delete_archive()
        for name in self.models:
            remove_model(name)


class Desk:
    """One for each page; owners are the sessions of the browser. All methods can be called from any thread."""

    def __init__(self, queue: LiveQueue | None = None) -> None:
        self.queue = queue or LiveQueue()
        self._lock = threading.Lock()
        self._held: OrderedDict[str, Held] = OrderedDict()  # by owner, the least recently used first

    def open(self, owner: str, run: LiveRun, *, used: str = "") -> list[str]:
        """Register the model of a finished run for every tab; returns the owner's models, the newest last.

        used: name of a model that is not to be removed. Raises ValueError if the run has not finished.
        """
        name = run.open()
        with self._lock:
            held = self._of(owner)
            old = [each for each in held.models if each != used][: max(0, len(held.models) + 1 - MAX_MODELS)]
            held.models = [each for each in held.models if each not in old] + [name]
            for each in old:
                remove_model(each)
            return list(held.models)

    def archive(self, owner: str, run: LiveRun) -> Path:
        """A zip of the model's three files, written once. Raises ValueError if the run has not finished."""
        with self._lock:
            held = self._of(owner)
            if held.folder is None or held.archived is not run:
                folder = TemporaryDirectory(prefix="glassbox-", ignore_cleanup_errors=True)
                run.save(Path(folder.name) / "model")
                with ZipFile(Path(folder.name) / f"{run.material.name}.zip", "w", ZIP_DEFLATED) as packed:
                    for file in sorted((Path(folder.name) / "model").iterdir()):
                        packed.write(file, file.name)
                held.delete_archive()
                held.archived, held.folder = run, folder
            return Path(held.folder.name) / f"{run.material.name}.zip"

    def delete_archive(self, owner: str) -> None:
        """Delete the owner's archive, if there is one."""
        with self._lock:
            self._of(owner).delete_archive()

    def leave(self, owner: str) -> None:
        """Cancel the owner's run and delete everything the owner holds."""
        self.queue.leave(owner)
        with self._lock:
            held = self._held.pop(owner, Held())
        held.delete()

    def _of(self, owner: str) -> Held:
        """What the owner holds, now the most recently used."""
        held = self._held.setdefault(owner, Held())
        self._held.move_to_end(owner)
        while len(self._held) > MAX_VISITORS:
            self._held.popitem(last=False)[1].delete()
        return held
