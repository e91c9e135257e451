"""The two fast-agent files, as far as a deployment depends on them: model, capabilities, servers, variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pallas_contract.codes import Code
from pallas_contract.fleet import fastagent_files, providers, source
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem, Refused, Where

VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-?(?P<default>[^}]*))?\}")
"""`${NAME}` or `${NAME:default}`, as fast-agent expands it."""

NO_PORT = "has no valid port"
"""The answer of `flaw` to a port that nobody can listen on."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`model_capabilities` of seed 001 with its defaults, published in the registry."""

    model: str
    vision: bool = False
    context_window: int = 131072
    max_output_tokens: int = 16384


@dataclass(frozen=True, slots=True)
class Command:
    """The program of an MCP server that an agent starts itself (stdio), and the place that names it."""

    program: str
    where: Where
    arguments: tuple[str, ...] = ()
    """As they are written, variables unresolved."""
    positions: tuple[Where, ...] = ()
    """The position of each argument."""
    folder: str | None = None
    """`cwd`, the folder it is started in, as written; None for that of agents.yaml."""
    own_path: bool = False
    """Whether its `env` says where programs are looked up."""


@dataclass(frozen=True, slots=True)
class Config:
    """The part of the two fast-agent files that deployment needs. `servers` maps name -> URL, None for stdio."""

    file: str = fastagent_files.CONFIG[0]
    """The name of the configuration; the seed's where there is none."""
    default_model: str = ""
    model_position: Where | None = None
    """The position of `default_model`, None where there is none."""
    capabilities: Capabilities | None = None
    servers: Mapping[str, str | None] = field(default_factory=dict)
    variables: Mapping[str, Where] = field(default_factory=dict)
    """Variables without a default that the secrets file asks for, with the place of the first mention."""
    url_positions: Mapping[str, Where] = field(default_factory=dict)
    """The position of each server's URL, by the name of the server."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    """The servers that an agent starts itself, as a program."""
    connected: frozenset[str] = frozenset()
    """Servers that a provider's API connects by itself (`connector_id`): nobody here calls or starts them."""
    reached: frozenset[str] = frozenset()
    """Providers whose key or address stands in one of the files."""
    skills: tuple[str, ...] = ()
    """Folders of `skills.directories`, as written."""
    tree: Source | None = field(default=None, repr=False)
    """The configuration as it is written, None where there is none: for rules about all of it."""

    @property
    def provider(self) -> str:
        """Prefix of `default_model` (seed 001), or a built-in model's own name; empty for any other bare name."""
        return providers.split(self.default_model)[0]

    @property
    def calls_model(self) -> bool:
        """True when turns on `default_model` call somebody outside the process."""
        return bool(self.default_model) and self.provider not in providers.OFFLINE


def load(folder: Path, *secrets_folders: Path) -> tuple[Config, list[Problem]]:
    """Read both files of `folder`, the secrets of the first of `secrets_folders` that has one.

    A missing file is as good as an empty one.

    Raises:
        Refused: one of them is not a YAML mapping, or stands there under two names.
    """
    problems: list[Problem] = []
    paths = _paths(folder, *secrets_folders)
    config = _mapping(paths[0])
    secrets = _mapping(paths[1])
    data: Mapping[str, Any] = config.data if config else {}
    trees = [tree for tree in (config, secrets) if tree]
    model, position = _default_model(trees, problems)
    capabilities = _capabilities(config, model, problems) if config and "model_capabilities" in data else None
    for tree in trees:
        _check_providers(tree, problems)
    servers, url_positions, commands = _all_servers(trees, problems)
    result = Config(
        file=paths[0].name if paths[0] else fastagent_files.CONFIG[0],
        default_model=model,
        model_position=position,
        capabilities=capabilities,
        servers=servers,
        variables=variables(secrets) if secrets else {},
        url_positions=url_positions,
        commands=commands,
        connected=frozenset(_connected(trees)),
        reached=frozenset(_reached(trees)),
        skills=_skills(data),
        tree=config,
    )
    return result, problems


def _default_model(trees: Iterable[Source], problems: list[Problem]) -> tuple[str, Where | None]:
    """Return the default model and its position: fast-agent takes that of the later file."""
    model = ""
    position = None
    for tree in trees:
        written = tree.data.get("default_model") or ""
        if not isinstance(written, str):
            problems.append(_misshapen(tree, "default_model", message="must be text: `provider.model`"))
        elif written:
            model = written
            position = tree.where("default_model")
    return model, position


def _reached(trees: Iterable[Source]) -> Iterator[str]:
    for tree in trees:
        for name, section in tree.data.items():
            if isinstance(section, Mapping) and (section.get("api_key") or section.get("base_url")):
                yield name


