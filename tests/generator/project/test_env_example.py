"""`.env.example`: written from the references that were found, and never over a file of the user's."""

from __future__ import annotations

from pathlib import Path

from pallas_gen.output import yaml as yaml_out

FLEET = "name: x\nagents:\n  scout: {module: agents.scout, port: 24201, secrets: {GIVEN: {file: key.txt}}}\n"
CONFIG = """\
default_model: anthropic.claude
groq: {api_key: '${GROQ_API_KEY}', base_url: '${URL:http://x}'}
mcp: {servers: {a: {url: 'http://a/mcp', headers: {A: 'Bearer ${GIVEN}', B: '${SHARED_TOKEN}'}}}}
"""
BODY = """\
# the key of anthropic, for default_model in fastagent.config.yaml
ANTHROPIC_API_KEY=
# groq.api_key in fastagent.config.yaml
GROQ_API_KEY=
# mcp.servers.b.access_token in fastagent.secrets.yaml
OTHER=
# mcp.servers.a.headers.B in fastagent.config.yaml
SHARED_TOKEN=
"""


def test_the_references_and_who_asks_for_them(make, run, tmp_path: Path) -> None:
    secrets = "mcp: {servers: {b: {url: 'http://b/mcp', access_token: '${OTHER}'}}}\n"
    path = make(FLEET, fastagent__config__yaml=CONFIG, fastagent__secrets__yaml=secrets, key__txt="canary-s3cret")
    (tmp_path / ".env").write_text("GROQ_API_KEY=canary-s3cret\n")
    assert run("compose", "-f", str(path))[0] == 0
    text = (tmp_path / ".env.example").read_text()
    assert text.startswith(f"{yaml_out.MARK} ")
    assert text.endswith(f"\n{BODY}")
    assert "s3cret" not in text
    first = (tmp_path / "compose.yaml").read_bytes()
    code, out, _ = run("compose", "-f", str(path))
    assert (code, out.count("unchanged")) == (0, 2)
    assert (tmp_path / "compose.yaml").read_bytes() == first
    assert ".env.example" not in first.decode()


def test_one_of_the_users_own_is_left_alone(make, run, tmp_path: Path) -> None:
    path = make(FLEET, fastagent__config__yaml=CONFIG, key__txt="x")
    (tmp_path / ".env.example").write_text("MINE=\n")
    assert run("compose", "-f", str(path), "--force")[0] == 0
    assert (tmp_path / ".env.example").read_text() == "MINE=\n"


def test_none_where_nothing_is_asked_for_and_none_on_stdout(make, run, tmp_path: Path) -> None:
    path = make(FLEET, key__txt="x")
    assert run("compose", "-f", str(path))[0] == 0
    assert not (tmp_path / ".env.example").exists()
    (tmp_path / "fastagent.config.yaml").write_text(CONFIG)
    code, out, _ = run("compose", "-f", str(path), "--stdout")
    assert code == 0
    assert "GROQ_API_KEY=" not in out
