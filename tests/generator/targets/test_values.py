"""The chart's generated files: its defaults, its schema and its README, in step with the model."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from pallas_contract import __version__
from pallas_gen import schema
from pallas_gen.targets.helm import render as helm
from pallas_gen.targets.helm import values_doc

CHART = Path(__file__).parents[3] / "deploy" / "helm" / "pallas"
BEGIN, END = "<!-- values: written by `make schema` -->\n", "<!-- end of values -->\n"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft7Validator:
    document = json.loads(schema.values_schema())
    jsonschema.Draft7Validator.check_schema(document)
    return jsonschema.Draft7Validator(document)


def test_committed_schema_is_the_models(expected) -> None:
    expected(CHART / "values.schema.json", schema.values_schema())


def test_committed_defaults_are_the_models(expected) -> None:
    expected(CHART / "values.yaml", values_doc.commented())
    assert yaml.safe_load(values_doc.commented()) == helm.defaults()


def test_the_readme_has_every_value(expected) -> None:
    text = (CHART / "README.md").read_text()
    before, rest = text.split(BEGIN)
    expected(CHART / "README.md", before + BEGIN + "\n" + values_doc.reference() + "\n" + END + rest.split(END)[1])


def test_the_charts_version_is_the_kits() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_every_value_is_described() -> None:
    document = json.loads(schema.values_schema())
    bare = [
        f"{name}.{key}"
        for name, model in {
            "Values": document,
            **document["definitions" if "definitions" in document else "$defs"],
        }.items()
        for key, value in model.get("properties", {}).items()
        if not value.get("description")
    ]
    assert bare == []


def test_the_schema_is_closed_at_every_level(validator) -> None:
    assert validator.is_valid(helm.defaults())
    assert validator.is_valid(helm._over(helm.defaults(), {"global": {"anything": 1}}))
    for wrong in (
        {"agnets": {}},
        {"agents": {"Bad Name": {}}},
        {"agents": {"a": {"replica": 1}}},
        {"agents": {"a": {"replicas": "2"}}},
        {"agents": {"a": {"resources": {"limits": {"memory": "lots"}}}}},
        {"networkPolicy": {"enable": True}},
        {"defaults": {"nodeSelector": {"disk": "not a label"}}},
        {"images": {"agent": {"name": "x"}}},
        {"agents": {f"a{'b' * 40}": {}}},
    ):
        assert not validator.is_valid(helm._over(helm.defaults(), wrong)), wrong


@pytest.mark.parametrize(
    "path", ["defaults", "defaults.autoscaling", "networkPolicy.enabled", "images.agent", "ingress"]
)
def test_a_default_that_null_has_taken_away_is_missed(validator, path: str) -> None:
    """Helm drops a key that a values file sets to null, and templates would read from nothing."""
    values = block = helm.defaults()
    *parents, key = path.split(".")
    for parent in parents:
        block = block[parent]
    del block[key]
    assert [error.message for error in validator.iter_errors(values)] == [f"{key!r} is a required property"]


def test_what_is_empty_by_default_may_be_taken_away(validator) -> None:
    """As `annotations:` without a value does. So may anything of one agent, which is read over `defaults`."""
    values = helm.defaults()
    del values["ingress"]["annotations"], values["defaults"]["annotations"], values["project"]["config"]
    assert validator.is_valid(values | {"agents": {"a": {"autoscaling": {"enabled": True}, "image": {"tag": "1"}}}})


def test_an_agent_that_remembers_is_not_scaled(validator) -> None:
    for stateless, value, good in (
        (False, {"replicas": 2}, False),
        (False, {"autoscaling": {"enabled": True}}, False),
        (False, {"replicas": 1}, True),
        (True, {"replicas": 2}, True),
    ):
        values = helm.defaults() | {"agents": {"a": {"stateless": stateless, **value}}}
        assert validator.is_valid(values) is good


def test_only_keywords_that_every_helm_reads() -> None:
    newer = ("prefixItems", "unevaluatedProperties", "dependentRequired", "dependentSchemas", "minContains", "$anchor")
    assert not [word for word in newer if f'"{word}"' in schema.values_schema()]
