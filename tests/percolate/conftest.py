"""The memory of examples/04-percolate, no package of the kit's: it alone can be imported, not what is beside it."""

from __future__ import annotations

import importlib.util
import sys

from tests.installed import ROOT

EXAMPLE = ROOT / "examples" / "04-percolate"


def _make_importable(name: str) -> None:
    folder = EXAMPLE / name
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


# With the whole folder on the path its `agents` would be found wherever a test asks for a module that is not there.
_make_importable("percolate")
