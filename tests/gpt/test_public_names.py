"""Everything public in the package is documented."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pkgutil import walk_packages

import gpt


def public_objects() -> Iterator[tuple[str, object]]:
    """Yield the exported names, their methods and properties, and every public function and class of each module."""
    for name in gpt.__all__:
        value = getattr(gpt, name)
        for base in value.__mro__ if inspect.isclass(value) else ():
            if base.__module__.startswith("gpt"):
                yield base.__name__, base
                members = (member for member in vars(base) if not member.startswith("_"))
                yield from ((f"{base.__name__}.{member}", getattr(base, member)) for member in members)
    for module in walk_packages(gpt.__path__, "gpt."):
        if not module.name.endswith("__main__") and (module.name != "gpt.serving.app" or find_spec("ray")):
            for name, value in vars(import_module(module.name)).items():
                if getattr(value, "__module__", None) == module.name:
                    yield f"{module.name}.{name}", value


def test_whatever_is_public_has_a_docstring():
    bare = set()
    for name, value in public_objects():
        documentable = inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, property)
        if documentable and not name.rpartition(".")[2].startswith("_") and not inspect.getdoc(value):
            bare.add(name)
    assert bare == set()
