"""What a program wrote to stderr at its end, and how it ended."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from pallas_agent_runtime.health.last_words import LINES, LONGEST_LINE, LastWords


async def ended(script: str) -> LastWords:
    """Return the last words of a shell script that has ended."""
    words = LastWords()
    with words.pipe() as fd:
        process = await asyncio.create_subprocess_exec("sh", "-c", script, stderr=fd)
    words.exit_code = lambda: process.returncode
    assert await process.wait() is not None
    return words


async def test_the_last_lines_and_the_exit_code() -> None:
    words = await ended("echo first >&2; echo >&2; printf 'last, without an end' >&2; exit 3")
    assert words.lines() == ["first", "last, without an end"]
    assert words.ending == "exit code 3"


async def test_a_signal_has_its_name() -> None:
    assert (await ended("kill -9 $$")).ending == "SIGKILL"


async def test_no_program_was_started() -> None:
    words = LastWords()
    with pytest.raises(FileNotFoundError), words.pipe() as fd:
        await asyncio.create_subprocess_exec("/nonexistent", stderr=fd)
    assert (words.ending, words.lines()) == ("", [])


async def test_much_output_stops_no_program_and_fills_no_memory() -> None:
    words = LastWords()
    script = "import sys; sys.stderr.write(('x' * 5000 + '\\n') * 1000 + 'y' * 200_000)"
    with words.pipe() as fd:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stderr=fd)
    await process.wait()  # it would not end if nobody read
    lines = words.lines()
    assert [len(line) for line in lines] == [LONGEST_LINE] * (LINES + 1)
    assert lines[-1][0] == "y"


async def test_no_descriptor_is_left_open() -> None:
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        (await ended("echo x >&2")).lines()
    assert len(os.listdir("/dev/fd")) == before
