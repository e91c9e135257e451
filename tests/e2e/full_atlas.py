"""What agents.full.yaml of examples/05-atlas has besides: mail, a calendar and a lamp, through the gateway's door."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urljoin

import httpx

from pallas_testing.fleet import Fleet
from pallas_testing.fleet.start import Running

from .examples import module_of
from .household import Household

_ATLAS = module_of("05-atlas")
_AUDIT = """
import glob
for folder in ("/state/audit", ".pallas/gateway/audit"):
    for path in sorted(glob.glob(f"{folder}/audit-*.jsonl")):
        print(open(path).read(), end="")
"""


def test_mail_the_calendar_and_devices_are_asked_by_tls_of_an_own_authority(fleet: Fleet) -> None:
    mail = _ATLAS.ask(fleet, "phone", "Is there any mail?")
    assert '"subject"' in mail
    assert '"unread"' in mail
    events = _ATLAS.ask(fleet, "phone", "What is on the calendar this week?")
    assert '"summary":"Dinner with Ben"' in events.replace('": "', '":"')
    assert "Kitchen lamp" in _ATLAS.ask(fleet, "phone", "Which devices are there?")


def test_a_mail_and_a_lamp_want_a_parent_and_all_of_it_is_in_the_audit(
    fleet: Fleet, house: Household, running_fleet: Running, tmp_path: Path
) -> None:
    wanted = {"Write a mail to Ben": "send_mail", "Turn the lamp on": "switch_device"}
    for prompt, tool in wanted.items():
        assert "another caller must confirm this call" in _ATLAS.ask(fleet, "phone", prompt)
        (waiting,) = _ATLAS.request(fleet, "parent", "/confirmations")["confirmations"]
        assert waiting["tool"] == tool
        _ATLAS.request(fleet, "parent", f"/confirmations/{waiting['id']}", {"decision": "approve"})
    assert (house.post.taken, house.commands) == ([], [])
    for prompt in wanted:
        answer = _ATLAS.ask(fleet, "phone", prompt)
        assert "must confirm" not in answer, answer
    (envelope,) = house.post.taken
    assert envelope.rcpt_tos == ["ben@example.com"]
    fleet.wait_for(lambda: house.commands == [b'{"state": "ON"}'], within=_ATLAS.PATIENCE)
    kept = tmp_path / "audit-000000000001.jsonl"
    kept.write_text(running_fleet.target.execute("gateway", _AUDIT))
    verify = [sys.executable, "-P", "-m", "pallas_gen", "audit", "verify", str(kept)]
    key = ["--key-file", str(fleet.folder / "secrets" / "audit.key")]
    done = subprocess.run([*verify, *key], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in kept.read_text().splitlines()]
    for tool in wanted.values():
        told = [(record["event"], record.get("reason")) for record in records if record.get("name") == tool]
        assert ("outcome", "answered") in told, told
        assert any(reason == "confirmation_required" for _, reason in told), told
    assert "ben@example.com" not in kept.read_text()  # of arguments it has digests alone


def test_a_server_that_is_away_is_named_and_the_rest_goes_on(fleet: Fleet, house: Household) -> None:
    with house.without_mail():
        answer = _ATLAS.ask(fleet, "phone", "Is there any mail?")
        assert f"{house.host}:{house.ports['imap']} cannot be reached" in answer
        assert "Dinner with Ben" in _ATLAS.ask(fleet, "phone", "What is on the calendar this week?")
    assert '"subject"' in _ATLAS.ask(fleet, "phone", "Is there any mail?")


def test_the_house_is_a_page_that_a_phone_installs(fleet: Fleet) -> None:
    def got(name: str) -> httpx.Response:
        return httpx.get(urljoin(f"{fleet.url('gateway')}/app/", name), timeout=_ATLAS.PATIENCE, trust_env=False)

    page = got("")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert 'rel="manifest"' in page.text
    manifest = got("atlas.webmanifest")
    assert manifest.headers["content-type"] == "application/manifest+json"
    assert (manifest.json()["start_url"], manifest.json()["display"]) == ("/app/", "standalone")
    worker = got("sw.js")
    assert worker.headers["content-type"] == "text/javascript; charset=utf-8"
    listed = re.search(r"const FILES = \[(.*?)\]", worker.text)
    assert listed
    kept = re.findall(r'"([^"]+)"', listed[1])
    kept += [icon["src"] for icon in manifest.json()["icons"]]
    assert {name: got(name).status_code for name in kept} == dict.fromkeys(kept, 200)
    assert got("/confirmations").status_code == 401  # the page is open, what it shows is not


TESTS = [
    test_the_house_is_a_page_that_a_phone_installs,
    test_mail_the_calendar_and_devices_are_asked_by_tls_of_an_own_authority,
    test_a_mail_and_a_lamp_want_a_parent_and_all_of_it_is_in_the_audit,
    test_a_server_that_is_away_is_named_and_the_rest_goes_on,
]
"""Run on the fleets of test_local_atlas.py and test_atlas.py."""
