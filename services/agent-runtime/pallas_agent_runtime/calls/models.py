"""The model behind an answer: told to callers that ask for it (`_meta`), and refused where they want another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pallas_contract import names

KEY = names.META_MODEL
_SHOWN = 80
"""Characters of a model's name from outside that are shown."""


class OtherModel(Exception):
    """A model is wanted that is not the agent's; the text is fit for the caller."""


def check(meta: Mapping[str, Any] | None, model: str, provider: str) -> None:
    """Refuse a call that wants another model than `model` of `provider`: it may leave the provider out.

    Raises:
        OtherModel: it does.
    """
    wanted = (meta or {}).get(KEY) or ""
    if wanted == "":
        return
    full = f"{provider}.{model}"
    if not model or wanted not in (model, full):
        raise OtherModel(f"model: this agent runs on {full if model else 'no model'}, not on {str(wanted)[:_SHOWN]}")


def answered(meta: Mapping[str, Any] | None, model: str) -> dict[str, Any] | None:
    """Return what a result says of the model in its `_meta`; None where nobody asked for it, or there is none."""
    return {KEY: model} if model and KEY in (meta or {}) else None
