"""The output for people: every line with the name of its member, a table of the members, one live line for each."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.live import Live
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from pallas_agent_runtime.local.record import Log
from pallas_agent_runtime.local.restarts import Keeper, Level, State

OWN_NAME = "pallas"
_COLOURS = ("cyan", "green", "yellow", "blue", "magenta", "bright_cyan", "bright_green", "bright_blue")
_LEVELS: dict[Level, str] = {"info": "", "warning": "yellow", "error": "bold red"}
_STATES: dict[State, str] = {"ready": "green", "late": "yellow", "starting": "yellow", "waiting": "yellow"}


class LastingConsole(Console):
    """Goes quiet when the terminal or the reader of the pipe is gone, where rich would end the program.

    What the encoding of the output lacks is shown as `?`: what an agent says last must not end the others.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if isinstance(self.file, io.TextIOWrapper):
            self.file.reconfigure(errors="replace")

    def on_broken_pipe(self) -> None:
        self.quiet = True
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:  # else Python's last flush fails
            os.dup2(nowhere.fileno(), self.file.fileno())


class Screen:
    """Writes to `console`, which decides about colours (a terminal, NO_COLOR), and to `log` where there is one."""

    def __init__(self, console: Console, names: Sequence[str], log: Log | None = None) -> None:
        self._console = console
        self._log = log
        self._width = max(map(len, (*names, OWN_NAME)))
        self._colours = {name: Style.parse(_COLOURS[i % len(_COLOURS)]) for i, name in enumerate(names)}

    def output(self, name: str, line: str) -> None:
        """Print a line that member `name` wrote."""
        text = Text.from_ansi(line)
        self._print(self._prefix(name, " | ") + text)
        if self._log:
            self._log.write(name, "|", text.plain)

    def report(self, name: str, text: str, level: Level = "info") -> None:
        """Print a message of the supervisor about `name`; further lines of `text` are indented."""
        self._print(self._prefix(name, " : ") + Text(text, _LEVELS[level]))
        if self._log:
            self._log.write(name, ":", text)

    def table(self, keepers: Iterable[Keeper]) -> None:
        """Print name, state, address, process and start-up time of every member."""
        numbers = (Column(title, justify="right") for title in ("pid", "started in"))
        table = Table("name", "state", Column("url", overflow="fold"), *numbers, box=box.SIMPLE_HEAD)
        for keeper in keepers:
            row = (
                Text(keeper.member.name, self._colours.get(keeper.member.name, "")),
                Text(keeper.state, _STATES.get(keeper.state, "red")),
                keeper.member.url,
                str(keeper.pid or ""),
                "" if keeper.start_seconds is None else f"{keeper.start_seconds:.1f} s",
            )
            table.add_row(*row)
        self._print(table)

    @contextlib.contextmanager
    def progress(self, keepers: Collection[Keeper]) -> Iterator[Callable[[], None] | None]:
        """Show one line per member below the output, anew with each call of what is yielded; None on no terminal."""
        if not self._console.is_terminal or self._console.is_dumb_terminal:
            yield None
            return
        with Live(console=self._console, auto_refresh=False, transient=True) as live:

            def show() -> None:
                with contextlib.suppress(OSError):  # of a terminal that is gone; the next line of output finds out
                    live.update(self._lines(keepers), refresh=True)

            show()
            yield show

    def _lines(self, keepers: Iterable[Keeper]) -> Table:
        """Return one line per member: name, state, seconds, and what it waits for."""
        lines = Table.grid(
            Column(no_wrap=True), Column(), Column(justify="right"), Column(no_wrap=True), padding=(0, 2)
        )
        for keeper in keepers:
            seconds = keeper.start_seconds if keeper.state == "ready" else keeper.seconds
            lines.add_row(
                Text(keeper.member.name, self._colours.get(keeper.member.name, "")),
                Text(keeper.state, _STATES.get(keeper.state, "red")),
                "" if seconds is None else f"{seconds:.0f} s",
                Text(keeper.absence.message if keeper.state != "starting" else "", overflow="ellipsis"),
            )
        return lines

    def _prefix(self, name: str, mark: str) -> Text:
        return Text.assemble((f"{name:<{self._width}}{mark}", self._colours.get(name, "bold")))

    def _print(self, renderable: Text | Table) -> None:
        try:
            self._console.print(renderable, soft_wrap=isinstance(renderable, Text))
        except OSError:  # of a terminal that is gone; rich itself looks after pipes
            self._console.on_broken_pipe()
