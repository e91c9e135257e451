"""The constructor `FastAgent(...)` as the code of a project calls it, without what leads to another configuration.

One made from a file of its own would know no member of the fleet, none of its secrets and none of what the kit decides.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from fast_agent import FastAgent

log = structlog.get_logger(__name__)

_ELSEWHERE = ("config_path", "home", "no_home")
"""Parameters that name another configuration than the kit's."""


@contextmanager
def kit_configured(module: str) -> Iterator[None]:
    """Have every FastAgent made meanwhile, by the import of `module`, read the kit's configuration; each other is told.

    fast-agent has no way to hand it one from outside, so its constructor is wrapped for that time.
    """
    original = FastAgent.__init__
    parameters = inspect.signature(original)

    @functools.wraps(original)
    def construct(*args: Any, **kwargs: Any) -> None:
        call = parameters.bind(*args, **kwargs)
        others = {key: call.arguments.pop(key) for key in _ELSEWHERE if call.arguments.get(key)}
        for key, value in others.items():
            log.warning("configuration_not_used", module=module, parameter=key, path=str(value))
        original(*call.args, **call.kwargs)

    FastAgent.__init__ = construct  # type: ignore[method-assign]
    try:
        yield
    finally:
        FastAgent.__init__ = original  # type: ignore[method-assign]
