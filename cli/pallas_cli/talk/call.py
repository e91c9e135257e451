"""`pallas call`: one question; the progress goes to stderr and the answer to stdout, so that it can be piped."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import Namespace

from pallas_cli.talk import agent, client, inputs
from pallas_cli.talk.client import Question
from pallas_contract.problems import printable

OK = 0
WORLD = 1


def run(options: Namespace) -> int:
    """Ask, and print the answer; returns 1 where the agent answers with an error.

    Raises:
        Refused: the message, an image, the token or the agent's name is wrong.
        Trouble: nobody answers.
    """
    message = inputs.read(sys.stdin.read).rstrip("\n") if options.message == "-" else options.message
    question = Question(message, inputs.images(options.image), options.session)
    token = inputs.token(options.token_file)
    with agent.endpoint(options) as url:
        asking = client.ask(
            url, question, token=token, timeout=options.timeout, on_progress=silence if options.quiet else progress
        )
        answer = asyncio.run(asking)
    if options.json:
        document = {"agent": options.agent, "url": url, "text": answer.text, "error": answer.is_error}
        document["progress"] = list(answer.progress)
        sys.stdout.write(f"{json.dumps(document, ensure_ascii=False)}\n")
    else:
        (sys.stderr if answer.is_error else sys.stdout).write(f"{answer.text}\n")
    return WORLD if answer.is_error else OK


def silence(_: str) -> None:
    """Show nothing of a line of progress."""


def progress(line: str) -> None:
    """Show one line of progress."""
    sys.stderr.write(f"  {printable(line)}\n")
    sys.stderr.flush()
