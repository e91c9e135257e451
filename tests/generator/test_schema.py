"""schema/agents.schema.json: committed, in step with the model, and agreeing with it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from pallas_gen import schema

ROOT = Path(__file__).parent.parent.parent


def test_committed_schema_is_the_models(expected) -> None:
    expected(ROOT / "schema" / "agents.schema.json", schema.agents_schema())


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    made = json.loads(schema.agents_schema())
    assert made["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$schema"]
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*/agents.yaml")), ids=lambda path: path.parent.name)
def test_examples_satisfy_the_schema(path: Path, validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(yaml.safe_load(path.read_text()))


def test_the_schema_refuses_what_the_model_refuses(validator: jsonschema.Draft202012Validator) -> None:
    good = {"name": "x", "agents": {"a": {"module": "m", "port": 1}}}
    assert validator.is_valid(good)
    assert not validator.is_valid(good | {"registry_prot": 1})
    assert not validator.is_valid(good | {"agents": {}})
    assert not validator.is_valid(good | {"agents": {"a": {"module": "m", "port": "1"}}})


def test_every_key_is_described() -> None:
    document = json.loads(schema.agents_schema())
    bare = [
        f"{name}.{key}"
        for name, model in {"Fleet": document, **document["$defs"]}.items()
        for key, value in model.get("properties", {}).items()
        if "description" not in value
    ]
    assert bare == []
