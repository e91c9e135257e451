"""The fixture `conformance`: an agent or a registry of a test, held to the contract.

pytest imports this module in every project that loads it, so it imports nothing but pytest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pallas_testing.conformance.run import Kind, Report
    from pallas_testing.model import ScriptedModel


def check(
    url: str,
    *,
    kind: Kind | None = None,
    message: str = "",
    reply: str = "",
    model: ScriptedModel | None = None,
    token: str = "",
) -> Report:
    """Return the report on the agent or registry at `url`, which breaks nothing.

    With `message` turns are observed, by `reply` with what the model answers; `model` is asked whether `get_health`
    reached it. `token` is a bearer token.

    Raises:
        AssertionError: it breaks a requirement; it shows each, with what was sent, what came and what is right.
    """
    __tracebackhide__ = True
    import asyncio  # noqa: PLC0415 - only where a test wants it
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - the same

    from pallas_testing.conformance import report, run  # noqa: PLC0415 - the same
    from pallas_testing.conformance.evidence import Turn  # noqa: PLC0415 - the same

    question = run.Question(
        url=url,
        kind=kind,
        turn=Turn(message, reply) if message else None,
        model_requests=(lambda: len(model.requests)) if model is not None else None,
        token=token,
    )
    with ThreadPoolExecutor(1) as executor:  # the caller's thread may have a loop of its own
        try:
            judged = executor.submit(asyncio.run, run.check(question)).result()
        except run.NobodyThere as error:
            raise AssertionError(str(error)) from None
    if not judged.conformant:
        raise AssertionError(report.broken(judged))
    return judged


@pytest.fixture
def conformance() -> Callable[..., Report]:
    """Return `conformance(url, message=...)`, which fails where an agent or a registry breaks the contract."""
    return check
