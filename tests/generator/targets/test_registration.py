"""`registry.registration` on its way into compose file and values: tokens by reference, a place to keep, a way out."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from pallas_contract.launch import program
from pallas_gen import explain, verify
from pallas_gen.project import load
from pallas_gen.project.configmaps import Delivery
from pallas_gen.project.contents import Contents
from pallas_gen.targets.compose import read_back
from pallas_gen.targets.compose import render as compose
from pallas_gen.targets.helm import render as helm
from tests.problem_lines import without_codes

WRITTEN = """\
name: x
agents:
  scout: {module: agents.scout, port: 8101}
registry:
  registration:
    tokens: {partners: {file: ./keys/partners}, pricing: {file: keys/pricing, agents: [price_feed]}}
"""
ALL = WRITTEN + "    store: true\n    reach: [10.20.0.0/16, 192.0.2.7]\n"


@pytest.fixture
def written(plan, tmp_path: Path):
    """The plan of a text, with token files that hold a canary."""

    def build(text: str):
        (tmp_path / "keys").mkdir(exist_ok=True)
        for name in ("partners", "pricing"):
            (tmp_path / "keys" / name).write_text("canary-0123456789-canary\n")
            (tmp_path / "keys" / name).chmod(0o644)
        return plan(text)

    return build


def rendered(plan, project: str = "project") -> dict[str, Any]:
    text = compose.render(plan, PurePosixPath(project), Contents())[compose.FILE]
    assert "canary" not in text
    return yaml.safe_load(text)


def values(plan) -> dict[str, Any]:
    text = helm.render_values(plan, Delivery())[helm.FILE]
    assert "canary" not in text
    return yaml.safe_load(text)


def test_tokens_are_secret_files_of_the_registry_alone(written) -> None:
    document = rendered(written(WRITTEN))
    targets = [each["target"] for each in document["services"]["registry"]["secrets"]]
    assert targets == ["registration-partners", "registration-pricing"]
    assert {each["file"] for each in document["secrets"].values()} == {"project/keys/partners", "project/keys/pricing"}
    assert "secrets" not in document["services"]["scout"]
    mounted = [each.get("source") for each in document["services"]["scout"]["volumes"]]
    assert "project/keys" not in mounted
    assert "project/keys" not in [each["source"] for each in document["services"]["registry"]["volumes"]]
    made = values(written(WRITTEN))
    assert made["registry"]["secrets"] == {
        "registration-partners": "keys-partners",
        "registration-pricing": "keys-pricing",
    }
    assert made["secrets"]["keys-partners"] == {"file": "keys/partners"}
    assert made["registry"]["stateless"] is False


def test_what_is_kept_has_a_volume_and_nothing_else_has(written) -> None:
    document = rendered(written(ALL))
    assert document["volumes"] == {"registry-state": {}}
    assert document["services"]["registry"]["volumes"][-1] == {
        "type": "volume",
        "source": "registry-state",
        "target": "/state",
    }
    assert document["services"]["registry"]["environment"]["PALLAS_REGISTRATIONS"] == "/state/registrations.db"
    assert document["services"]["registry"]["read_only"] is True
    assert values(written(ALL))["registry"]["state"]["enabled"] is True
    without = rendered(written(WRITTEN))
    assert "volumes" not in without
    assert "PALLAS_REGISTRATIONS" not in without["services"]["registry"]["environment"]
    assert "state" not in values(written(WRITTEN))["registry"]


def test_a_process_keeps_it_beside_the_file(make) -> None:
    fleet = load.load(make(ALL), {}).fleet
    assert program.registry(fleet, "local").env["PALLAS_REGISTRATIONS"] == ".pallas/registrations.db"


@pytest.mark.parametrize(
    ("reach", "egress", "to"),
    [
        ("", None, None),
        ("    reach: [10.20.0.0/16, 192.0.2.7]\n", True, ["10.20.0.0/16", "192.0.2.7/32"]),
        ("    reach: [10.20.0.0/16, agents.example.com]\n", True, None),
    ],
)
def test_the_way_out_is_as_narrow_as_the_file(written, reach: str, egress: bool | None, to: list[str] | None) -> None:
    made = written(WRITTEN + reach)
    registry = values(made)["registry"]
    assert registry.get("egress") is egress
    assert registry.get("egressTo") == (to and [{"ipBlock": {"cidr": each}} for each in to])
    closed = rendered(written(WRITTEN.replace("registration:", "publish: false\n  registration:") + reach))
    assert ("internal" in closed["networks"]["registry"]) is not bool(egress)
    ways = [way for way in explain.connections(made) if (way.caller, way.called) == ("registry", explain.WORLD)]
    assert [way.why for way in ways] == (
        [f"reach of registered agents: {reach[12:-2].removeprefix('[')}"] if egress else []
    )


def test_the_check_sees_a_missing_volume(written) -> None:
    plan = written(ALL)
    document = rendered(plan, "")
    assert list(verify.differences(plan, read_back.workloads(document, plan, PurePosixPath()), "compose.yaml")) == []
    document["services"]["registry"]["volumes"].pop()
    (problem,) = verify.differences(plan, read_back.workloads(document, plan, PurePosixPath()), "compose.yaml")
    assert problem.where.field == "registry.keeps"


def test_nobody_reaches_a_registry_that_is_not_published(make) -> None:
    text = WRITTEN.replace("registration:", "publish: false\n  registration:")
    said = [without_codes(str(problem)).splitlines()[0] for problem in load.load(make(text), {}).warnings]
    assert any(line.endswith("only containers of this fleet reach the registry: it is not published") for line in said)


def test_a_token_among_the_code_is_refused(make, tmp_path: Path) -> None:
    path = make(WRITTEN.replace("./keys/partners", "agents/partners") + "defaults: {files: [agents]}\n")
    (tmp_path / "agents" / "partners").write_text("x")
    with pytest.raises(
        Exception, match="partners: agents/partners lies in `agents/`, which a container gets as a whole"
    ):
        load.load(path, {})
