"""`pallas-testing conformance URL`: the contract, checked at an agent or a registry."""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from pallas_testing.conformance import official, report, run
from pallas_testing.conformance.evidence import Turn
from pallas_testing.conformance.official import NoSuite
from pallas_testing.conformance.run import NobodyThere, Question, Report
from pallas_testing.conformance.session import LEGACY, MODERN, Era
from pallas_testing.conformance.wire import is_url, printable

ERAS: dict[str, Era] = {"legacy": LEGACY, "modern": MODERN}
_NO_MCP = "--official: judges MCP servers, and a registry need not be one\n    give the URL of an MCP endpoint"


class BadInput(Exception):
    """What the user wrote is wrong; the text says what, and what to do."""


def main(chosen: argparse.Namespace) -> int:
    """Print the report; exit code 0 conformant, 1 for a broken requirement or nobody there, 2 for bad input."""
    try:
        question = _question(chosen)
        program = official.command() if chosen.official else []
        found = asyncio.run(run.check(question))
        if program:
            found = _with_official(found, program)
    except BadInput as error:
        return _refuse(error, 2)
    except (NobodyThere, NoSuite, OSError, subprocess.TimeoutExpired) as error:
        return _refuse(error, 1)
    sys.stdout.write(report.FORMATS[chosen.format](found))
    return 0 if found.conformant else 1


def _with_official(found: Report, program: list[str]) -> Report:
    if found.kind == "registry":
        raise BadInput(_NO_MCP)
    spoken = [finding.era for finding in found.findings if finding.id == "agent.mcp" and finding.verdict == "held"]
    return replace(found, findings=[*found.findings, *official.run(found.url, program, spoken)])


def _question(chosen: argparse.Namespace) -> Question:
    """Return what to judge.

    Raises:
        BadInput: every problem of the arguments.
    """
    problems = []
    if not is_url(chosen.url):
        problems.append(f"{printable(chosen.url)}: must be a URL\n    such as http://127.0.0.1:24101/mcp")
    elif "@" in urlsplit(chosen.url).netloc:
        problems.append(
            f"{urlsplit(chosen.url).hostname}: must be a URL without user and password\n    use --token-file"
        )
    if chosen.reply and not chosen.message:
        problems.append("--reply: is the answer to --message\n    give both")
    if not chosen.timeout > 0:
        problems.append("--timeout: must be seconds above 0")
    token = ""
    try:
        token = Path(chosen.token_file).read_text().strip() if chosen.token_file else ""
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"--token-file {chosen.token_file}: {getattr(error, 'strerror', None) or 'is no text'}")
    if chosen.official and chosen.token_file:
        problems.append("--official with --token-file: the official suite sends no token\n    give one of them")
    if chosen.official and chosen.kind == "registry":
        problems.append(_NO_MCP)
    if problems:
        raise BadInput("\n".join(problems))
    return Question(
        url=chosen.url,
        kind=chosen.kind,
        eras=[ERAS[name] for name in chosen.era or ()],
        turn=Turn(chosen.message, chosen.reply or "") if chosen.message else None,
        token=token,
        timeout=chosen.timeout,
    )


def _refuse(error: Exception, code: int) -> int:
    for line in str(error).splitlines():
        sys.stderr.write(f"{line}\n" if line.startswith(" ") else f"pallas-testing conformance: {line}\n")
    return code