def _skills(data: Mapping[str, Any]) -> tuple[str, ...]:
    section = data.get("skills")
    directories = section.get("directories") if isinstance(section, Mapping) else None
    return tuple(entry for entry in directories if isinstance(entry, str)) if isinstance(directories, list) else ()


def _paths(folder: Path, *secrets_folders: Path) -> list[Path | None]:
    """Return the paths of configuration and secrets.

    Raises:
        Refused: with all that stand there under two names.
    """
    paths: list[Path | None] = []
    problems: list[Problem] = []
    for find in (partial(fastagent_files.config, folder), partial(fastagent_files.secrets, *secrets_folders, folder)):
        try:
            paths.append(find())
        except Refused as refused:
            problems += refused.problems
    if problems:
        raise Refused(problems)
    return paths


def _mapping(path: Path | None) -> Source | None:
    tree = source.read(path) if path else None
    if tree is None or tree.data is None:
        return None
    if not isinstance(tree.data, Mapping):
        raise Refused([_misshapen(tree, message="must be a mapping")])
    return tree


def _capabilities(tree: Source, model: str, problems: list[Problem]) -> Capabilities | None:
    written = tree.data["model_capabilities"]
    kinds: dict[str, type] = {"vision": bool, "context_window": int, "max_output_tokens": int}
    if not isinstance(written, Mapping):
        problems.append(_misshapen(tree, "model_capabilities", message="must be a mapping"))
        return None
    values: dict[str, Any] = {}
    for key, value in written.items():
        if key not in kinds:
            hint = f"known keys: {', '.join(kinds)}"
            problems.append(
                tree.problem("model_capabilities", key, message="unknown key", hint=hint, code=Code.CONFIG_UNKNOWN_KEY)
            )
        # Not isinstance: True is an int in Python, but `context_window: true` is no number.
        elif type(value) is not kinds[key] or (type(value) is int and value < 1):
            expected = "true or false" if kinds[key] is bool else "a whole number of tokens"
            problems.append(_misshapen(tree, "model_capabilities", key, message=f"must be {expected}, not {value!r}"))
        else:
            values[key] = value
    return Capabilities(model=providers.split(model)[1] or model, **values)


def _check_providers(tree: Source, problems: list[Problem]) -> None:
    """Check the sections that the kit itself reads, those of the providers it asks; values are never shown."""
    for provider in (prefix for row in providers.CHECKED for prefix in row.prefixes):
        section = tree.data.get(provider)
        if section is not None and not isinstance(section, Mapping):
            problems.append(
                _misshapen(
                    tree, provider, message="must be a mapping with `api_key`", hint=f"`{provider}: {{api_key: ...}}`"
                )
            )
        elif section:
            for key in ("api_key", "base_url"):
                if not isinstance(section.get(key, ""), str | None):
                    problems.append(
                        _misshapen(tree, provider, key, message="must be text", hint="put the value in quotes")
                    )


def _all_servers(
    trees: list[Source], problems: list[Problem]
) -> tuple[dict[str, str | None], dict[str, Where], dict[str, Command]]:
    """Return URLs and their positions by server, and the commands of those that an agent starts itself.

    Of two files that name one server the later has the last word, and only on what it has: one often has the headers
    and the other the URL.
    """
    urls: dict[str, str | None] = {}
    positions: dict[str, Where] = {}
    commands: dict[str, Command] = {}
    for tree in trees:
        for name, url in _servers(tree, problems).items():
            entry = tree.data["mcp"]["servers"][name]
            if url is not None or name not in urls:
                urls[name] = url
                positions[name] = tree.where("mcp", "servers", name, _url_key(entry))
            if any(key in entry for key in ("command", "target")):
                commands[name] = _command(tree, name)
    # A server that one file starts as a program may have its URL in the other: then it is called, not started.
    return urls, positions, {name: command for name, command in commands.items() if urls[name] is None}


def _command(tree: Source, name: str) -> Command:
    """Return the program of a server that has `command` or `target`."""
    path = ("mcp", "servers", name)
    entry = tree.data["mcp"]["servers"][name]
    key = "command" if "command" in entry else "target"
    words = _words(entry[key]) or [""]
    where = tree.where(*path, key)
    arguments = entry.get("args")
    listed = (
        [tree.where(*path, "args", index) for index in range(len(arguments))] if isinstance(arguments, list) else []
    )
    more = _words(arguments)
    env = entry.get("env")
    return Command(
        program=words[0],
        where=where,
        arguments=(*words[1:], *more),
        positions=(*(where for _ in words[1:]), *(listed or [tree.where(*path, "args") for _ in more])),
        folder=entry["cwd"] if isinstance(entry.get("cwd"), str) else None,
        own_path=isinstance(env, Mapping) and "PATH" in env,
    )


