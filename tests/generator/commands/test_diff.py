"""`pallas-gen diff`: both sides by name, the exit code by what breaks."""

from __future__ import annotations

import json
from pathlib import Path

from pallas_contract.documents import server_json
from pallas_contract.fleet import source
from pallas_contract.validate import load
from pallas_gen.comparison import side

ONE = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n"


def test_the_exit_code_says_whether_something_breaks(make, run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    make(ONE)
    (tmp_path / "old.yaml").write_text(ONE)
    assert run("diff", "old.yaml") == (0, "no difference\n", "")
    make(ONE.replace("8101", "8102"))
    code, out, err = run("diff", "old.yaml", "agents.yaml")
    assert (code, err) == (1, "")
    assert "http://localhost:8101/mcp -> http://localhost:8102/mcp" in out
    assert run("diff", "old.yaml", "-f", str(tmp_path))[:2] == (code, out)
    make(ONE + "  other: {module: agents.other, port: 8102}\n")
    code, out, _ = run("diff", "old.yaml", "--format", "json")
    assert (code, json.loads(out)["additive"], json.loads(out)["breaking"]) == (0, 1, 0)


def test_wrong_input_is_refused_with_its_place(make, run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    make(ONE)
    (tmp_path / "old.yaml").write_text(ONE.replace("port", "prt"))
    code, out, err = run("diff", "old.yaml")
    assert (code, out) == (2, "")
    assert "old.yaml:3:33 agents.scout.prt: unknown key" in err
    assert run("diff", "agents.yaml", "agents.yaml", "-f", "agents.yaml")[0] == 2
    code, out, err = run("diff", "http://127.0.0.1:1")
    assert (code, out) == (1, "")
    assert err.startswith("no registry answers at http://127.0.0.1:1")


def test_a_running_registry_is_compared_by_what_callers_see(make, run, tmp_path: Path, monkeypatch) -> None:
    """Its agents run as processes, so the addresses of the file are those of processes too."""
    monkeypatch.chdir(tmp_path)
    fleet = load.parse(source.read(make(ONE.replace("8101", "8101, publish: false"))))
    servers = [{"server": server_json.server(fleet, name, None, "local")} for name in fleet.agents]
    monkeypatch.setattr(side, "document", lambda url: {"servers": servers})
    assert run("diff", "http://127.0.0.1:24200") == (0, "no difference\n", "")
    make(ONE.replace("scout:", "scouts:"))
    code, out, _ = run("diff", "http://127.0.0.1:24200")
    assert (code, [line.split() for line in out.splitlines() if "agents." in line]) == (
        1,
        [["callers", "agents.scout", "is", "gone"], ["callers", "agents.scouts", "is", "new"]],
    )
    monkeypatch.setattr(side, "document", lambda url: {"servers": [{}]})
    assert run("diff", "http://127.0.0.1:24200")[::2] == (
        1,
        "what answers at http://127.0.0.1:24200 is no registry of pallas-kit\n",
    )
