"""Where a server is and who asks it, by a URL without a password: that one is a secret of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from connectors.problems import Problem

_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Account:
    """An account on a server."""

    scheme: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    path: str = ""

    @property
    def at(self) -> str:
        """Return the server, for messages."""
        return f"{self.host}:{self.port}"

    @property
    def is_here(self) -> bool:
        """Return whether the server is on this machine, where nobody listens in between."""
        return self.host in _THIS_MACHINE


def read(
    variable: str, secret: str, ports: Mapping[str, int], environ: Mapping[str, str] = os.environ, *, user: str = ""
) -> Account:
    """Return the account that the URL in `variable` names, with the password in `secret`.

    `ports` are the schemes that the URL may have, each with its usual port. `user` is a variable with the user's name
    for a URL that has none: the kit takes one in an http URL for a token, as it often is.

    Raises:
        Problem: the variable is not there, or is no such URL.
    """
    text = environ.get(variable, "")
    example = f"{next(iter(ports))}://anna%40example.com@server.example.com"
    if not text:
        raise Problem(f"{variable} is not set: write it into `env` of this service, such as {example}")
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise Problem(f"{variable} cannot be read as a URL: it looks like {example}") from None
    if url.scheme not in ports or not url.hostname:
        raise Problem(f"{variable} is no {' or '.join(ports)} URL: it looks like {example}")
    if url.password is not None:
        raise Problem(f"{variable} has a password in it: put it into a file, and name that as {secret} in `secrets`")
    return Account(
        scheme=url.scheme,
        host=url.hostname,
        port=port or ports[url.scheme],
        user=unquote(url.username or "") or environ.get(user, ""),
        password=environ.get(secret, ""),
        path=url.path,
    )
