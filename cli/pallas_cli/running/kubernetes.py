"""A member of a release -> a URL on this machine, by `kubectl port-forward`, for as long as it is needed."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pallas_cli.trouble import Trouble
from pallas_contract import names

_FORWARDING = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ->")


@contextmanager
def forwarded(namespace: str, member: str) -> Iterator[str]:
    """Yield the URL of the Service of `member`, without a path.

    Raises:
        Trouble: kubectl is not here, or finds no way.
    """
    command = ["kubectl", "--namespace", namespace, "port-forward", f"service/{names.slug(member)}"]
    command.append(f":{names.CONTAINER_PORT}")
    try:
        process = subprocess.Popen(  # noqa: S603 - no shell, and each argument is one word
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    except FileNotFoundError:
        raise Trouble("kubectl is not here, and -n needs it") from None
    with process:
        try:
            lines = []
            for line in process.stdout or ():
                lines.append(line)
                if match := _FORWARDING.match(line):
                    break
            else:
                raise Trouble(f"no way to {member} in namespace {namespace}: {''.join(lines).strip()}")
            # it prints a line per connection, and would wait where nobody reads them
            threading.Thread(target=process.communicate, daemon=True).start()
            yield f"http://127.0.0.1:{match[1]}"
        finally:
            process.terminate()
