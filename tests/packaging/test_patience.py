"""No test gives up because the machine has much to do: its clients wait for as long as they are told, a minute."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

CLIENTS = {"AsyncClient", "Client", "delete", "get", "head", "options", "patch", "post", "put", "request", "stream"}
LEAST = 10
"""Seconds."""


def impatient(path: Path) -> Iterator[str]:
    """Yield where a client of httpx is made that waits for its 5 s, or for less."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Call(ast.Attribute(ast.Name("httpx" | "httpx2"), name), _, keywords) if name in CLIENTS:
                given = {keyword.arg: keyword.value for keyword in keywords}
                match given.get("timeout"):
                    case None if not {"transport", None} & given.keys():
                        yield f"{path.relative_to(ROOT)}:{node.lineno} waits for 5 s: timeout=60"
                    case ast.Constant(float() | int() as seconds) if seconds < LEAST:
                        yield f"{path.relative_to(ROOT)}:{node.lineno} waits for {seconds} s: timeout=60"


def test_every_client_of_a_test_waits_for_a_minute() -> None:
    tests = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "examples").glob("*/tests/**/*.py")]
    modules = [path for path in tests if "code_broken" not in path.parts]
    assert [line for path in modules for line in impatient(path)] == []


def test_one_that_does_not_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tests.packaging.test_patience.ROOT", tmp_path)
    path = tmp_path / "test_x.py"
    path.write_text("httpx.get(url)\nhttpx.Client(timeout=2)\nhttpx.Client(transport=t)\nhttpx2.get(url, timeout=60)\n")
    assert [line.partition(" ")[0] for line in impatient(path)] == ["test_x.py:1", "test_x.py:2"]
