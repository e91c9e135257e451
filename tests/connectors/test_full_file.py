"""agents.full.yaml is taken as it stands and has all of agents.yaml: what is shown of it holds for that one too."""

from __future__ import annotations

import yaml

from pallas_contract.codes import Code
from pallas_gen.project import load
from pallas_testing.model.reader import read as read_script
from tests.installed import ROOT

EXAMPLE = ROOT / "examples" / "05-atlas"
OWN = {"mail", "calendar", "smart_home"}


def test_it_is_a_fleet_as_it_stands_but_for_passwords_and_packages() -> None:
    loaded = load.load(EXAMPLE / "agents.full.yaml", {})
    assert {warning.code for warning in loaded.warnings} == {Code.NO_SECRET_FILE, Code.MISSING_PACKAGE}
    assert all("agents.full.yaml" in str(warning) or "connectors/" in str(warning) for warning in loaded.warnings)
    read_script(EXAMPLE / "standins" / "full.yaml")


def test_it_has_all_that_agents_yaml_has() -> None:
    plain, full = (yaml.safe_load((EXAMPLE / f"agents{more}.yaml").read_text()) for more in ("", ".full"))
    assert full["services"].keys() - plain["services"].keys() == OWN
    for section, less in (("grants", full["gateway"]["grants"]), ("confirm", full["gateway"]["confirm"])):
        assert [entry for entry in less if entry.get("service") not in OWN] == plain["gateway"][section]
        del full["gateway"][section], plain["gateway"][section]
    assert full["agents"]["family"].pop("depends_on") == ["home_tools", "mail", "calendar", "smart_home", "model"]
    assert plain["agents"]["family"].pop("depends_on") == ["home_tools", "model"]
    for fleet in (plain, full):
        for key in ("card", "description"):
            del fleet["agents"]["family"][key]
        fleet["services"]["model"] = {"provides": fleet["services"]["model"]["provides"]}
        fleet["services"] = {name: entry for name, entry in fleet["services"].items() if name not in OWN}
    assert full == plain
