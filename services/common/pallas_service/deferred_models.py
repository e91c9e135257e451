"""pydantic's models and adapters, built when they are first used instead of when their module is imported.

The packages of an agent define some 780 models, of which about 60 are built when it is ready. pydantic has
`defer_build` for it, which a model inherits from its bases: here it is set on the base of all, for as long as packages
are imported. A model defined meanwhile is the same class with the same fields; its validator and serializer are made by
whoever asks for them first, under pydantic's own lock. An adapter of a union of models takes `defer_build` from the
call that makes it: the MCP SDK makes a dozen, of all its messages, and an agent uses few.

pydantic itself is imported by the first of these calls: what it compiles is looked up where that has begun before
(`compiled_texts`).

Before a process is forked, what its forks use is to be built: each would build for itself what all could share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import UnionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ConfigDict, TypeAdapter


def _all() -> ConfigDict:
    from pydantic import BaseModel  # noqa: PLC0415 - see above

    return BaseModel.model_config


def defer() -> None:
    """Have every model and adapter that is made from now on built at its first use."""
    _all()["defer_build"] = True
    from pydantic import TypeAdapter  # noqa: PLC0415 - see above

    if TypeAdapter.__init__ is not _make_later:
        _USUAL.append(TypeAdapter.__init__)
        TypeAdapter.__init__ = _make_later  # type: ignore[method-assign]


def as_usual() -> None:
    """Have every model and adapter that is made from now on built at once; those that wait go on waiting."""
    if _all().pop("defer_build", None):
        from pydantic import TypeAdapter  # noqa: PLC0415 - see above

        TypeAdapter.__init__ = _USUAL[-1]  # type: ignore[method-assign]


_USUAL: list[Callable[..., None]] = []
"""How adapters are made where none waits."""


def _make_later(
    self: TypeAdapter[Any],
    type: object,  # noqa: A002 - pydantic's name for it
    *,
    config: ConfigDict | None = None,
    _parent_depth: int = 2,
    **options: Any,
) -> None:
    """Make an adapter, which waits where its type is a union of models.

    Anything else may have names in it, which are to be looked up where the adapter is made.
    """
    if config is None and isinstance(type, UnionType) and all(map(_is_model, type.__args__)):
        config = {"defer_build": True}
    _USUAL[-1](self, type, config=config, _parent_depth=_parent_depth + 1, **options)


def _is_model(member: object) -> bool:
    from pydantic import BaseModel  # noqa: PLC0415 - see above

    return isinstance(member, type) and issubclass(member, BaseModel)


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
