"""`pallas chat`: a conversation, a line of input each; the agent remembers what was said before."""

from __future__ import annotations

import asyncio
import secrets
import sys
from argparse import Namespace

from pallas_cli.talk import agent, call, client, inputs
from pallas_cli.talk.client import Question
from pallas_cli.trouble import Trouble

_PROMPT = "> "


def run(options: Namespace) -> int:
    """Ask line by line until the input ends (Ctrl-D); what fails is said, and the conversation goes on. Returns 0.

    Raises:
        Refused: a line, the token or the agent's name is wrong.
        Trouble: nobody answers at all.
    """
    token = inputs.token(options.token_file)
    session = options.session or secrets.token_hex(16)  # whoever guesses it could read the conversation
    with agent.endpoint(options) as url:
        _hint(f"{options.agent} at {url}; Ctrl-D ends")
        while message := _line():
            if not message.strip():
                continue
            question = Question(message.rstrip("\n"), session=session)
            try:
                asking = client.ask(url, question, token=token, timeout=options.timeout, on_progress=call.progress)
                answer = asyncio.run(asking)
            except Trouble as trouble:
                _hint(str(trouble))
                continue
            (sys.stderr if answer.is_error else sys.stdout).write(f"{answer.text}\n")
            sys.stdout.flush()
    return 0


def _line() -> str:
    """Return the next line with its end; empty where there is no more."""
    if sys.stdin.isatty():
        sys.stderr.write(_PROMPT)
        sys.stderr.flush()
    return inputs.read(sys.stdin.readline)


def _hint(text: str) -> None:
    sys.stderr.write(f"{text}\n")
