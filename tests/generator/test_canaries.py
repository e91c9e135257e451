"""Secrets planted wherever a user may write one: refused where they are literal, and in nothing that is generated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pallas_contract.fleet import source
from pallas_contract.problems import Refused
from pallas_gen.targets.table import TARGETS

FORMS = {
    "word": "canary-{n}-s3cret",
    "openai": "sk-proj-{n}CaNaRy0s3cret0s3cret",
    "github": "ghp_{n}CaNaRy0s3cret0s3cret",
    "bearer": "Bearer canary-{n}-s3cret",
    "default": "${{PLANTED:canary-{n}-s3cret}}",
}
"""The form of a literal; each place below takes each of them."""

IN_CONFIG = [
    "openai: {{api_key: '{0}'}}",
    "groq: {{apiKey: '{0}'}}",
    "mcp: {{servers: {{a: {{url: 'http://a/mcp', headers: {{Authorization: '{0}'}}}}}}}}",
    "mcp: {{servers: {{a: {{url: 'http://a/mcp?api_key={0}'}}}}}}",
    "mcp: {{servers: {{a: {{command: python, args: [--token, '{0}']}}}}}}",
    "mcp: {{servers: {{a: {{command: python, env: {{DB_PASSWORD: '{0}'}}}}}}}}",
]
IN_FLEET = [
    "    env: {{API_KEY: '{0}'}}",
    "defaults: {{env: {{SOME_TOKEN: '{0}'}}}}",
    "services: {{model: {{module: agents.model, port: 24203, env: {{PASSWORD: '{0}'}}}}}}",
    "services: {{model: {{module: agents.model, port: 24203, args: ['--secret={0}']}}}}",
]
FLEET = "name: canaries\nagents:\n  scout:\n    module: agents.scout\n    port: 24201\n"
PLACES = [("fastagent.config.yaml", text) for text in IN_CONFIG] + [("agents.yaml", text) for text in IN_FLEET]
CASES = [(file, text, form) for file, text in PLACES for form in FORMS]
HELD = ("s3cret", "CaNaRy")


def planted(make, file: str, text: str, form: str) -> Path:
    literal = text.format(FORMS[form].format(n=CASES.index((file, text, form))))
    if file == "agents.yaml":
        return make(f"{FLEET}{literal}\n")
    return make(FLEET, fastagent__config__yaml=f"{literal}\n")


def holding(folder: Path) -> list[str]:
    """Return the files in a folder that hold any of the canaries."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path.relative_to(folder)) for path in files if any(word in path.read_text() for word in HELD)]


def test_there_are_fifty_canaries() -> None:
    assert len(CASES) == len(set(CASES)) == 50


@pytest.mark.parametrize(("file", "text", "form"), CASES)
def test_each_is_refused_with_its_place_and_the_line_to_write(file, text, form, make, run, tmp_path) -> None:
    agents_yaml = planted(make, file, text, form)
    code, out, err = run("compose", "-f", str(agents_yaml), "-o", str(tmp_path / "out"))
    assert (code, out) == (2, "")
    assert not (tmp_path / "out").exists()
    problem = err.partition(f"{file}:")
    line, hint = "".join(problem[1:]).splitlines()[:2]
    assert line.startswith(f"{file}:{6 if file == 'agents.yaml' else 1}:")
    assert "a secret in plain text" in line
    assert "secrets: {" in hint
    assert "--allow-plain-secrets" in hint
    assert not any(word in err for word in HELD)


@pytest.mark.parametrize("target", [target.name for target in TARGETS])
def test_every_command_that_writes_refuses_and_can_be_told_to_allow(target: str, make, run, tmp_path) -> None:
    agents_yaml = planted(make, *CASES[-1])
    out = tmp_path / "out"
    assert run(target, "-f", str(agents_yaml), "-o", str(out))[0] == 2
    assert not out.exists()
    code, _, err = run(target, "-f", str(agents_yaml), "-o", str(out), "--allow-plain-secrets")
    assert code == 0
    assert "warning: agents.yaml:6:" in err
    assert "`--allow-plain-secrets` lets it through" in err
    assert not any(word in err for word in HELD)


