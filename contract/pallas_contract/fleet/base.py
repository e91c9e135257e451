"""The base of every section of agents.yaml: strict models, secrets by reference, and kinds of values with patterns."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

NAME_BYTES = 255
PATH_BYTES = 4095
"""Longest name of a file and longest path that Linux has: it raises an error for more, whoever asks for what reason."""


def fitting_path(path: str) -> str:
    """Return `path` if a file may have it.

    Raises:
        ValueError: it is longer than any path or name can be.
    """
    if len(path.encode()) > PATH_BYTES or any(len(name.encode()) > NAME_BYTES for name in path.split("/")):
        raise ValueError(f"must be a path in which no name has more than {NAME_BYTES} bytes")
    return path


def readable_url(url: str) -> str:
    """Return `url` if its host and port can be read, which no pattern says: [:::] is no address, 99999 no port.

    Raises:
        ValueError: one of them cannot.
    """
    try:
        _ = urlsplit(url).port
    except ValueError as error:
        raise ValueError(f"must be a URL that can be read: {error}") from None
    return url


def _is_address(text: str) -> str:
    ip_address(text)
    return text


def _inside(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError("must be a path inside the project folder")
    return fitting_path(path)


def _is_plain(path: str) -> str:
    """Require an absolute path without `..` or an empty part, and not the root or what the kit or the kernel mounts."""
    parts = path.split("/")[1:]
    # behind a colon docker reads options of the mount, and Kubernetes takes none
    if not path.startswith("/") or not all(parts) or {".", ".."} & set(parts) or ":" in path:
        raise ValueError("must be an absolute path such as /var/cache")
    if parts[0] in ("proc", "sys"):
        raise ValueError("must be a folder that is not the kernel's")
    if path == "/tmp" or f"{path}/".startswith("/run/secrets/"):  # noqa: S108
        raise ValueError("is mounted in any case")
    return fitting_path(path)


def _importable(module: str) -> str:
    fitting_path(f"{module.replace('.', '/')}.py")
    return module


def _is_reach(text: str) -> str:
    """Require a host name, an address or a network, none link-local: there clouds have their metadata services."""
    try:
        network = ip_network(text)
    except ValueError:
        # Digits and dots alone are no name: resolvers read `10.1` as the address 10.0.0.1.
        if not re.fullmatch(_HOST, text) or re.fullmatch(r"[0-9.]+", text):
            raise ValueError("must be a host name, an IP address, or a network such as 10.20.0.0/16") from None
        return text
    if network.is_link_local:
        raise ValueError("link-local addresses are never asked")
    return text


_ENV_KEY = r"^[A-Za-z_][A-Za-z0-9_]*$"
_MODULE = r"^[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*$"
"""Also with hyphens, as in names of scripts: only the word `import` cannot name such a module."""
# Mi and Gi only, because one spelling must do for all targets: `512m` is 512 MiB to Docker, half a byte to Kubernetes.
_MEMORY = r"^[1-9][0-9]*(Mi|Gi)$"
_HOST = r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$"
_NAMESPACE = r"^[a-zA-Z0-9.-]+$"
_SEMVER = r"^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$"
# Without user and password: the URL is written into generated files.
_ENDPOINT = r"^https?://([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$"
_SITE = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[1-9][0-9]{0,4})?"
_FOLDERS = r"(/[A-Za-z0-9._~-]+)*"
_PUBLIC_URL = rf"^https?://(\{{name\}}\.{_SITE}{_FOLDERS}|{_SITE}{_FOLDERS}/\{{name\}}{_FOLDERS})$"
_IMAGE_PATH = r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[1-9][0-9]{0,4})?/)?([a-z0-9]+([._-]+[a-z0-9]+)*/)*"
_IMAGE_NAMES = rf"^{_IMAGE_PATH}([a-z0-9]+[._-])*\{{name\}}([._-][a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}})?$"
_DEBIAN = r"^[a-z0-9][a-z0-9+.-]+(=[0-9][0-9A-Za-z.+~:-]*)?$"
_IMAGE = (
    r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[1-9][0-9]{0,4})?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?$"
)
_URL_PATH = r"^(/[A-Za-z0-9._~-]+)*/?$"
_SERVICE_URL = rf"^https?://{_SITE}{_URL_PATH[1:]}"
# one underscore at a time: a tool of an MCP server has two in its name
_FUNCTION = r"^[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)*$"
_SHORT = r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$"

PATTERNS = {
    _ENV_KEY: "the name of an environment variable",
    _MODULE: "a dotted module path such as agents.scout",
    _MEMORY: "a size such as 512Mi or 2Gi",
    _HOST: "a host name",
    _FUNCTION: "the name of a function such as fetch_ohlcv",
    _SHORT: "a short name in lower case such as partners",
    _NAMESPACE: "a reverse domain such as com.example.project",
    _SEMVER: "a semantic version such as 1.0.0",
    _ENDPOINT: "the URL of an OTLP/HTTP collector such as http://otel-collector:4318, without user, query or fragment",
    _PUBLIC_URL: "a URL with one `{name}`, such as https://{name}.example.com or https://example.com/agents/{name}",
    _DEBIAN: "the name of a Debian package, or NAME=VERSION",
    _IMAGE_NAMES: "the name of an image with one `{name}`, such as ghcr.io/team/{name} or ghcr.io/team/{name}:1.4",
    _IMAGE: "the name of an image such as ghcr.io/team/server:1.4",
    _URL_PATH: "a path such as /mcp",
    _SERVICE_URL: "a URL such as http://localhost:6333/mcp, without user, query or fragment",
}
"""Each pattern in words, for messages."""

Port = Annotated[int, Field(ge=1, le=65535)]
EnvKey = Annotated[str, StringConstraints(pattern=_ENV_KEY)]
ModulePath = Annotated[str, StringConstraints(pattern=_MODULE), AfterValidator(_importable)]
Pattern = Annotated[str, StringConstraints(min_length=1), AfterValidator(_inside)]
RelativePath = Annotated[str, StringConstraints(min_length=1), AfterValidator(_inside)]
Memory = Annotated[str, StringConstraints(pattern=_MEMORY)]
# 253 characters is the longest name DNS can carry (RFC 1035, less the length bytes).
Host = Annotated[str, StringConstraints(pattern=_HOST, max_length=253)]
Address = Annotated[str, AfterValidator(_is_address)]
TokenName = Annotated[str, StringConstraints(pattern=_SHORT)]
Reach = Annotated[str, AfterValidator(_is_reach)]
Endpoint = Annotated[str, StringConstraints(pattern=_ENDPOINT, max_length=500), AfterValidator(readable_url)]
# With a slash and the longest slug (40) a registry name stays within the 200 characters of the official schema.
Namespace = Annotated[str, StringConstraints(pattern=_NAMESPACE, max_length=150)]
SemVer = Annotated[str, StringConstraints(pattern=_SEMVER, max_length=100)]
DebianPackage = Annotated[str, StringConstraints(pattern=_DEBIAN)]
ImageNames = Annotated[str, StringConstraints(pattern=_IMAGE_NAMES, max_length=200)]
ImageName = Annotated[str, StringConstraints(pattern=_IMAGE, max_length=300)]
UrlPath = Annotated[str, StringConstraints(pattern=_URL_PATH, max_length=200)]
ServiceUrl = Annotated[str, StringConstraints(pattern=_SERVICE_URL, max_length=300), AfterValidator(readable_url)]
ContainerPath = Annotated[str, AfterValidator(_is_plain)]
PublicUrl = Annotated[str, StringConstraints(pattern=_PUBLIC_URL, max_length=200), AfterValidator(readable_url)]
FunctionName = Annotated[str, StringConstraints(pattern=_FUNCTION, max_length=64)]
Publish = bool | Address
Text = Annotated[str, StringConstraints(min_length=1)]
FilePath = Annotated[str, StringConstraints(min_length=1), AfterValidator(fitting_path)]


class Written(BaseModel):
    """Strict: no unknown key, no coercion of a text into a number."""

    # of twenty models two are validated by themselves, and only by commands that read a fleet: the rest would be built
    # for nothing
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True, use_attribute_docstrings=True)


class SecretFile(Written):
    """A secret by reference: the file whose content becomes the value."""

    file: FilePath
    """Path of the file, relative to agents.yaml or absolute."""


class Resources(Written):
    """Limits of one container."""

    memory: Memory = "512Mi"
    """Memory limit, in Mi or Gi."""
    cpus: Annotated[float, Field(gt=0, le=256)] = 1.0
    """CPU limit, in cores."""
    pids: Annotated[int, Field(ge=16, le=65536)] = 256
    """Limit of processes and threads."""
