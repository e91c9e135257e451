"""The cause in what real programs print when they end; each output is one of theirs."""

from __future__ import annotations

import pytest

from pallas_agent_runtime.health import cause

UV = """\
error: No solution found when resolving tool dependencies
  cause: Because nope was not found in the cache and you require nope, we can conclude that this cannot be.

hint: Packages were unavailable because the network was disabled.
"""
UV_BEFORE = """\
  \N{MULTIPLICATION SIGN} No solution found when resolving tool dependencies:
  ╰─▶ Because nope was not found in the package registry and you require
      nope, we can conclude that your requirements are unsatisfiable.

      hint: An index was not named.
"""
UV_CHAIN = """\
error: Failed to fetch: `https://index.example/simple/nope/`
  Caused by: Request failed after 3 retries
  Caused by: dns error
"""
NPM = """\
npm warn Unknown user config "nodedir".
npm error code E404
npm error 404 Not Found - GET https://registry.example/nope - Not found
npm error 404
npm error 404  'nope@*' is not in this registry.
npm error A complete log of this run can be found in: /root/.npm/_logs/x.log
"""
NODE = """\
node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module '/srv/nope.js'
    at Module._load (node:internal/modules/cjs/loader:1038:27)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.20.2
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
    raise json.decoder.JSONDecodeError("bad")
json.decoder.JSONDecodeError: bad
"""
GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "<string>", line 1, in <module>
  | ExceptionGroup: x (1 sub-exception)
  +-+---------------- 1 ----------------
    | ValueError: boom
    +------------------------------------
"""
TYPER = """\
Usage: server [OPTIONS]
Try 'server --help' for help.
╭─ Error ─────────────────────────────╮
│ No such option: --prot              │
╰─────────────────────────────────────╯
"""


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            UV,
            "error: No solution found when resolving tool dependencies: Because nope was not found in the cache and "
            "you require nope, we can conclude that this cannot be.",
        ),
        (
            UV_BEFORE,
            "Because nope was not found in the package registry and you require nope, we can conclude that your "
            "requirements are unsatisfiable.",
        ),
        (UV_CHAIN, "error: Failed to fetch: `https://index.example/simple/nope/`: dns error"),
        (NPM, "npm: Not Found - GET https://registry.example/nope - Not found"),
        (NODE, "Error: Cannot find module '/srv/nope.js'"),
        (TRACEBACK, "json.decoder.JSONDecodeError: bad"),
        (GROUP, "ValueError: boom"),
        (TYPER, "No such option: --prot"),
        ("/usr/bin/python: No module named nope\n", "/usr/bin/python: No module named nope"),
        ("usage: x [-h]\nx: error: the following arguments are required: y\nsee the manual\n", "x: error: the "),
        ("ready\nno configuration\n", "no configuration"),
        ("hint: nothing but advice\n", "hint: nothing but advice"),
        ("\n", ""),
        ("", ""),
    ],
)
def test_the_line_that_names_the_cause(output: str, expected: str) -> None:
    line = cause.line(output.splitlines())
    assert line.startswith(expected) if expected.endswith(" ") else line == expected
