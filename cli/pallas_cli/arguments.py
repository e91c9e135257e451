"""The verbs of `pallas` and their options: declarations alone."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pallas_contract import names
from pallas_service.argument_parser import ArgumentParser

MODULES: Mapping[str, str] = {
    "init": "pallas_cli.project.init",
    "add": "pallas_cli.project.add",
    "up": "pallas_cli.runtime",
    "call": "pallas_cli.talk.call",
    "chat": "pallas_cli.talk.chat",
    "console": "pallas_cli.talk.console",
    "status": "pallas_cli.running.status",
    "logs": "pallas_cli.running.logs",
    "stop": "pallas_cli.running.stop",
    "completion": "pallas_cli.completion",
}
"""Verb -> the module that runs it."""
EXAMPLES = ("hello", "pallas", "data-pool", "percolate", "atlas")
"""Fleets of the kit that `pallas init --example` copies."""
SHELLS = ("bash", "zsh", "fish")
"""Shells that `pallas completion` knows."""
_OF_PALLAS_GEN = (
    *(
        "audit",
        "build",
        "bundle",
        "clients",
        "compose",
        "diff",
        "doctor",
        "explain",
        "graph",
        "helm",
        "image",
        "lock",
        "observability",
        "plan",
        "probe",
    ),
    *("schema", "validate", "verify"),
)
_HABITS: Mapping[str, str] = {
    "ask": "did you mean `call`?",
    "down": "`pallas stop` ends a fleet; `docker compose down` takes its containers away too",
    "ps": "did you mean `status`?",
    "restart": "`pallas stop`, then `pallas up`; `pallas up --watch` restarts what is edited",
    "run": "did you mean `up`?",
    "start": "did you mean `up`?",
    **{verb: f"did you mean `pallas-gen {verb}`?" for verb in _OF_PALLAS_GEN},
}
"""Words of other tools, and of the kit's other command, in the place of a verb."""
_RAW = argparse.RawDescriptionHelpFormatter


def parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs; what it parses has the verb's name as `verb`."""
    top = ArgumentParser(prog="pallas", description="Make, run, ask and look after a fleet of MCP agents.")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add_init(verbs)
    _add_add(verbs)
    _add_up(verbs)
    _add_call(verbs)
    _add_chat(verbs)
    _add_console(verbs)
    _add_status(verbs)
    _add_logs(verbs)
    _add_stop(verbs)
    _add_completion(verbs)
    return top


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return the options of a verb; `file` is the path of agents.yaml, also where its folder was named."""
    top = parser()
    if words[0] in _HABITS.keys() - MODULES.keys():
        top.error(f"there is no verb `{words[0]}`: {_HABITS[words[0]]}")
    options = top.parse_args(words)
    if "file" in options:
        path = getattr(options, "path", None)
        if path and options.file and path != options.file:
            top.error(f"PATH is {path}, and -f is {options.file}: give one of the two")
        options.file = names.fleet_file(path or options.file, os.environ)
    return options


def summary() -> str:
    """Return the verbs with a line each, for the help of `pallas` without one."""
    action: Any = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    lines = [(choice.dest, choice.help) for choice in action._choices_actions]
    width = max(len(verb) for verb, _ in lines)
    return "verbs (`pallas VERB --help` says more):\n" + "".join(f"  {verb:<{width}}  {text}\n" for verb, text in lines)


def _add(verbs: Any, verb: str, text: str, *, example: str, description: str = "") -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = verbs.add_parser(
        verb,
        help=text,
        description=description or f"{text[0].upper()}{text[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=_RAW,
    )
    added.add_argument("-q", "--quiet", action="store_true", help="print errors, and what was asked for: no notes")
    added.add_argument("-v", "--verbose", action="store_true", help="also print where each problem is explained")
    return added


def _add_file(verb: argparse.ArgumentParser) -> None:
    default = f"${names.ENV_AGENTS_CONFIG}, else {names.AGENTS_FILE}"
    verb.add_argument(
        "-f", "--file", type=Path, metavar="PATH", help=f"the fleet file or its folder; default: {default}"
    )


def _add_path(verb: argparse.ArgumentParser) -> None:
    """Add the fleet file as an argument too, where no other word has that place."""
    verb.add_argument("path", nargs="?", type=Path, metavar="PATH", help="the same as -f")


def _add_init(verbs: Any) -> None:
    init = _add(verbs, "init", "make a project that runs at once, without a key", example="pallas init desk")
    init.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="default: this folder")
    init.add_argument("--example", choices=EXAMPLES, help="copy this fleet of the kit instead of a first one")


def _add_add(verbs: Any) -> None:
    add = _add(verbs, "add", "add an agent, a service or an outside MCP server", example="pallas add agent scout")
    kinds = add.add_subparsers(dest="kind", required=True, metavar="KIND")
    agent = _add(kinds, "agent", "a module or a card, and its entry in agents.yaml", example="pallas add agent scout")
    agent.add_argument("--card", action="store_true", help="a card in Markdown instead of a module")
    text = "an MCP server that the fleet brings along, in agents.yaml"
    service = _add(kinds, "service", text, example="pallas add service weather")
    service.add_argument("--image", metavar="IMAGE", help="somebody's image instead of a module; needs --port")
    text = "an outside MCP server, in fast-agent's configuration"
    server = _add(kinds, "server", text, example="pallas add server search --url https://search.example/mcp")
    where = server.add_mutually_exclusive_group(required=True)
    where.add_argument("--url", type=_url, metavar="URL", help="where it answers")
    where.add_argument("--command", nargs=argparse.REMAINDER, help="what starts it beside the agent, on stdio; last")
    for kind in (agent, service, server):
        kind.add_argument("name", metavar="NAME")
        _add_file(kind)
    for kind in (agent, service):
        kind.add_argument("--port", type=int, metavar="PORT", help="default: the next that is free in agents.yaml")


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError("is no URL: write http://HOST:PORT/mcp, or https")  # it may hold a key
    return text


def _add_up(verbs: Any) -> None:
    up = _add(verbs, "up", "run the fleet as processes, until Ctrl-C", example="pallas up --watch")
    up.add_argument("--watch", action="store_true", help="follow the files: what an edit concerns restarts alone")
    up.add_argument("--console", action="store_true", help="also serve a page to talk to the agents, on this machine")
    up.add_argument(
        names.ALLOW_PLAIN_SECRETS, action="store_true", help="warn of secrets in plain text instead of refusing them"
    )
    _add_path(up)
    _add_file(up)


def _add_call(verbs: Any) -> None:
    call = _add(verbs, "call", "ask an agent one question", example='pallas call desk "How many words are these?"')
    call.add_argument("agent", metavar="AGENT", help="its name in the registry, or the URL of its /mcp")
    call.add_argument("message", metavar="MESSAGE", help="`-` reads it from standard input")
    call.add_argument("--image", type=Path, action="append", default=[], metavar="FILE", help="an image to send along")
    call.add_argument("--json", action="store_true", help="print the answer and the progress as one JSON object")
    _add_conversation(call)


def _add_chat(verbs: Any) -> None:
    chat = _add(verbs, "chat", "talk to an agent, line by line", example="pallas chat desk")
    chat.add_argument("agent", metavar="AGENT", help="its name in the registry, or the URL of its /mcp")
    _add_conversation(chat)


def _add_console(verbs: Any) -> None:
    text = "open a page on which people talk to the agents, on this machine"
    console = _add(verbs, "console", text, example="pallas console")
    console.add_argument("--port", type=int, default=0, metavar="PORT", help="of the page; default: a free one")
    _add_path(console)
    _add_registry(console)


def _add_conversation(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--session", metavar="NAME", help="go on with the conversation of this name")
    token = f"a file with the token to show, for agents with `access`; default: ${names.ENV_TOKEN}"
    verb.add_argument("--token-file", type=Path, metavar="FILE", help=token)
    verb.add_argument("--timeout", type=_seconds, default=600.0, metavar="SECONDS", help="for an answer; default: 600")
    _add_registry(verb)


def _add_registry(verb: argparse.ArgumentParser) -> None:
    _add_file(verb)
    verb.add_argument("--registry", metavar="URL", help=f"default: ${names.ENV_REGISTRY}, else that of the fleet file")
    _add_namespace(verb)


def _add_output(verb: argparse.ArgumentParser) -> None:
    text = "the folder that `pallas-gen compose -o DIR` wrote to; default: where the fleet's containers are from"
    verb.add_argument("-o", "--output", type=Path, metavar="DIR", help=text)


def _add_namespace(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("-n", "--namespace", metavar="NAME", help="the fleet runs there in Kubernetes; needs kubectl")


def _add_status(verbs: Any) -> None:
    status = _add(
        verbs,
        "status",
        "show how each agent and service is",
        example="pallas status --watch",
        description="Show how each agent and service is, as the registry has it. Exit code 1 where one is not well.",
    )
    status.add_argument("--watch", action="store_true", help="show it again with each change, until Ctrl-C")
    status.add_argument("--interval", type=_seconds, default=1.0, metavar="SECONDS", help="of --watch; default: 1")
    status.add_argument("--format", choices=["text", "json"], default="text", help="default: text")
    _add_path(status)
    _add_registry(status)


def _add_logs(verbs: Any) -> None:
    logs = _add(verbs, "logs", "show what the members have printed", example="pallas logs desk -f")
    logs.add_argument("name", nargs="?", metavar="NAME", help="of an agent or service; default: all")
    # docker and kubectl spell it so; the fleet file has its long option here
    logs.add_argument("-f", "--follow", action="store_true", help="go on with what comes, until the fleet ends")
    default = f"${names.ENV_AGENTS_CONFIG}, else {names.AGENTS_FILE}"
    logs.add_argument("--file", type=Path, metavar="PATH", help=f"the fleet file or its folder; default: {default}")
    _add_output(logs)
    _add_namespace(logs)


def _add_stop(verbs: Any) -> None:
    stop = _add(verbs, "stop", "end the fleet, in order", example="pallas stop")
    _add_path(stop)
    _add_file(stop)
    _add_output(stop)
    _add_namespace(stop)


def _add_completion(verbs: Any) -> None:
    text = "print the script by which a shell completes `pallas`"
    completion = _add(verbs, "completion", text, example="pallas completion bash > ~/.pallas-completion")
    completion.add_argument("shell", nargs="?", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    completion.add_argument("--words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds, such as 30")
    return seconds
