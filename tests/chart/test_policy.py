"""What three well-known judges say of the chart: kube-score, checkov, and the API server's own Pod Security Standards.

What stays as it is stands in `waivers/TOOL.yaml` with its reason; a waiver that nothing needs any more is a failure.
"""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

pytestmark = [pytest.mark.helm, pytest.mark.policy, pytest.mark.slow]

BROKEN = "broken"
"""A topology with one fault that every judge must see: without it a judge that sees nothing would pass."""
WAIVERS = Path(__file__).parent / "waivers"


class Finding(NamedTuple):
    """`thing` is `Kind/name`."""

    check: str
    thing: str
    topology: str


class Waiver(NamedTuple):
    """`things` are patterns of `Kind/name`."""

    check: str
    things: list[str]
    reason: str

    def covers(self, finding: Finding) -> bool:
        return finding.check == self.check and any(fnmatchcase(finding.thing, pattern) for pattern in self.things)


def run(*command: str | Path, given: str = "") -> str:
    """Standard output. Both kube-score and checkov exit 1 with findings."""
    done = subprocess.run(
        list(map(str, command)), check=False, input=given, capture_output=True, text=True, timeout=300
    )
    assert done.stdout, f"{command[0]}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def commands(root: Path) -> Path:
    """The folder of the judges."""
    return Path(run(root / "tools" / "policy").strip())


@pytest.fixture(scope="module")
def folder(topologies, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file per topology, and the broken one."""
    target = tmp_path_factory.mktemp("manifests")
    for name, manifests in topologies.items():
        (target / f"{name}.yaml").write_text(yaml.safe_dump_all(manifests.objects))
    objects = copy.deepcopy(topologies["one"].objects)
    for item in objects:
        if item["kind"] == "Deployment":
            item["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    (target / f"{BROKEN}.yaml").write_text(yaml.safe_dump_all(objects))
    return target


def kube_score(commands: Path, folder: Path) -> Iterator[Finding]:
    """What it calls critical."""
    critical = 1
    for file in folder.iterdir():
        for thing in json.loads(run(commands / "kube-score", "score", "--output-format", "json", file)):
            name = f"{thing['type_meta']['kind']}/{thing['object_meta']['name']}"
            for check in thing["checks"]:
                if not check["skipped"] and check["grade"] <= critical:
                    yield Finding(check["check"]["id"], name, file.stem)


def checkov(commands: Path, folder: Path) -> Iterator[Finding]:
    """Every failed check. It takes ten seconds to start, so it starts once."""
    options = ("--framework", "kubernetes", "--quiet", "--compact", "--skip-download", "-o", "json")
    report = json.loads(run(commands / "checkov", "-d", folder, *options))
    assert report["summary"]["parsing_errors"] == 0
    for failed in report["results"]["failed_checks"]:
        kind, _, name = failed["resource"].split(".", 2)
        yield Finding(failed["check_id"], f"{kind}/{name}", Path(failed["file_path"]).stem)


def podsecurity(commands: Path, folder: Path) -> Iterator[Finding]:
    """Every pod that a namespace enforcing `restricted` would refuse."""
    for file in folder.iterdir():
        objects = [item for item in yaml.safe_load_all(file.read_text()) if item["kind"] in ("Deployment", "Pod")]
        pods = {f"{item['kind']}/{item['metadata']['name']}": item["spec"].get("template", item) for item in objects}
        named = [{"metadata": {"name": name}, "spec": pod["spec"]} for name, pod in pods.items()]
        for broken in json.loads(run(commands / "podsecurity", given=json.dumps(named))):
            yield Finding(broken["check"], broken["pod"], file.stem)


JUDGES: dict[str, Callable[[Path, Path], Iterator[Finding]]] = {
    "kube-score": kube_score,
    "checkov": checkov,
    "podsecurity": podsecurity,
}
SEEN = {
    "kube-score": "container-security-context-privileged",
    "checkov": "CKV_K8S_16",
    "podsecurity": "privileged",
}
"""What each calls the fault of the broken topology."""


@pytest.mark.parametrize("judge", JUDGES)
def test_nothing_is_found_but_what_was_waived(commands: Path, folder: Path, judge: str) -> None:
    found = set(JUDGES[judge](commands, folder))
    assert SEEN[judge] in {finding.check for finding in found if finding.topology == BROKEN}

    found = {finding for finding in found if finding.topology != BROKEN}
    written: list[dict[str, Any]] = yaml.safe_load((WAIVERS / f"{judge}.yaml").read_text())
    waivers = [Waiver(**each) for each in written]
    assert all(waiver.reason for waiver in waivers)
    assert sorted(finding for finding in found if not any(waiver.covers(finding) for waiver in waivers)) == []
    assert [waiver for waiver in waivers if not any(waiver.covers(finding) for finding in found)] == []
