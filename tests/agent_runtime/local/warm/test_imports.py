"""Which environments a fork takes the imports of its parent over in, and which it begins anew in."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from multiprocessing import current_process

import pytest

from pallas_agent_runtime.local.warm.imports import Imports


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[Imports]:
    """Those of a module that reads READ and ASKED_IN_VAIN and sets SET, in an environment with READ and OTHER."""
    for key in ("READ", "OTHER"):
        monkeypatch.setenv(key, "1")
    imports = Imports()
    with imports.watched():
        assert os.environ["READ"] == "1"
        assert os.getenv("ASKED_IN_VAIN", "2") == "2"
        os.get_exec_path()  # as a module does that starts a process: it asks in bytes too
        os.environ["SET"] = "by the import"
    del os.environ["SET"]
    yield imports
    os.environ.pop("SET", None)


@pytest.mark.parametrize(
    ("changes", "suits"),
    [
        ({}, True),
        ({"OTHER": "2", "NEW": "x", "PALLAS_RUN": "1/a"}, True),
        ({"READ": "2"}, False),
        ({"PATH": "/elsewhere"}, False),
        ({"ASKED_IN_VAIN": "2"}, False),
        ({"SET": "by the user"}, False),
        ({"PYTHONPATH": "/elsewhere"}, False),
        ({"FASTMCP_LOG_LEVEL": "DEBUG"}, False),
        ({"TZ": "Asia/Tokyo"}, False),
    ],
)
def test_an_environment_suits_that_the_imports_have_not_looked_at(
    imports: Imports, changes: dict[str, str], suits: bool
) -> None:
    assert imports.suit({**os.environ, **changes}) is suits


def test_a_variable_that_was_read_and_is_gone_suits_no_more(imports: Imports) -> None:
    assert not imports.suit({key: value for key, value in os.environ.items() if key != "READ"})
    assert imports.suit({key: value for key, value in os.environ.items() if key != "OTHER"})


def test_os_environ_is_as_usual_afterwards(imports: Imports) -> None:
    assert type(os.environ) is os._Environ
    os.environ.get("LATER")
    assert imports.suit({**os.environ, "LATER": "x"})
    assert imports.suit(os.environ), "which takes no bytes"


def test_what_is_taken_over_has_its_variables_but_neither_seeds_nor_keys(imports: Imports) -> None:
    generator = random.Random(1)
    with imports.watched():
        os.environ["SET"] = "by the import"
    del os.environ["SET"]
    key = bytes(current_process().authkey)
    imports.take_over()
    assert os.environ["SET"] == "by the import"
    assert generator.random() != random.Random(1).random()
    assert bytes(current_process().authkey) != key