def test_validate_refuses_and_allows_too(make, run) -> None:
    agents_yaml = str(planted(make, *CASES[0]))
    assert run("validate", "-f", agents_yaml)[0] == 2
    assert run("validate", "-f", agents_yaml, "--allow-plain-secrets")[0] == 0


REFERRED = """\
name: canaries
agents:
  scout:
    module: agents.scout
    port: 24201
    depends_on: [other, model]
    secrets: {API_KEY: {file: secrets/agent.txt}}
    access: {tokens: {partner: {file: secrets/caller.txt}}}
  other:
    module: agents.other
    port: 24202
    access: {jwt: {issuer: https://login.example.com, jwks_file: secrets/keys.json, audience: other}, forward: []}
defaults: {secrets: {SOME_TOKEN: {file: secrets/default.txt}}}
access: {tokens: {scout: {file: secrets/fleet.txt}}}
registry: {registration: {tokens: {others: {file: secrets/registration.txt}}}}
services:
  model: {module: agents.model, port: 24203, secrets: {PASSWORD: {file: secrets/service.txt}}}
"""
NAMED = ("agent.txt", "caller.txt", "keys.json", "default.txt", "fleet.txt", "registration.txt", "service.txt")


def secret_files(folder: Path) -> Iterator[Path]:
    yield from (folder / "secrets" / name for name in NAMED)
    yield folder / "fastagent.secrets.yaml"
    yield folder / ".env"


def test_what_is_referred_to_is_in_nothing_that_is_generated(make, run, tmp_path) -> None:
    server = "{url: 'http://a/mcp', headers: {Authorization: 'Bearer ${SOME_TOKEN}'}}"
    config = f"openai: {{api_key: '${{API_KEY}}'}}\nmcp: {{servers: {{a: {server}}}}}\n"
    agents_yaml = make(REFERRED, fastagent__config__yaml=config)
    (tmp_path / "secrets").mkdir()
    for number, path in enumerate(secret_files(tmp_path)):
        canary = f"canary-{number}-s3cret-s3cret"
        texts = {".json": json.dumps({"keys": [{"k": canary}]}), ".yaml": f"openai: {{api_key: {canary}}}\n"}
        path.write_text(texts.get(path.suffix, f"DOT_ENV_KEY={canary}\n" if path.name == ".env" else canary))
    out = tmp_path / "out"
    for target in TARGETS:
        code, stdout, stderr = run(target.name, "-f", str(agents_yaml), "-o", str(out / target.name))
        assert (code, target.name) == (0, target.name)
        assert not any(word in stdout + stderr for word in HELD)
    assert len(list(out.rglob("*.y*ml"))) > 10
    assert holding(out) == []
    for command in (
        ["validate"],
        ["explain", "network"],
        ["verify", "-o", str(out / "compose"), "--target", "compose"],
    ):
        code, stdout, stderr = run(*command, "-f", str(agents_yaml))
        assert code == 0
        assert not any(word in stdout + stderr for word in HELD)


def test_the_search_finds_what_is_there(tmp_path) -> None:
    (tmp_path / "x").write_text("a: canary-1-s3cret")
    assert holding(tmp_path) == ["x"]


@pytest.mark.parametrize("line", ["port: {0}", "replicas: {0}", "version: [{0}]", "title: 5\n    nothing: {0}"])
def test_no_message_repeats_a_value_of_a_known_shape(line: str, make, run) -> None:
    literal = line.format(FORMS["openai"].format(n=0))
    code, _, err = run("validate", "-f", str(make(f"{FLEET.replace('    port: 24201', '')}    {literal}\n")))
    assert code == 2
    assert not any(word in err for word in HELD)


def test_broken_yaml_repeats_no_line_of_a_file(make) -> None:
    path = make("name: x\nagents: {a: {env: {API_KEY: canary-s3cret: x}}}\n")
    with pytest.raises(Refused) as refused:
        source.read(path)
    assert not any(word in str(refused.value) for word in HELD)
