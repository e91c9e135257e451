"""The fields of each server in the registry's document (seed 000 section 1, Schema)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pallas_testing.conformance.evidence import Catalogue
from pallas_testing.conformance.requirement import Table, demand
from pallas_testing.conformance.wire import is_url

TABLE: Table[Catalogue] = Table()
_SECTION = "000, 1 Registry, Schema"
_NAME = re.compile(r"[^/\s]+(?:/[^/\s]+)+")
_SEMVER = re.compile(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
_SCHEMA = re.compile(r"https://static\.modelcontextprotocol\.io/schemas/[^/]+/server\.schema\.json")
_CAPABILITIES = {"model": str, "vision": bool, "context_window": int, "max_output_tokens": int}


def _each(evidence: Catalogue, key: str, right: str, fits: Callable[[Any], bool], *, required: bool = False) -> str:
    """Demand that one field of every server fits; one that is not required may be absent."""
    for number, entry in enumerate(evidence.document.messages[-1]["servers"]):
        server = entry["server"]
        if required or key in server:
            received = f"servers[{number}].server.{key}: {server.get(key)!r}"
            demand(fits(server.get(key)), evidence.document, right, received)
    return ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


@TABLE.row("registry.name", _SECTION, "each server has a reverse-domain name", after="registry.servers")
def name(evidence: Catalogue) -> str:
    right = "a reverse-domain identifier with a slash, such as com.example.project/jarvis"
    return _each(evidence, "name", right, lambda value: _is_text(value) and bool(_NAME.fullmatch(value)), required=True)


@TABLE.row(
    "registry.slug",
    "001, Registry Name Construction",
    "the name ends with the slug, which has hyphens for underscores",
    after="registry.name",
)
def slug(evidence: Catalogue) -> str:
    right = "no underscore after the last slash, such as com.example.project/tech-research"
    return _each(evidence, "name", right, lambda value: "_" not in value.rpartition("/")[2])


@TABLE.row("registry.texts", _SECTION, "title and description are strings", after="registry.servers")
def texts(evidence: Catalogue) -> str:
    _each(evidence, "title", "a string", _is_text)
    return _each(evidence, "description", "a string", _is_text)


@TABLE.row("registry.version", _SECTION, "the version is a semver string", after="registry.servers")
def version(evidence: Catalogue) -> str:
    right = "a semver string, such as 1.0.0"
    return _each(evidence, "version", right, lambda value: _is_text(value) and bool(_SEMVER.fullmatch(value)))


@TABLE.row("registry.icons", _SECTION, "icons are an array, each with its source", after="registry.servers")
def icons(evidence: Catalogue) -> str:
    def fits(value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(icon, dict) and _is_text(icon.get("src")) for icon in value)

    return _each(evidence, "icons", 'an array of {"src": ..., "sizes": ...}', fits)


@TABLE.row("registry.remotes", _SECTION, "each server has its connection endpoints", after="registry.servers")
def remotes(evidence: Catalogue) -> str:
    def fits(value: Any) -> bool:
        return isinstance(value, list) and all(
            isinstance(remote, dict) and _is_text(remote.get("type")) and _is_text(remote.get("url"))
            for remote in value
        )

    return _each(evidence, "remotes", 'an array of {"type": ..., "url": ...}', fits, required=True)


@TABLE.row(
    "registry.streamable-http", _SECTION, "a client looks for the streamable-http endpoint", after="registry.remotes"
)
def streamable_http(evidence: Catalogue) -> str:
    def fits(value: Any) -> bool:
        urls = [remote["url"] for remote in value if remote["type"] == "streamable-http"]
        return bool(urls) and all(map(is_url, urls))

    right = 'a remote of type "streamable-http" with an absolute http or https URL'
    return _each(evidence, "remotes", right, fits)


@TABLE.row("registry.capabilities", _SECTION, "capabilities have their types", after="registry.servers")
def capabilities(evidence: Catalogue) -> str:
    def fits(value: Any) -> bool:
        return isinstance(value, dict) and all(
            type(value.get(key, expected())) is expected for key, expected in _CAPABILITIES.items()
        )

    right = "an object with model (string), vision (bool), context_window and max_output_tokens (int)"
    return _each(evidence, "capabilities", right, fits)


@TABLE.row("registry.schema", "000, 1 Registry", "a server follows the MCP server schema", after="registry.servers")
def schema(evidence: Catalogue) -> str:
    right = "the URL of a version of the MCP server schema"
    return _each(evidence, "$schema", right, lambda value: _is_text(value) and bool(_SCHEMA.fullmatch(value)))
