"""`python -m pallas_contract URL...`: the probe of a healthcheck, of a pod that waits, and of a chart's test.

Exit 0 when every URL answers as it should, 1 when one does not, 2 for wrong arguments. A healthcheck is one URL of the
own container, every few seconds in every container: it imports a fifth of what the probe does.
"""

from __future__ import annotations

import sys

from pallas_contract.probe import quick


def main() -> int:
    """Ask every URL of the command line and print what each answers; return the exit code."""
    arguments = sys.argv[1:]
    reason = quick.ask(arguments[0]) if len(arguments) == 1 else None
    if reason is None:
        from pallas_contract.probe import command  # noqa: PLC0415 - what a healthcheck does without

        return command.main(arguments)
    print(reason or "ok")
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
