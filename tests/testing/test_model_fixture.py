"""The fixture, in a run of pytest of its own: it serves, it follows a marker, and it fails what nobody scripted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TESTS = """
import json, urllib.request, urllib.error
import pytest

def ask(model, text):
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(model.url + "/v1/chat/completions", json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        error.close()
        return error.code

def test_python(scripted_model):
    scripted_model.rule(user="hello", say="Hello.")
    assert ask(scripted_model, "hello") == "Hello."

@pytest.mark.scripted_model("script.yaml")
def test_yaml(scripted_model):
    assert ask(scripted_model, "hello") == "from a file"

@pytest.mark.scripted_model("script.yaml")
def test_strict(scripted_model):
    assert ask(scripted_model, "bye") == 400

@pytest.mark.scripted_model("bad.yaml")
def test_bad(scripted_model): ...

def test_never_asked(scripted_model):
    scripted_model.rule(say="x", times=1)
"""


def test_it_imports_nothing_until_a_test_wants_it() -> None:
    code = "import sys, pallas_testing.model_fixture; print([n for n in ('pydantic', 'starlette') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_it_passes_and_fails_as_it_should(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "script.yaml").write_text("rules:\n- {user: hello, say: from a file}\n")
    (tmp_path / "bad.yaml").write_text("rules:\n- {says: x}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pallas_testing.model_fixture", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--strict-markers", "test_it.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "4 passed, 3 errors" in done.stdout, done.stdout + done.stderr
    assert "ERROR test_it.py::test_strict" in done.stdout
    assert "  user: bye\n  tools: none\n" in done.stdout
    assert "script.yaml:2:3 rules.0: the user's message does not match 'hello'" in done.stdout
    assert "bad.yaml:2:4 rules.0.says: is no key that is known here\n    did you mean `say`?" in done.stdout
    assert "ERROR test_it.py::test_never_asked" in done.stdout
    assert "rules.0: scripted 1 times, asked 0 times" in done.stdout
