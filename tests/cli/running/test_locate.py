"""Where the registry is: by option, by the cluster, by environment, by the fleet file."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pallas_cli.arguments import parse
from pallas_cli.main import main
from pallas_cli.running import kubernetes, locate, stacks, target
from pallas_cli.running.locate import Registry
from pallas_cli.running.owner import Fleet, OtherFleet
from pallas_contract.launch import compose_containers, run_files
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


BROKEN = "agents: [\n"
LISTED = "x\t{file}\t127.0.0.1:{port}->8080/tcp"


def write_compose(project: Path) -> Path:
    """Write as much of a compose file as tells which fleet file it is of."""
    file = project / "compose.yaml"
    file.write_text(
        "    environment:\n      PALLAS_AGENTS_CONFIG: /project/agents.yaml\n    volumes:\n"
        "    - type: bind\n      source: agents.yaml\n      target: /project/agents.yaml\n"
    )
    return file


@pytest.mark.parametrize("runs", ["processes", "containers"])
@pytest.mark.parametrize("verb", [["status"], ["call", "desk", "hi"], ["status", "-q"]])
def test_a_fleet_that_runs_is_found_though_its_file_is_broken(
    runs: str, verb: list[str], stand: Stand, project: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    (project / "agents.yaml").write_text(BROKEN)
    compose = write_compose(project)
    stack = compose_containers.stacks(LISTED.format(file=compose, port=urlsplit(stand.url).port))
    listed = {"processes": [], "containers": list(stack)}[runs]
    monkeypatch.setattr(stacks, "all_here", lambda _=None: listed)
    lock = run_files.of(project / "agents.yaml").lock
    lock.parent.mkdir(parents=True)
    with run_files.locked(lock, stand.url) if runs == "processes" else nullcontext():
        assert main(verb) == 0
    printed = capsys.readouterr()
    assert ("desk" in printed.out or "heard hi" in printed.out) == ("-q" not in verb)
    remedy = "`pallas-gen validate` says what is wrong"
    noted = f"agents.yaml cannot be used: {remedy}. The fleet that runs is asked, at {stand.url}\n"
    assert printed.err.startswith(noted) == ("-q" not in verb)


@pytest.mark.parametrize(
    ("published", "url"),
    [
        ({("127.0.0.2", 24200)}, "http://127.0.0.2:24200"),
        ({("::1", 24200)}, "http://[::1]:24200"),
        ({("::1", 24200), ("127.0.0.1", 24200)}, "http://127.0.0.1:24200"),
        ({("127.0.0.1", 24200), ("127.0.0.1", 24201)}, ""),
        (set(), ""),
    ],
)
def test_a_registry_in_containers_is_asked_where_it_is_published(
    published: set[tuple[str, int]], url: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = compose_containers.Stack("desk", (write_compose(project),), frozenset(published))
    monkeypatch.setattr(stacks, "all_here", lambda _=None: [stack])
    assert target.registry_of(project / "agents.yaml") == url


def test_where_nothing_is_known_to_run_the_refusal_says_how_to_name_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr(stacks, "all_here", lambda _: (_ for _ in ()).throw(stacks.NoAnswer("away")))
    (project / "agents.yaml").write_text(BROKEN)
    assert main(["status"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("agents.yaml:2:1: ")
    assert err.endswith("a fleet that runs elsewhere is found by --registry URL, $PALLAS_REGISTRY or -n NAMESPACE\n")
