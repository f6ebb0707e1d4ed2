"""scipy's functions of Student's t, without the rest of scipy.special.

That package imports, through a copy of all that numpy names, numpy.f2py, numpy.testing, unittest and more. Nothing of
it is needed here: in scipy 1.17, 0.14 s of CPU time and two thousand file-system calls for every verb that shows an
interval. So the compiled module that holds the functions is imported alone. Who imports scipy.special afterwards gets
all of it, with the same functions.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from importlib.util import find_spec, module_from_spec
from types import ModuleType

_PACKAGE = "scipy.special"


def special_functions(compiled: str = "_ufuncs") -> ModuleType:
    """The compiled module of scipy.special; the package itself where it is imported already, or has no such module."""
    spec = None if _PACKAGE in sys.modules else find_spec(_PACKAGE)
    if spec is not None:
        # a module is imported through its package: here an empty one, whose own imports do not run
        sys.modules[_PACKAGE] = module_from_spec(spec)
        try:
            with suppress(ModuleNotFoundError):
                return importlib.import_module(f"{_PACKAGE}.{compiled}")
        finally:
            del sys.modules[_PACKAGE]
    return importlib.import_module(_PACKAGE)


_functions = special_functions()
#: Ufuncs of floats: ``stdtr(df, t)``, ``stdtridf(share, t)``, ``stdtrit(df, share)``, as scipy.special describes them.
stdtr, stdtridf, stdtrit = _functions.stdtr, _functions.stdtridf, _functions.stdtrit
