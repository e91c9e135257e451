"""The host that clients are told, and the address that is listened on."""

from __future__ import annotations

import pytest

from pallas_contract.fleet import source
from pallas_contract.validate import load
from pallas_contract.validate.entry import publish_rules

FLEET = "name: x\nhost: {host}\n{more}agents:\n  scout: {{module: m, port: 8101{agent}}}\n"


@pytest.mark.parametrize(
    ("host", "more", "agent", "warned"),
    [
        ("a.example", "", "", True),
        ("a.example", "registry: {publish: false}\n", ", publish: false", False),
        ("a.example", "registry: {publish: 0.0.0.0}\n", "", True),
        ("a.example", "registry: {publish: 0.0.0.0}\n", ", publish: 0.0.0.0", False),
        ("a.example", "registry: {publish: 127.0.0.2}\n", ", publish: false", True),
        ("a.example", "public_url: 'https://{name}.example'\n", "", False),
        ("localhost", "", "", False),
    ],
)
def test_a_host_elsewhere_and_a_socket_on_loopback(host: str, more: str, agent: str, warned: bool) -> None:
    tree = source.parse(FLEET.format(host=host, more=more, agent=agent), name="agents.yaml")
    problems = list(publish_rules.unreachable(load.parse(tree), tree))
    assert [(str(problem.where), problem.level) for problem in problems] == [
        ("agents.yaml:2:1 host", "warning")
    ] * warned
