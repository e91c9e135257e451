"""Packages in folders of the examples, for tests that call them without a fleet."""

from __future__ import annotations

import importlib.util
import sys

from tests.installed import ROOT


def make_importable(example: str, *packages: str) -> None:
    """Let tests import these packages of an example, and nothing that stands beside them.

    With the whole folder on the path its `agents` would be found wherever a test asks for a module that is not there.
    """
    for name in packages:
        folder = ROOT / "examples" / example / name
        if getattr(sys.modules.get(name), "__file__", None) == str(folder / "__init__.py"):
            continue  # another one of the same name would know none of the modules that are imported already
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
