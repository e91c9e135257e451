"""pip's settings of this machine for the pip inside a build: only where packages come from."""

from __future__ import annotations

from pathlib import Path

from pallas_gen.images import pip_settings

LISTING = """\
:env:.index-url='https://me:secret@index.example/simple'
:env:.timeout='180'
global.index-url='https://index.example/other'
global.extra-index-url='\\nhttps://one.example\\nhttps://two.example'
install.trusted-host="index.example"
nonsense
"""


def test_a_variable_is_stronger_than_a_file() -> None:
    settings = pip_settings.parse(LISTING)
    assert settings["index-url"] == "https://me:secret@index.example/simple"


def test_the_file_of_a_build_has_the_index_and_nothing_else_of_the_machine() -> None:
    text = pip_settings.pip_conf(pip_settings.parse(LISTING), certificates=True)
    assert text == (
        "[global]\n"
        "index-url = https://me:secret@index.example/simple\n"
        "extra-index-url = https://one.example https://two.example\n"
        "trusted-host = index.example\n"
        "cert = /run/secrets/certificates\n"
    )
    assert pip_settings.pip_conf({}, certificates=False) == "[global]\n"


def test_certificates_are_those_of_pip_before_those_of_a_variable(tmp_path: Path) -> None:
    for name in ("a.pem", "b.pem"):
        (tmp_path / name).touch()
    env = {"SSL_CERT_FILE": str(tmp_path / "b.pem"), "REQUESTS_CA_BUNDLE": "/nowhere.pem"}
    assert pip_settings.certificates({"cert": str(tmp_path / "a.pem")}, env) == str(tmp_path / "a.pem")
    assert pip_settings.certificates({}, env) == str(tmp_path / "b.pem")
    assert pip_settings.certificates({}, {}) == ""


def test_without_pip_the_index_is_that_of_uv(monkeypatch) -> None:
    monkeypatch.setattr(pip_settings, "_pips", lambda: iter([["/nowhere/pip"]]))
    assert pip_settings.read({"UV_DEFAULT_INDEX": "https://index.example/uv"}) == {
        "index-url": "https://index.example/uv"
    }
    assert pip_settings.read({}) == {}