def _connected(trees: Iterable[Source]) -> Iterator[str]:
    for tree in trees:
        section = tree.data.get("mcp")
        servers = section.get("servers") if isinstance(section, Mapping) else None
        for name, entry in (servers if isinstance(servers, Mapping) else {}).items():
            if isinstance(entry, Mapping) and "connector_id" in entry:
                yield name


def _words(value: object) -> list[str]:
    """Return the words of a command line or a list; fast-agent has `npx` run a target that is the name of a package."""
    if isinstance(value, list):
        return [str(word) for word in value]
    words = value.split() if isinstance(value, str) else []
    return ["npx", *words] if words and words[0].startswith("@") else words


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a server that is called by HTTP, as fast-agent takes it; `sse` is the transport of 2024-11-05."""

    url: str
    sse: bool = False


def endpoint(entry: Mapping[str, Any]) -> Endpoint | None:
    """Return the address in an entry of `mcp.servers`, None for a program that an agent starts itself.

    It stands under `url`, or under `target`, fast-agent's shorthand for either; one that begins with a variable is
    taken for a URL, since a network that is open to no avail does less harm than one that is closed.
    """
    target = entry.get("target")
    shorthand = isinstance(target, str) and target.strip().lower().startswith(("http://", "https://", "${"))
    url = target if shorthand else entry.get("url")
    transport = entry.get("transport")
    if not isinstance(url, str) or transport == "stdio":
        return None
    url = url.strip()
    if transport == "sse" or (shorthand and _path(url).endswith("/sse")):
        return Endpoint(url, sse=True)
    return Endpoint(_with_mcp(url))


def _url_key(entry: Mapping[str, Any]) -> str:
    return "target" if "target" in entry else "url"


def _path(url: str) -> str:
    try:
        return urlsplit(url).path.rstrip("/")
    except ValueError:
        return ""


def _with_mcp(url: str) -> str:
    """Add the path that fast-agent adds to a URL which names no endpoint."""
    if flaw(url) or VARIABLE.search(url):
        return url
    parts = urlsplit(url)
    path = _path(url)
    return url if parts.query or path.endswith(("/mcp", "/sse")) else parts._replace(path=f"{path}/mcp").geturl()


def _misshapen(tree: Source, *path: str, message: str, hint: str = "") -> Problem:
    return tree.problem(*path, message=message, hint=hint, code=Code.CONFIG_SHAPE)


def _servers(tree: Source, problems: list[Problem]) -> dict[str, str | None]:
    # A key with nothing after its colon is None in YAML, and no mistake.
    mcp = tree.data.get("mcp") or {}
    if not isinstance(mcp, Mapping):
        problems.append(_misshapen(tree, "mcp", message="must be a mapping with `servers`"))
        return {}
    servers = mcp.get("servers")
    if servers is None:
        return {}
    if not isinstance(servers, Mapping):
        problems.append(_misshapen(tree, "mcp", "servers", message="must be a mapping of server names"))
        return {}
    urls: dict[str, str | None] = {}
    for name, entry in servers.items():
        if not isinstance(entry, Mapping):
            problems.append(
                _misshapen(tree, "mcp", "servers", name, message="must be a mapping with `url` or `command`")
            )
            continue
        if not isinstance(entry.get("headers") or {}, Mapping):
            problems.append(
                _misshapen(tree, "mcp", "servers", name, "headers", message="must be a mapping of header names")
            )
        address = endpoint(entry)
        # The port may come from a variable, whose value is known only where the agent runs.
        if address and not VARIABLE.search(address.url) and (reason := flaw(address.url)):
            path = ("mcp", "servers", name, _url_key(entry))
            hint = "1 to 65535, or none" if reason == NO_PORT else "write http://HOST:PORT/mcp, or https"
            problems.append(tree.problem(*path, message=reason, hint=hint, code=Code.WRONG_URL))
        urls[name] = address.url if address else None
    return urls


def flaw(url: str) -> str:
    """Return what is wrong with the URL of a provider or server, empty when nothing is; a key in it is not repeated.

    Libraries do not check the port, and the event loop takes 70000 for 4464.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "is no URL"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "is no URL"
    try:
        return NO_PORT if parts.port == 0 else ""
    except ValueError:
        return NO_PORT


def variables(tree: Source) -> dict[str, Where]:
    """Return the variables without a default that a file asks for, each with the place of its first mention."""
    # Backwards, so that the first mention of a variable is the one that stays.
    return dict(reversed(list(_variables(tree))))


def _variables(tree: Source) -> Iterator[tuple[str, Where]]:
    def walk(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str, Where]]:
        if isinstance(value, Mapping):
            for key, child in value.items():
                yield from walk(child, (*path, key))
        elif isinstance(value, list):
            for index, child in enumerate(value):
                yield from walk(child, (*path, index))
        elif isinstance(value, str):
            for match in VARIABLE.finditer(value):
                if match["default"] is None:
                    yield match["name"], tree.where(*path)

    yield from walk(tree.data, ())
