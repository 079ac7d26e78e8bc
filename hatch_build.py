"""Build hooks of the wheel, which packs everything into one package, `glassbox_gpt`.

In the repository the same code is `app.py`, `gpt` and `components`, names that other packages may also use. The packed
copy rewrites absolute imports, commands and references to modules accordingly.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PACKAGE = "glassbox_gpt"
REWRITTEN = (".py", ".json", ".md", ".ipynb")
LEFT_OUT = ("__pycache__", "types.d.ts")
SNAPSHOTS = "assets/training/*.safetensors"  # snapshots of the recorded training; `gpt.training` can write them again


class OnePackage(BuildHookInterface):
    """Packs a copy of the code in which every module is named as part of the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the copy."""
        if version == "editable":
            raise RuntimeError(
                "there is no editable installation: from a checkout, `python app.py` and `import gpt` work as they are"
            )
        root, self.folder = Path(self.root), Path(mkdtemp())
        copy = self.folder / PACKAGE
        shutil.copytree(root / "gpt", copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
        shutil.copytree(root / "components", copy / "components", ignore=shutil.ignore_patterns(*LEFT_OUT))
        shutil.copy(root / "app.py", copy)
        for snapshot in copy.glob(SNAPSHOTS):
            snapshot.unlink()
        rewrite = rewriting(root)
        for path in copy.rglob("*"):
            if path.suffix in REWRITTEN:
                path.write_text(rewrite(path.read_text(encoding="utf-8")), encoding="utf-8")
        build_data["force_include"][str(copy)] = PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copy."""
        shutil.rmtree(self.folder)


def rewriting(root: Path) -> Callable[[str], str]:
    """Return a function that renames modules in a text: `gpt.X` and `components.X`, including those in imports."""
    names = {
        top: "|".join(path.stem for path in (root / top).iterdir() if path.suffix in ("", ".py"))
        for top in ("gpt", "components")
    }
    modules = re.compile(
        r"\b(?P<statement>from|import) (?P<imported>gpt|components)\b"
        rf"|(?<![\w.])(?:gpt(?=\.(?:{names['gpt']}|__file__)\b)|components(?=\.(?:{names['components']})\b))"
    )

    def renamed(match: re.Match[str]) -> str:
        name = match["imported"] or match[0]
        name = PACKAGE if name == "gpt" else f"{PACKAGE}.{name}"
        return f"{match['statement']} {name}" if match["statement"] else name

    return lambda text: modules.sub(renamed, text)


class Description(MetadataHookInterface):
    """Uses the README without the Space's header as the description of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": text.split("---\n", 2)[2].lstrip()}
