"""What people see."""

from __future__ import annotations

import errno
import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from pallas_agent_runtime.local.console import LastingConsole, Screen


def shown(*, terminal: bool, env: dict[str, str] | None = None) -> str:
    out = io.StringIO()
    screen = Screen(Console(file=out, force_terminal=terminal, width=40, _environ=env or {}), ["harper", "tech"])
    screen.output("harper", "[bold] is not markup, \x1b[31mcolour\x1b[0m is kept only on a terminal, nothing wraps")
    screen.report("tech", "exited\n  last words", "error")
    return out.getvalue()


def test_lines_carry_the_aligned_name_of_who_spoke():
    assert shown(terminal=False).splitlines() == [
        "harper | [bold] is not markup, colour is kept only on a terminal, nothing wraps",
        "tech   : exited",
        "  last words",
    ]


def test_a_terminal_gets_colours_unless_no_color_is_set():
    assert "\x1b[36mharper | " in shown(terminal=True, env={"TERM": "xterm"})
    assert "\x1b[3" not in shown(terminal=True, env={"TERM": "xterm", "NO_COLOR": "1"})


def test_a_log_gets_the_plain_text_of_what_is_shown():
    written: list[tuple[str, str, str]] = []
    log: Any = SimpleNamespace(write=lambda *line: written.append(line))
    screen = Screen(Console(file=io.StringIO(), force_terminal=True), ["harper"], log)
    screen.output("harper", "\x1b[31mred\x1b[0m [bold]")
    screen.report("harper", "exited\n  last words", "error")
    assert written == [("harper", "|", "red [bold]"), ("harper", ":", "exited\n  last words")]


@pytest.mark.parametrize("error", [BrokenPipeError(errno.EPIPE, "Broken pipe"), OSError(errno.EIO, "I/O error")])
def test_a_reader_who_leaves_does_not_stop_the_fleet(error):
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise error

    screen = Screen(LastingConsole(file=Gone()), ["harper"])
    screen.output("harper", "one")
    screen.output("harper", "two")


@pytest.mark.parametrize(("encoding", "shown_as"), [("ascii", "Gr??e ?"), ("latin-1", "Grüße ?"), ("utf-8", "Grüße ✗")])
def test_what_a_terminal_cannot_show_does_not_stop_the_fleet(encoding, shown_as):
    """An agent's last line is in what is said of its end, which nobody but the supervisor hears fail."""
    written = io.BytesIO()
    screen = Screen(LastingConsole(file=io.TextIOWrapper(written, encoding)), ["harper"])
    screen.report("harper", "exited with code 1 (its last line: Grüße ✗)")
    screen.output("harper", "next")
    lines = written.getvalue().decode(encoding).splitlines()
    assert lines == [f"harper : exited with code 1 (its last line: {shown_as})", "harper | next"]


def progress(*, terminal: bool, term: str) -> tuple[bool, str]:
    """Whether there are live lines, and what is written when they go away after one round."""
    out = io.StringIO()
    screen = Screen(Console(file=out, force_terminal=terminal, width=40, _environ={"TERM": term}), ["tech"])
    tech: Any = SimpleNamespace(
        member=SimpleNamespace(name="tech"), state="ready", start_seconds=1.0, absence=SimpleNamespace(message="")
    )
    with screen.progress([tech]) as show:
        if show:
            show()
        out.seek(0)
        out.truncate()
    return show is not None, out.getvalue()


def test_live_lines_are_for_a_terminal_that_can_move_its_cursor():
    assert progress(terminal=False, term="xterm") == progress(terminal=True, term="dumb") == (False, "")
    live, end = progress(terminal=True, term="xterm")
    assert live
    assert end.endswith("\x1b[1A\x1b[2K")  # one up, and the line is gone
