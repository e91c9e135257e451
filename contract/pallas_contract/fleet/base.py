"""What every section of agents.yaml has in common: strict models, and secrets by reference."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1)]


class Written(BaseModel):
    """Strict: no unknown key, no coercion of a text into a number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class SecretFile(Written):
    """A secret by reference: the file whose content becomes the value."""

    file: Text
    """Path of the file, relative to agents.yaml or absolute."""
