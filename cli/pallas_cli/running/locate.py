"""Options, environment and fleet file -> where the registry of the running fleet answers."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from pallas_cli.running import catalogue, kubernetes, owner, target
from pallas_cli.running.catalogue import Member, NoRegistry
from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet import source
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import addresses
from pallas_contract.problems import Problem, Refused, Where
from pallas_contract.validate import load, masking

_EXAMPLE = "http://127.0.0.1:24200"


@dataclass(frozen=True, slots=True)
class Registry:
    """Where a registry is, and the fleet file by which it was found; None where the user has named it."""

    url: str
    fleet: owner.Fleet | None = None


@contextmanager
def registry(options: Namespace) -> Iterator[Registry]:
    """Yield where the registry is: by `--registry`, through the cluster's API, by environment, or by the fleet file.

    Raises:
        Refused: the URL is none, or the fleet file is needed and wrong.
        Trouble: no way leads into the cluster.
    """
    named = options.registry or (None if options.namespace else os.environ.get(names.ENV_REGISTRY))
    if named:
        yield Registry(_url(named, "--registry" if options.registry else names.ENV_REGISTRY))
    elif options.namespace:
        with kubernetes.forwarded(options.namespace, names.REGISTRY) as url:
            yield Registry(url)
    else:
        try:
            candidates = _of_file(options)
        except Refused as refused:
            candidates = [_of_run(options, refused)]
        yield _answering(candidates)


def members(registry: Registry, *, trusted: bool = False) -> list[Member]:
    """Return what a registry lists; `trusted` as in `owner.refuse_other`.

    Raises:
        NoRegistry: nobody answers, or the registry of another fleet; the text says how to name another one.
    """
    try:
        listing = catalogue.read(registry.url)
    except NoRegistry as error:
        start = f"start the fleet ({target.starts(registry.fleet.file)}), or n" if registry.fleet else "N"
        hint = f"{start}ame its registry: --registry URL, ${names.ENV_REGISTRY}, -n NAMESPACE"
        raise NoRegistry(f"{error}\n    {hint}") from None
    if registry.fleet:
        owner.refuse_other(listing.owner, registry.url, registry.fleet, trusted=trusted)
    return listing.members


def _of_run(options: Namespace, refused: Refused) -> Registry:
    """Return where the registry of the fleet that runs is, though its file is wrong: that edit changes no fleet yet.

    Raises:
        Refused: none is known to run here.
    """
    url = target.registry_of(options.file)
    if not url:
        last = refused.problems[-1]
        way = f"a fleet that runs elsewhere is found by --registry URL, ${names.ENV_REGISTRY} or -n NAMESPACE"
        raise Refused([*refused.problems[:-1], replace(last, hint="; ".join(filter(None, (last.hint, way))))])
    if not options.quiet:
        remedy = "`pallas-gen validate` says what is wrong"
        sys.stderr.write(f"{options.file} cannot be used: {remedy}. The fleet that runs is asked, at {url}\n")
    return Registry(url)


def _answering(registries: list[Registry]) -> Registry:
    """Return the first at which the fleet's registry answers; the last, unasked, where none of the others does."""
    for registry in registries[:-1]:
        try:
            members(registry)
        except NoRegistry:
            continue
        return registry
    return registries[-1]


def here(file: Path) -> Registry:
    """Return where the registry of a fleet file is on this machine.

    Raises:
        Refused: the file is wrong.
    """
    return _here(load.parse(source.read(file)), file)


def _here(fleet: ResolvedFleet, file: Path) -> Registry:
    url = addresses.registry_health_url(fleet, "local").removesuffix(names.READY_PATH)
    return Registry(url, owner.Fleet(fleet.name, file))


def _of_file(options: Namespace) -> list[Registry]:
    """Return where the world finds the registry of the fleet file, and where it is on this machine."""
    fleet = load.parse(source.read(options.file))
    local = _here(fleet, options.file)
    public = addresses.public_url(fleet, names.REGISTRY, fleet.registry_port)
    return [local] if urlsplit(public).hostname in names.LOCAL_HOSTS else [Registry(public, local.fleet), local]


def http_url(text: str, where: str, example: str) -> SplitResult:
    """Return the parts of an http(s) URL.

    Raises:
        Refused: it is none; `example` is one.
    """
    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bracket that is not closed, a port that is no number
        fits = False
    if not fits:
        raise Refused(
            [
                Problem(
                    Where(where),
                    f"{masking.masked(text)[:200]!r} is no http(s) URL",
                    f"write it as {example}",
                    code=Code.NOT_A_URL,
                )
            ]
        )
    return parts


def _url(text: str, where: str) -> str:
    if http_url(text, where, _EXAMPLE).username:
        problem = f"{masking.masked(text)[:200]!r} is no http(s) URL without a user"
        raise Refused([Problem(Where(where), problem, f"write it as {_EXAMPLE}", code=Code.NOT_A_URL)])
    return text
