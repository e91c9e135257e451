"""All that a fleet shows to somebody who may look but not know its secrets, and the search for one in it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import httpx

from pallas_testing.answers.answer import Answer
from pallas_testing.fleet import http
from pallas_testing.fleet.registry import DOCUMENT, Registry
from pallas_testing.project.copies import WITH_ADDRESSES
from pallas_testing.targets.base import Target

_OF_THE_REGISTRY = (
    "/",
    DOCUMENT,
    "/.well-known/ai-catalog.json",
    "/metrics",
    "/openapi.json",
    "/prometheus/targets",
    "/services",
    "/v0.1/servers",
)
_OF_AN_AGENT = ("/healthz", "/metrics", DOCUMENT, "/mcp/server-card")


def places(target: Target, registry: Registry, answers: Sequence[Answer], canary: str) -> Iterator[str]:
    """Yield where a planted secret is, as it is or in base64: never the secret itself."""
    forms = _forms(canary)
    for title, read in _texts(target, registry, answers):
        for number, line in enumerate(read().splitlines(), 1):
            if any(form in line for form in forms):
                yield f"{title}, line {number}"


def _texts(target: Target, registry: Registry, answers: Sequence[Answer]) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield what is shown by its title; a text is read when it is asked for."""
    for member in target.file.members:
        yield f"the log of {member}", partial(target.logs, member)
    for path in _OF_THE_REGISTRY:
        yield f"{path} of the registry", partial(_page, registry, path)
    yield "/events of the registry", lambda: "\n".join(json.dumps(asdict(change)) for change in registry.events)
    for agent in target.file.agents:
        for path in _OF_AN_AGENT:
            yield f"{path} of {agent}", partial(_document, target, agent, path)
    for number, answer in enumerate(answers, 1):
        text = "\n".join([answer.text, *answer.messages])
        yield f"answer {number} of {answer.call.server}", partial(str, text)
    for file in generated(target.order.file.parent, target.file.path.parent):
        name = file.relative_to(target.file.path.parent).as_posix()
        yield f"the file {name}", partial(file.read_text, "utf-8", "replace")
    for title, text in target.artifacts().items():
        yield title, partial(str, text)


def generated(original: Path, copy: Path) -> Iterator[Path]:
    """Yield the files of a copy that are not the user's own; in those a secret may stand where its user has put it."""
    for file in sorted(path for path in copy.rglob("*") if path.is_file()):
        if any(file.match(pattern) for pattern in WITH_ADDRESSES):
            continue
        source = original / file.relative_to(copy)
        if not source.is_file() or source.read_bytes() != file.read_bytes():
            yield file


def _page(registry: Registry, path: str) -> str:
    return registry.get(path).text


def _document(target: Target, agent: str, path: str) -> str:
    try:
        return http.get(target.url(agent) + path).text
    except (httpx.HTTPError, LookupError, OSError):  # down, or not published: it shows nothing to this machine
        return ""


def _forms(canary: str) -> Iterable[str]:
    """Return the text, and of its base64 what does not depend on its neighbours, for each place it may begin at."""
    raw = canary.encode()
    encoded = (base64.b64encode(b"." * shift + raw).decode()[4 if shift else 0 : -4] for shift in range(3))
    return [canary, *filter(None, encoded)]
