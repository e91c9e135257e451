"""The tests that a user may copy from an example, run on the fleets that tests here have up."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

import pytest

from tests.installed import ROOT


def copied_from(example: str, folder_of_tests: str = "tests") -> dict[str, Callable[..., object]]:
    """Return the tests in a folder of an example, which has one module of them, by their names.

    A module here that takes them in lends them its fixture `running_fleet`, and so its fleet.
    """
    tests = vars(module_of(example, folder_of_tests))
    return {name: test for name, test in tests.items() if name.startswith("test_")}


def module_of(example: str, folder_of_tests: str = "tests") -> ModuleType:
    """Return the one module of tests in a folder of an example."""
    folder = ROOT / "examples" / example / folder_of_tests
    (path,) = folder.glob("test_*.py")
    sys.path.insert(0, str(folder))  # so pytest rewrites the assertions, as it does for the user
    try:
        return import_module(path.stem)
    finally:
        sys.path.remove(str(folder))


def shared_by(module: str) -> dict[str, Callable[..., object]]:
    """Return the `TESTS` of a module beside this one, which fleets of several targets take in, by their names."""
    name = f"{__package__}.{module}"
    pytest.register_assert_rewrite(name)
    return {test.__name__: test for test in import_module(name).TESTS}
