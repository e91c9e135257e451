"""Models of packages that are imported meanwhile are the same models, built at their first use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from pydantic import BaseModel, PydanticSchemaGenerationError

from pallas_service import deferred_models


@pytest.fixture(autouse=True)
def deferring() -> Iterator[None]:
    deferred_models.defer()
    yield
    deferred_models.as_usual()


def defined() -> type[BaseModel]:
    class Point(BaseModel):
        x: int
        y: int = 0

    return Point


def test_a_model_is_built_when_it_is_used() -> None:
    point = defined()
    assert not point.__pydantic_complete__
    assert list(point.model_fields) == ["x", "y"]
    assert point.model_validate({"x": "1"}).model_dump() == {"x": 1, "y": 0}
    assert point.__pydantic_complete__


def test_what_is_made_without_validation_is_written_inside_of_anything() -> None:
    class Box(BaseModel):
        content: object

    assert Box(content=[defined().model_construct(x=1)]).model_dump_json() == '{"content":[{"x":1,"y":0}]}'


def test_afterwards_models_are_built_with_their_class() -> None:
    deferred_models.as_usual()
    assert defined().__pydantic_complete__


def test_a_mistake_in_code_of_the_project_is_an_error_of_its_definition() -> None:
    class Anything:
        pass

    with pytest.raises(PydanticSchemaGenerationError), deferred_models.suspended():

        class Mistaken(BaseModel):
            thing: Anything

    assert not defined().__pydantic_complete__


def test_pydantic_comes_with_the_first_call() -> None:
    """It compiles 700 texts as it is imported, which an agent looks up instead once that has begun."""
    code = "import sys; from pallas_service import deferred_models as d; print('pydantic' in sys.modules); d.defer()"
    command = [sys.executable, "-c", f"{code}; print('pydantic' in sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "True"]
