"""The programs that MCP servers on stdio need, and the image lacks."""

from __future__ import annotations

import pytest

FLEET = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n"
CUSTOM = "image: {agent: mine:1}\n" + FLEET


@pytest.mark.parametrize(
    ("entry", "program"),
    [
        ("{command: ls, args: [run, some/server]}", "ls"),
        ("{command: no-such-program, env: {PATH: /opt}}", "no-such-program"),
        ("{target: ls run server.ts}", "ls"),
        ("{command: uvx, args: [mcp-server-fetch]}", ""),
        ("{target: npx -y some-server}", ""),
        ("{target: '@some/server'}", ""),
        ("{command: python3, args: [server.py]}", ""),
        ("{command: ./server}", ""),
        ("{command: ''}", ""),
        ("{url: 'http://a/mcp'}", ""),
    ],
)
def test_a_program_that_the_image_lacks_is_named_with_its_place(make, run, entry: str, program: str) -> None:
    config = f"default_model: passthrough\nmcp:\n  servers:\n    fetch: {entry}\n"
    code, _, err = run("validate", "-f", str(make(FLEET, fastagent__config__yaml=config)))
    assert code == 0
    place = "fastagent.config.yaml:4:13 mcp.servers.fetch."
    assert (f"warning: {place}" in err and f"the agent image has no `{program}`" in err) == bool(program)
    assert ("has no" in err) == bool(program)


def test_a_program_that_is_nowhere_is_named_as_such(make, run) -> None:
    config = "default_model: passthrough\nmcp:\n  servers:\n    fetch: {command: no-such-program}\n"
    code, _, err = run("validate", "-f", str(make(FLEET, fastagent__config__yaml=config)))
    assert (code, err) == (
        0,
        "warning: fastagent.config.yaml:4:13 mcp.servers.fetch.command: there is no program `no-such-program`, neither "
        "here nor in the agent image: it never starts\n    correct the name or install it; for containers set "
        "`image.agent` to an image that has it, bring the server along under `services`, or call it by URL\n",
    )


def test_an_image_of_ones_own_may_have_it(make, run) -> None:
    config = "mcp: {servers: {fetch: {command: docker}}}\n"
    code, _, err = run("validate", "-f", str(make(CUSTOM, fastagent__config__yaml=config)))
    assert (code, err) == (0, "")
