"""`python -m pallas_contract URL...`: the probe of a healthcheck, of a pod that waits, and of a chart's test.

Exit 0 when every URL answers as it should, 1 when one does not, 2 for wrong arguments. A healthcheck is one URL of the
own container, again and again in every container: it imports a fifth of what the probe does, also where it waits.
"""

from __future__ import annotations

import sys
import time

from pallas_contract.probe import quick


def main() -> int:
    """Ask every URL of the command line and print what each answers; return the exit code."""
    arguments = sys.argv[1:]
    seconds, url = _healthcheck(arguments)
    deadline = time.monotonic() + seconds
    reason = quick.wait(url, seconds)
    if reason is None:
        from pallas_contract.probe import command  # noqa: PLC0415 - what a healthcheck does without

        remaining = max(0.0, deadline - time.monotonic())
        return command.main(["--wait", f"{remaining:g}", url] if seconds else arguments)
    print(reason or "ok")
    return 1 if reason else 0


def _healthcheck(arguments: list[str]) -> tuple[float, str]:
    """Return how long to wait for which URL, in seconds; an empty URL where these are not a healthcheck's arguments."""
    if len(arguments) == 1:
        return 0.0, arguments[0]
    if len(arguments) == 3 and arguments[0] == "--wait" and arguments[1].isdecimal():
        return float(arguments[1]), arguments[2]
    return 0.0, ""


if __name__ == "__main__":
    sys.exit(main())
