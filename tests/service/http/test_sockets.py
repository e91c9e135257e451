"""Sockets: one that listens at once, those that only have their address, and why one cannot be had."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from typing import Any

import pytest

from pallas_service.http.sockets import CannotListen, bound, listen, refuse, reserve, start
from tests.ports import free_port


def reachable(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_a_listening_socket_takes_connections() -> None:
    with closing(listen("127.0.0.1", 0)) as listener:
        assert reachable(listener.getsockname()[1])


def test_a_bound_socket_keeps_its_port_and_takes_connections_once_it_is_started() -> None:
    with bound("127.0.0.1", 0) as sockets:
        (listener,) = sockets
        port = listener.getsockname()[1]
        assert not reachable(port)
        start(listener)
        assert reachable(port)
        with pytest.raises(CannotListen, match=rf"^cannot listen on 127\.0\.0\.1:{port}: address already in use$"):
            listen("127.0.0.1", port)
    assert not reachable(port)


@pytest.mark.parametrize("claim", [lambda *address: closing(listen(*address)), bound])
@pytest.mark.parametrize(
    ("host", "named"), [("2001:db8::1", r"\[2001:db8::1\]:80"), ("203.0.113.1", r"203\.0\.113\.1:80")]
)
def test_an_address_of_another_machine_is_named_as_in_a_url(
    claim: Callable[..., AbstractContextManager[Any]], host: str, named: str
) -> None:
    with pytest.raises(CannotListen, match=rf"^cannot listen on {named}: [a-z ]+$"), claim(host, 80):
        pass


def test_an_agent_with_names_listens_on_their_addresses_and_on_loopback() -> None:
    with bound("0.0.0.0", 0, ["localhost"]) as sockets:
        hosts = [listener.getsockname()[0] for listener in sockets]
    assert hosts[0] == "127.0.0.1"
    assert set(hosts) <= {"127.0.0.1", "::1"}
    with pytest.raises(CannotListen, match=r"^cannot listen on no-such\.invalid:0: the name is not known$"):
        bound("0.0.0.0", 0, ["no-such.invalid"]).__enter__()


def test_a_reserved_port_is_nobody_elses_and_takes_no_connections_before_it_is_started() -> None:
    port = free_port()
    with closing(reserve("127.0.0.1", port)) as listener:
        assert not reachable(port)
        with pytest.raises(CannotListen, match="address already in use"):
            bound("127.0.0.1", port).__enter__()
        start(listener)
        assert reachable(port)
        refuse(listener)
        assert not reachable(port)
        with pytest.raises(CannotListen, match="address already in use"):
            bound("127.0.0.1", port).__enter__()
    listen("127.0.0.1", port).close()


def test_an_inherited_socket_is_used_in_place_of_a_new_one_and_handed_on_to_nobody() -> None:
    port = free_port()
    for claim in (lambda fd: closing(listen("127.0.0.1", port, fd)), lambda fd: bound("127.0.0.1", port, fd=fd)):
        parent = reserve("127.0.0.1", port)
        parent.set_inheritable(True)
        with claim(str(parent.detach())) as claimed:
            (listener,) = claimed if isinstance(claimed, list) else [claimed]
            assert listener.getsockname() == ("127.0.0.1", port)
            assert not listener.get_inheritable()


@pytest.mark.parametrize("fd", ["none", "-1", "9999"])
def test_a_descriptor_that_is_no_socket_is_refused(fd: str) -> None:
    with pytest.raises(CannotListen, match=rf"^cannot listen on the inherited socket {fd}: "):
        listen("127.0.0.1", 0, fd)
