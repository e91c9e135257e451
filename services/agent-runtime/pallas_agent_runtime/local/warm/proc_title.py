"""What others read of a process in /proc: its command line, and single variables of its environment; Linux only.

A fork shows those of its parent. Both stand at the start of its stack, where it may write over them (proc(5)), but not
beyond: the parent is started with room for the longest.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

_ARG_START = 48
"""Number of the field in /proc/PID/stat (proc_pid_stat(5)); arg_end, env_start and env_end follow it."""
_FIRST_AFTER_NAME = 3


def set_command_line(command: Sequence[str]) -> None:
    """Show `command`, cut to the room there is, as the command line of this process.

    Raises:
        OSError: the system does not tell where it stands.
    """
    start, end, _, _ = _addresses()
    room = end - start
    # A last byte that is no NUL tells the kernel that this is a title: it is read up to its first NUL.
    title = " ".join(command).encode(errors="surrogateescape")[: room - 2].ljust(room - 1, b"\0")
    ctypes.memmove(start, title + b"\xff", room)


def set_variable(name: str, value: str) -> None:
    """Show `value` as that of variable `name`, which the environment that this process was started with has.

    It changes nothing for the process itself, provided that `os.environ` has a value of its own by then.

    Raises:
        ValueError: there is no such variable, or no room for that value.
        OSError: the system does not tell where it stands.
    """
    _, _, start, end = _addresses()
    block = ctypes.string_at(start, end - start)
    before, mark, after = b"\0".join([b"", block]).partition(f"\0{name}=".encode())
    room = after.find(b"\0")
    text = value.encode(errors="surrogateescape")
    if not mark or len(text) > room:
        raise ValueError(f"no room for {name}={value}")
    ctypes.memmove(start + len(before) + len(mark) - 1, text.ljust(room, b"\0"), room)


def _addresses() -> tuple[int, int, int, int]:
    """Return where arguments and environment of this process start and end."""
    fields = Path("/proc/self/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    first = _ARG_START - _FIRST_AFTER_NAME
    addresses = arg_start, arg_end, env_start, env_end = [int(field) for field in fields[first : first + 4]]
    if not all(addresses):
        raise OSError("/proc/self/stat has no addresses")
    return arg_start, arg_end, env_start, env_end
