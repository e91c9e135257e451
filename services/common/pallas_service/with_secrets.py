"""`python -m pallas_service.with_secrets MODULE ARGUMENTS`: a module of the project, its secret files as variables.

So a service finds its secret under the same name in a container, which has files, and as a process of `pallas`.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path

from pallas_contract import limited_file, names
from pallas_contract.problems import Refused


def main(arguments: Sequence[str], environ: MutableMapping[str, str], secrets: Path) -> int:
    """Run the module that is the first argument, the others its own; return 2 where a secret cannot be read."""
    try:
        for path in sorted(secrets.glob("*")):
            if path.name.isidentifier() and path.is_file():
                environ.setdefault(path.name, _value(path))
    except Refused as refused:
        sys.stderr.writelines(f"{problem}\n" for problem in refused.problems)
        return 2
    module, *rest = arguments
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


def _value(path: Path) -> str:
    try:
        text = limited_file.text(path)
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text or "\0" in text:
        # imported to say why alone: it would take 24 MiB of each service
        from pallas_service import secret_text  # noqa: PLC0415

        text = secret_text.read(path)
    return text.removesuffix("\n").removesuffix("\r")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ, Path(names.SECRETS_DIR)))
