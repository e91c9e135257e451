"""pydantic's models, built when they are first used instead of when their module is imported.

The packages of an agent define some 780 models, of which about 60 are built when it is ready. pydantic has
`defer_build` for it, which a model inherits from its bases: here it is set on the base of all, for as long as packages
are imported. A model defined meanwhile is the same class with the same fields; its validator and serializer are made by
whoever asks for them first, under pydantic's own lock.

pydantic itself is imported by the first of these calls: what it compiles is looked up where that has begun before
(`compiled_texts`).

Before a process is forked, what its forks use is to be built: each would build for itself what all could share.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ConfigDict


def _all() -> ConfigDict:
    from pydantic import BaseModel  # noqa: PLC0415 - see above

    return BaseModel.model_config


def defer() -> None:
    """Have every model that is defined from now on built at its first use."""
    _all()["defer_build"] = True


def as_usual() -> None:
    """Have every model that is defined from now on built with its class; those that wait go on waiting."""
    _all().pop("defer_build", None)


@contextmanager
def suspended() -> Iterator[None]:
    """Define models as usual for a time: a mistake in one is an error of its definition."""
    deferring = _all().get("defer_build", False)
    as_usual()
    try:
        yield
    finally:
        if deferring:
            defer()
