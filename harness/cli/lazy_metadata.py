"""``importlib.metadata``, loaded when it is asked something and not before.

It brings e-mail, zip files, CSV and sockets: 43 modules, a tenth of a login verb's start. pydantic's loader of plugins
imports one function from it, which it does not call once it was told that there are no plugins (harness/__init__.py).
The recipe for lazy imports in Python's documentation does not help: ``from … import name`` looks at the module, and a
lazy module is loaded by any look. So this one answers for that one name itself, and is loaded by a look at any other.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

NAME = "importlib.metadata"
_LOADING = threading.RLock()


class _Unloaded(ModuleType):
    def __getattr__(self, name: str) -> Any:
        load(self)
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module {NAME!r} has no attribute {name!r}") from None


def postpone() -> None:
    """Put the module, not yet loaded, where imports find it; nothing where it has been imported already."""
    if NAME in sys.modules:
        return
    spec = importlib.util.find_spec(NAME)
    assert spec is not None, "it is of the standard library"
    module = importlib.util.module_from_spec(spec)
    module.__class__ = _Unloaded
    vars(module)["entry_points"] = _entry_points
    sys.modules[NAME] = module
    vars(importlib)["metadata"] = module  # as an import does for `import importlib.metadata`


def load(module: ModuleType) -> None:
    """Fill the module with what it holds, once; its identity stays, so whoever has imported it has the whole."""
    with _LOADING:
        spec = module.__spec__
        if not isinstance(module, _Unloaded) or spec is None or spec.loader is None or spec.loader_state is _LOADING:
            return  # loaded meanwhile, or its own code looks for a name that it has not defined yet
        spec.loader_state = _LOADING
        try:
            spec.loader.exec_module(module)
            object.__setattr__(module, "__class__", ModuleType)
        finally:
            spec.loader_state = None


def _entry_points(**chosen: Any) -> Any:
    """As the module's own, which replaces it when the module is loaded."""
    import importlib.metadata

    load(importlib.metadata)
    return importlib.metadata.entry_points(**chosen)
