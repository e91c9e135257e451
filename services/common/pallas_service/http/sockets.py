"""The sockets of a service: claimed before anything expensive is done, so that a port in use is said at once."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator, Sequence

from pallas_service.program import Failure

BACKLOG = 2048
LOOPBACK = "127.0.0.1"


class CannotListen(Failure):
    """The address cannot be had; the text names it and says why."""


def listen(host: str, port: int, fd: str = "") -> socket.socket:
    """Return a listening socket: the inherited one of number `fd`, where there is one, else a new one.

    Raises:
        CannotListen: the port is taken, the address is not ours, or we may not.
    """
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(inherited(fd)) if fd else _bind(stack, host, port)
        start(listener)
        stack.pop_all()
    return listener


@contextlib.contextmanager
def bound(host: str, port: int, own_names: Sequence[str] = (), fd: str = "") -> Iterator[list[socket.socket]]:
    """Yield sockets that have their address but do not listen yet: no caller waits for an agent that cannot answer.

    It is the inherited one of number `fd`, where there is one. With `own_names` they are on the addresses of these
    names and on loopback, instead of on `host`: in a container that shares networks with those it calls, only those
    that may call it reach it.

    Raises:
        CannotListen: an address is in use or not ours.
    """
    with contextlib.ExitStack() as stack:
        if fd:
            yield [stack.enter_context(inherited(fd))]
            return
        if not own_names:
            yield [_bind(stack, host, port)]
            return
        listeners = [_bind(stack, LOOPBACK, port)]
        for name in own_names:
            listeners += _bind_own(stack, name, port)
        yield listeners


def start(listener: socket.socket) -> None:
    """Take connections from now on.

    Raises:
        CannotListen: another process was quicker.
    """
    host, port = listener.getsockname()[:2]
    with _claiming(host, port):
        _share_lingering(listener, True)
        listener.listen(BACKLOG)


def reserve(host: str, port: int) -> socket.socket:
    """Return a socket that refuses connections, on a port that nobody else gets before it is closed.

    `start` makes it listen, in this process or in one that inherits it; `refuse` makes it refuse again.

    Raises:
        CannotListen: the port is taken, the address is not ours, or we may not.
    """
    with contextlib.ExitStack() as stack:
        listener = _bind(stack, host, port)
        if sys.platform == "linux":
            start(listener)
            refuse(listener)
        stack.pop_all()
    return listener


def refuse(listener: socket.socket) -> None:
    """Refuse connections from now on and keep the port; those that nobody has accepted are reset.

    Linux lets two sockets bind one port where both have SO_REUSEADDR and none listens: what is to keep its port must
    have listened once, and then give the option up. Elsewhere a bound socket keeps its port in any case, and one that
    listens goes on listening.
    """
    with contextlib.suppress(OSError):  # not Linux
        listener.shutdown(socket.SHUT_RD)
        _share_lingering(listener, False)


def inherited(fd: str) -> socket.socket:
    """Return the socket of number `fd`, which a parent has handed down; no child of ours inherits it in turn.

    Raises:
        CannotListen: there is no such socket.
    """
    try:
        listener = socket.socket(fileno=int(fd))
    except (OSError, ValueError) as error:
        raise CannotListen(f"cannot listen on the inherited socket {fd}: {error}") from None
    listener.set_inheritable(False)
    return listener


def _share_lingering(listener: socket.socket, share: bool) -> None:
    """Say whether connections of an earlier owner of the port that still linger are in the way."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(share))


def _bind(stack: contextlib.ExitStack, host: str, port: int) -> socket.socket:
    with _claiming(host, port):
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = stack.enter_context(socket.socket(family, kind, protocol))
        _share_lingering(listener, True)
        listener.bind(address)
    return listener


def _bind_own(stack: contextlib.ExitStack, name: str, port: int) -> list[socket.socket]:
    """Return sockets on those addresses of `name` that are ours: it may stand for several replicas."""
    try:
        addresses = sorted({entry[4][0] for entry in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)})
    except OSError:
        raise CannotListen(f"cannot listen on {name}:{port}: the name is not known") from None
    listeners = []
    for address in addresses:
        try:
            listeners.append(_bind(stack, str(address), port))
        except CannotListen as error:  # that of another replica
            last_error = error
    if not listeners:
        raise last_error
    return listeners


@contextlib.contextmanager
def _claiming(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        reason = (error.strerror or str(error)).lower()
        raise CannotListen(f"cannot listen on {address}: {reason}") from None
