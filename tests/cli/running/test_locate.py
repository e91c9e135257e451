"""Where the registry is: by option, by the cluster, by environment, by the fleet file."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

from pallas_cli.arguments import parse
from pallas_cli.running import kubernetes, locate
from pallas_cli.running.locate import Registry
from pallas_cli.running.owner import Fleet, OtherFleet
from pallas_contract.problems import Refused
from tests.cli.conftest import Stand
from tests.served import serving


def found(*words: str) -> str:
    with locate.registry(parse(["status", *words])) as registry:
        return registry.url


def test_the_option_comes_before_the_environment_and_that_before_the_file(
    stand: Stand, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found() == stand.url
    monkeypatch.setenv("PALLAS_REGISTRY", "http://registry.example")
    assert found() == "http://registry.example"
    assert found("--registry", "https://a.example/fleet") == "https://a.example/fleet"


def test_a_release_is_reached_through_the_cluster(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def forwarded(namespace: str, member: str):  # type: ignore[no-untyped-def]
        yield f"http://{member}.{namespace}"

    monkeypatch.setattr(kubernetes, "forwarded", forwarded)
    monkeypatch.setenv("PALLAS_REGISTRY", "http://registry.example")
    assert found("-n", "demo") == "http://registry.demo"
    assert found("-n", "demo", "--registry", "http://a.example") == "http://a.example"


@pytest.mark.parametrize(
    "text", ["localhost:24200", "ftp://a", "http://", "http://me:secret@a", "http://[::1", "http://a:1x"]
)
def test_what_is_no_url_is_refused(text: str, project: Path) -> None:
    with pytest.raises(Refused, match=r"^--registry: .* is no http\(s\) URL"):
        found("--registry", text)


@pytest.mark.parametrize("text", ["http://me:canary@a", "http://me:canary@[::1"])
def test_a_password_in_a_url_that_is_refused_is_not_shown(text: str, project: Path) -> None:
    with pytest.raises(Refused, match=r"^--registry: 'http://\S+@") as refused:
        found("--registry", text)
    assert "canary" not in str(refused.value)


def test_a_public_registry_that_does_not_answer_is_looked_for_on_this_machine(stand: Stand, project: Path) -> None:
    file = project / "agents.yaml"
    file.write_text(f"{file.read_text()}public_url: http://127.0.0.9:9/{{name}}\n")
    assert found() == stand.url


def test_a_public_registry_of_another_fleet_is_passed_over(stand: Stand, project: Path) -> None:
    here = Registry(stand.url, Fleet("demo", project / "agents.yaml"))
    with serving(Stand(fleet={"name": "other", "placement": "container"}).app()) as url:
        public = Registry(url, here.fleet)
        assert locate._answering([public, here]) == here
        assert locate._answering([here, public]) == here


def test_the_hint_says_how_a_fleet_is_started_and_its_registry_named(tmp_path: Path) -> None:
    with pytest.raises(locate.NoRegistry) as trouble:
        locate.members(Registry("http://127.0.0.1:9", Fleet("demo", Path("agents.yaml"))))
    way = "name its registry: --registry URL, $PALLAS_REGISTRY, -n NAMESPACE"
    assert str(trouble.value).endswith(f"    start the fleet (`pallas up`), or {way}")
    with pytest.raises(locate.NoRegistry) as trouble:
        locate.members(Registry("http://127.0.0.1:9"))
    assert str(trouble.value).endswith(f"    N{way[1:]}")


def test_another_fleets_members_are_nobodys_here(stand: Stand, project: Path) -> None:
    stand.fleet = {"name": "other", "placement": "container"}
    with locate.registry(parse(["status"])) as registry, pytest.raises(OtherFleet):
        locate.members(registry)
    with locate.registry(parse(["status", "--registry", stand.url])) as registry:
        assert [member.name for member in locate.members(registry)] == ["desk", "model"]
