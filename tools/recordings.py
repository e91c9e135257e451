"""`make pictures`: docs/pictures/tutorial-*.svg, what the commands of docs/tutorial.md print when they are run.

The project is that of `pallas init`, on its own ports. `--output DIR` writes to another folder. Exit code 1: the fleet
does not come up, or a command fails.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
OUTPUT = ROOT / "docs" / "pictures"
COLUMNS = 100
TIMEOUT = 300
"""Seconds for a command, and for the fleet to come up."""
FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; \
line-height: {line_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""That of rich, without the font that it takes from a server of others."""


class Failed(Exception):
    """A command did not do what the tutorial says."""


def svg(title: str, lines: Sequence[str]) -> str:
    """Return the picture of a terminal with these lines; those that begin with `$ ` are what a person typed."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    for line in lines:
        style = "bold" if line.startswith("$ ") else ""
        console.print(Text(line, style=style), no_wrap=True, overflow="ellipsis")
    return console.export_svg(title=title, code_format=FORMAT, unique_id="terminal")


def spoken(command: str, folder: Path) -> Iterator[str]:
    """Run a command in a folder, and yield it with what it prints.

    Raises:
        Failed: it ends with another code than 0.
    """
    yield f"$ {command}"
    done = subprocess.run(
        ["sh", "-c", command],
        check=False,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
    )
    if done.returncode != 0:
        raise Failed(f"{command} ended with {done.returncode}: {done.stdout}")
    yield from done.stdout.rstrip().splitlines()


@contextmanager
def up(folder: Path) -> Iterator[Sequence[str]]:
    """Run the fleet of a folder, and give what `pallas up` printed until all were there.

    Raises:
        Failed: it ended before.
    """
    process = subprocess.Popen(
        [shutil.which("pallas") or "pallas", "up", "--watch"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = ["$ pallas up --watch"]
        for line in process.stdout:
            lines.append(line.rstrip())
            if re.search(r"\ball up\b", line):
                break
        else:
            raise Failed("\n".join(lines))
        yield lines
    finally:
        process.terminate()
        process.communicate(timeout=TIMEOUT)


def pictures() -> Mapping[str, str]:
    """Return name -> picture.

    Raises:
        Failed: a command did not do what the tutorial says.
    """
    with tempfile.TemporaryDirectory() as temporary:
        made = list(spoken("pallas init desk", Path(temporary)))
        project = Path(temporary) / "desk"
        with up(project) as started:
            asked = list(spoken('pallas call desk "How many words are these?"', project))
            states = list(spoken("pallas status", project))
    return {
        "tutorial-init": svg("a new project", made),
        "tutorial-up": svg("the fleet", started),
        "tutorial-call": svg("asked from another terminal", [*asked, "", *states]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    try:
        for name, picture in pictures().items():
            (arguments.output / f"{name}.svg").write_text(picture, "utf-8")
            print(f"wrote {arguments.output / name}.svg")
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
