"""Models of packages that are imported meanwhile are the same models, built at their first use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, PydanticSchemaGenerationError, TypeAdapter

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


def test_an_adapter_of_models_is_built_when_it_is_used() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(defined() | defined())
    assert not adapter.pydantic_complete
    assert adapter.validate_python({"x": "1"}).y == 0
    assert adapter.pydantic_complete


Name = str


@pytest.mark.parametrize("kind", ["list[Name]", "Name | None", list[int], int | None])
def test_what_may_have_names_in_it_is_built_where_these_are_known(kind: Any) -> None:
    adapter = TypeAdapter(kind)
    assert adapter.pydantic_complete


def test_an_adapter_made_with_a_configuration_has_that_one() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(defined() | None, config=ConfigDict(str_to_upper=True))
    assert adapter.pydantic_complete


def test_adapters_are_made_as_usual_afterwards_and_in_code_of_the_project() -> None:
    with deferred_models.suspended():
        assert TypeAdapter(defined() | defined()).pydantic_complete
    deferred_models.defer()  # once more changes nothing
    assert not TypeAdapter(defined() | defined()).pydantic_complete
    deferred_models.as_usual()
    assert TypeAdapter(defined() | defined()).pydantic_complete
    assert TypeAdapter.__init__.__module__ == "pydantic.type_adapter"


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
