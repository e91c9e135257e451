"""Whether a service listens where it is asked to, as far as its code tells."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.definitions import read
from pallas_contract.definitions.read import TextOf
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem, Refused

_SIGNS = (names.ENV_BIND, "ENV_BIND")
"""The variable, and the constant of `pallas_contract.names` that holds its name."""


def problems(fleet: ResolvedFleet, tree: Source, text_of: TextOf) -> Iterator[Problem]:
    """Yield a warning per service whose code, with all that it imports from the project, never reads the address."""
    for name, service in fleet.services.items():
        if service.module is None:
            continue
        try:
            paths = read.module_files(service.module, text_of)
        except Refused:  # that it is not Python is told elsewhere
            continue
        if paths and not any(sign in (text_of(path) or "") for path in paths for sign in _SIGNS):
            message = f"`{service.module}` never reads {names.ENV_BIND}: nobody will listen where it is called"
            hint = f"listen on the `address:port` in {names.ENV_BIND}: see docs/services.md"
            yield tree.problem(
                "services", name, "module", message=message, hint=hint, level="warning", code=Code.LISTENS_ELSEWHERE
            )
