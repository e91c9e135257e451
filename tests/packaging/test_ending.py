"""Commands end without a last look at all their objects."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Callable
from contextlib import suppress

import pytest

from pallas_agent_runtime import cli as runtime
from pallas_agent_runtime.local import supervisor
from pallas_cli import main as verbs
from pallas_gen import cli as generator
from pallas_service import program


@pytest.mark.usefixtures("as_it_was")
@pytest.mark.parametrize(
    ("run", "calls"),
    [
        (generator.main, [gc.freeze]),
        (lambda: verbs.main(["init", "--help"]), [gc.freeze]),
        (lambda: program.run("registry", lambda: 0), [gc.freeze]),
        (lambda: runtime.main([]), [gc.freeze]),
        (lambda: runtime.main(["--agent", "a"]), []),
    ],
    ids=["pallas-gen", "a verb", "a service", "a fleet", "an agent, which has code of the user's"],
)
def test_what_runs_no_code_of_the_users_is_not_searched_for_cycles(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[], object], calls: list[object]
) -> None:
    ends: list[object] = []
    monkeypatch.setattr(atexit, "register", ends.append)
    monkeypatch.setattr("sys.argv", ["pallas-gen", "--version"])
    monkeypatch.setattr(supervisor, "main", lambda *_, **__: 0)
    monkeypatch.setattr(runtime, "_agent", lambda *_: 0)
    with suppress(SystemExit):
        run()
    assert ends == calls
