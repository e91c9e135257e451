"""Problems as one document: read back they are the same, and as SARIF they have what its readers need."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from pallas_contract import reports
from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Where

PROBLEMS = [
    Problem(Where("agents.yaml", 3, 5, "agents.a.prt"), "unknown key", "write `port`", code=Code.UNKNOWN_KEY),
    Problem(Where("a b/ü.md", 1, 1), "is empty", level="warning", code=Code.NOT_A_CARD),
    Problem(Where("compose.yaml"), "is missing", code=Code.FILE_DIFFERS),
    Problem(Where("$PALLAS_IMAGES"), "is no pattern", code=Code.WRONG_VARIABLE),
    Problem(Where("-n", field="x"), "belongs to Helm", code=Code.RELEASE_NOT_STOPPED),
]
TEXT = {"type": "string", "minLength": 1}
MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": TEXT}, "additionalProperties": False}


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


RULE = closed(["id"], id=TEXT, name=TEXT, shortDescription=MESSAGE)
NUMBER = {"type": "integer", "minimum": 1}
REGION = closed(["startLine"], startLine=NUMBER, startColumn=NUMBER)
ARTIFACT = closed(["uri"], uri={"type": "string", "pattern": r"^[A-Za-z0-9_.~/%-]+$"})
PLACE = closed(["artifactLocation"], artifactLocation=ARTIFACT, region=REGION)
NAMES = {"type": "array", "items": closed([], fullyQualifiedName=TEXT), "uniqueItems": True}
RESULT = closed(
    ["message"],
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level={"enum": ["none", "note", "warning", "error"]},
    message=MESSAGE,
    locations={"type": "array", "items": closed([], physicalLocation=PLACE, logicalLocations=NAMES)},
)
DRIVER = closed(["name"], name=TEXT, version=TEXT, rules={"type": "array", "items": RULE, "uniqueItems": True})
RUN = closed(
    ["tool"],
    tool=closed(["driver"], driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results={"type": "array", "items": RESULT},
)
RUNS = {"type": "array", "items": RUN}
LOG = closed(["version", "runs"], **{"$schema": TEXT, "version": {"enum": ["2.1.0"]}, "runs": RUNS})
"""The parts of the published schema that are used, closed: it is in no package of a registry, and a copy of its 3,000
lines would be checked for a tenth of them. What is written was held to the whole of it when this was made."""


def test_json_is_read_back_as_it_was() -> None:
    text = reports.render("json", [*PROBLEMS, PROBLEMS[0]], tool="pallas-gen")
    assert reports.parse(text) == sorted(PROBLEMS)
    document = json.loads(text)
    assert (document["errors"], document["warnings"]) == (4, 1)
    assert document["problems"][-1] == {
        "code": "PAL606",
        "title": "file-differs",
        "level": "error",
        "file": "compose.yaml",
        "message": "is missing",
    }


@pytest.mark.parametrize("text", ["", "[]", '{"problems": [{}]}', '{"problems": [{"file": "a", "code": "PAL999"}]}'])
def test_what_is_no_such_document_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its words are JSON's or Python's
        reports.parse(text)


def test_sarif_has_the_shape_of_its_schema() -> None:
    for problems in (PROBLEMS, []):
        jsonschema.validate(json.loads(reports.render("sarif", problems, tool="pallas-gen")), LOG)


def test_sarif_names_rule_place_and_remedy() -> None:
    (run,) = json.loads(reports.render("sarif", PROBLEMS, tool="pallas-gen"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    by_rule = {result["ruleId"]: result for result in run["results"]}
    assert all(rules[result["ruleIndex"]]["id"] == rule for rule, result in by_rule.items())
    assert rules[1] == {"id": "PAL101", "name": "UnknownKey", "shortDescription": {"text": "unknown key"}}
    assert by_rule["PAL101"] == {
        "ruleId": "PAL101",
        "ruleIndex": 1,
        "level": "error",
        "message": {"text": "unknown key\nwrite `port`"},
        "locations": [
            {
                "logicalLocations": [{"fullyQualifiedName": "agents.a.prt"}],
                "physicalLocation": {
                    "artifactLocation": {"uri": "agents.yaml"},
                    "region": {"startLine": 3, "startColumn": 5},
                },
            }
        ],
    }
    assert by_rule["PAL207"]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "a%20b/%C3%BC.md"}
    assert by_rule["PAL011"]["locations"] == [{"logicalLocations": [{"fullyQualifiedName": "$PALLAS_IMAGES"}]}]
    assert by_rule["PAL708"]["locations"] == [{"logicalLocations": [{"fullyQualifiedName": "-n x"}]}]


def test_a_place_in_the_project_becomes_one_from_here() -> None:
    files = [reports.located(problem, "up/desk").where.file for problem in PROBLEMS]
    assert files == ["up/desk/agents.yaml", "up/desk/a b/ü.md", "up/desk/compose.yaml", "$PALLAS_IMAGES", "-n"]
    assert reports.located(PROBLEMS[0], ".") == PROBLEMS[0]
