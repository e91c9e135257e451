"""`pallas-testing model`: a script or a cassette served until it is told to stop, or a provider recorded."""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

from pallas_testing.model import reader
from pallas_testing.model.cassette.recording import Recorder
from pallas_testing.model.reader import BadFile
from pallas_testing.model.scripted import ScriptedModel
from pallas_testing.model.server import Backend, Scripted
from pallas_testing.model.serving import Server

DEFAULT_BIND = "127.0.0.1:8080"


def run(chosen: argparse.Namespace) -> int:
    """Run the command; the exit code is that of `serve`."""
    bind = chosen.bind or os.environ.get("PALLAS_BIND") or DEFAULT_BIND
    if not chosen.record:
        return serve(chosen.file, bind)
    try:
        return _record(chosen.record, Path(chosen.file), address(bind))
    except BadFile as error:
        _say(str(error))
        return 2


def serve(file: Path | str, bind: str) -> int:
    """Serve a script or a cassette on `address:port` until told to stop.

    Return 0 then, 1 for the world and for calls that nobody scripted, 2 for bad input.
    """
    path = Path(file)
    try:
        listening = address(bind)
        model = ScriptedModel(path)
    except BadFile as error:
        _say(str(error))
        return 2
    code = _serve(Scripted(model, _say), listening, f"follows {path.name}")
    problems = model.problems()
    for problem in problems[len(model.unscripted) :]:  # the others were told when they came
        _say(problem)
    return code or bool(problems)


def address(bind: str) -> tuple[str, int]:
    """Return host and port of `address:port`.

    Raises:
        BadFile: it is none.
    """
    host, _, port = bind.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise BadFile([f"--bind {bind}: must be address:port\n    such as {DEFAULT_BIND}; port 0 takes a free one"])
    return host.strip("[]"), int(port)


def _record(base_url: str, path: Path, bind: tuple[str, int]) -> int:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadFile(["--record: must be the base URL of a provider\n    such as https://host.example/v1"])
    if path.exists() and "cassette" not in reader.read(path).data:
        raise BadFile([f"{path.name}: is no cassette, and is not written over\n    name another file"])
    if not path.resolve().parent.is_dir():
        raise BadFile([f"{path.name}: there is no folder {path.resolve().parent}\n    create it"])
    recorder = Recorder(base_url, path, _say)
    return _serve(recorder, bind, f"records {parts.hostname} into {path.name}") or bool(recorder.failures)


def _serve(backend: Backend, bind: tuple[str, int], what: str) -> int:
    host, port = bind
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        _say(f"cannot listen on {host}:{port}: {os.strerror(error.errno or 0)}")
        return 1
    with listener:
        url = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        sys.stdout.write(f"{what}: OPENAI_BASE_URL={url}/v1 ANTHROPIC_BASE_URL={url}\n")
        sys.stdout.flush()
        asyncio.run(Server(backend).serve([listener]))
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"pallas-testing: {text}\n")
    sys.stderr.flush()
