"""Who listens on a port."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from pallas_contract.launch.listeners import Listener, all_of, listeners

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
ROW = "   0: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 4711 1\n"


def test_the_process_that_listens_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        (listener,) = listeners(server.getsockname()[1])
    assert listener.pid == os.getpid()
    assert str(listener) == f"{Path('/proc/self/comm').read_text().strip()} (pid {os.getpid()})"


def test_who_only_has_the_port_does_not_listen() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert listeners(bound.getsockname()[1]) == []


def process(proc: Path, pid: int, inode: int = 4711, **environ: str) -> None:
    (proc / str(pid) / "fd").mkdir(parents=True)
    (proc / str(pid) / "fd" / "3").symlink_to(f"socket:[{inode}]")
    (proc / str(pid) / "comm").write_text("python3\n")
    (proc / str(pid) / "environ").write_text("".join(f"{key}={value}\0" for key, value in environ.items()))


def table(proc: Path, *rows: str) -> None:
    (proc / "net").mkdir()
    (proc / "net" / "tcp").write_text(HEADER + "".join(rows))


def test_a_member_of_another_fleet_is_named_with_its_fleet(tmp_path: Path) -> None:
    table(tmp_path, ROW.format(port=9000, state="0A"))
    process(tmp_path, 12, PALLAS_RUN="ab12/registry", PALLAS_AGENTS_CONFIG="/home/x/agents.yaml")
    (listener,) = listeners(9000, tmp_path)
    assert str(listener) == "python3 (pid 12: `registry` of /home/x/agents.yaml)"
    assert listener.member == "ab12/registry"


def test_a_supervisor_is_not_named_beside_the_member_that_it_handed_the_socket_down_to(tmp_path: Path) -> None:
    other = ROW.format(port=9000, state="0A").replace("4711", "4712")
    table(tmp_path, ROW.format(port=9000, state="0A"), other)
    process(tmp_path, 11)
    process(tmp_path, 12, PALLAS_RUN="ab12/registry", PALLAS_AGENTS_CONFIG="/x/agents.yaml")
    assert [listener.pid for listener in listeners(9000, tmp_path)] == [12]
    process(tmp_path, 13, 4712)
    assert [listener.pid for listener in listeners(9000, tmp_path)] == [12, 13]


def test_a_socket_that_only_its_owner_sees_is_another_users(tmp_path: Path) -> None:
    table(tmp_path, ROW.format(port=9000, state="0A"))
    assert listeners(9000, tmp_path) == [Listener()]


def test_connections_and_other_ports_are_nobodys_listening(tmp_path: Path) -> None:
    table(tmp_path, ROW.format(port=9000, state="01"), ROW.format(port=9001, state="0A"))
    process(tmp_path, 12)
    assert listeners(9000, tmp_path) == []


def test_a_system_without_proc_tells_nothing(tmp_path: Path) -> None:
    assert listeners(9000, tmp_path / "nowhere") == []


def test_a_fleet_knows_its_own_members_by_whatever_path(tmp_path: Path) -> None:
    file = tmp_path / "desk" / "agents.yaml"
    own = Listener(7, "python3", "ab/scout", str(file))
    for path in (file, tmp_path / "desk" / ".." / "desk" / "agents.yaml", Path(os.path.relpath(file))):
        assert all_of([own], path)
        assert all_of([Listener(7, "python3", "ab/scout", str(path.absolute()))], file)
    assert not all_of([], file)
    assert not all_of([own, Listener(8, "nginx")], file)
    assert not all_of([Listener(8, "python3", "ab/scout", str(tmp_path / "agents.yaml"))], file)
    (tmp_path / "link").symlink_to(file.parent)
    assert all_of([own], tmp_path / "link" / "agents.yaml")
