"""Who needs an image beyond the kit's, and what is in it."""

from __future__ import annotations

import re
from pathlib import Path

from pallas_contract import __version__
from pallas_gen.targets.image import dockerfile

ROOT = Path(__file__).parents[3]
BASE = f"pallas-agent:{__version__}"
FLEET = """\
name: My Trip!
agents:
  scout: {card: agents/scout.md, port: 8101%s}
  other: {card: agents/other.md, port: 8102%s}
"""
CONFIG = """\
default_model: passthrough
mcp:
  servers:
    f: {command: uvx, args: [fetch]}
    n: {command: npx, args: ['-y', '@s/n']}
    h: {url: 'http://h.example/mcp'}
"""


def images(plan, make, fleet: str = FLEET % ("", ""), *, servers: str = "", **files: str) -> dict[str, str]:
    """Return the image of each workload; the card of scout names `servers`."""
    folder = make("name: x\nagents: {}\n").parent / "agents"
    (folder / "scout.md").write_text(f"---\nname: scout\nservers: [{servers}]\n---\nHi\n")
    (folder / "other.md").write_text("---\nname: other\n---\nHi\n")
    return {
        workload.host: workload.image for workload in plan(fleet, fastagent__config__yaml=CONFIG, **files).workloads
    }


def test_an_agent_that_needs_nothing_has_the_kits_image(plan, make) -> None:
    result = images(plan, make, servers="h")
    assert (result["scout"], result["other"]) == (BASE, BASE)


def test_only_the_agent_with_a_server_on_stdio_needs_more(plan, make) -> None:
    result = images(plan, make, servers="f")
    assert result["scout"].startswith("my-trip-agent:")
    assert result["other"] == BASE


def test_packages_of_the_code_concern_every_agent_and_one_image_is_enough(plan, make) -> None:
    result = images(plan, make, servers="f", requirements__txt="six\n")
    assert result["scout"] == result["other"] != BASE
    assert result["registry"] == f"pallas-registry:{__version__}"
    more = images(plan, make, servers="f", requirements__txt="idna\n")
    assert more["scout"] != result["scout"], "the tag changes with what is in it"


def test_under_a_tag_of_ones_own_it_changes_all_the_same(plan, make) -> None:
    fleet = FLEET % ("", "") + "image: {names: 'r.example/{name}:rc1'}\n"
    one, other = (images(plan, make, fleet, requirements__txt=text)["scout"] for text in ("six\n", "idna\n"))
    assert re.fullmatch(r"r\.example/my-trip-agent:rc1-[0-9a-f]{12}", one)
    assert one != other


def test_an_agent_with_requirements_of_its_own_has_its_own_image(plan, make) -> None:
    fleet = FLEET % (", requirements: own.txt", "")
    result = images(plan, make, fleet, own__txt="six\n")
    assert result["scout"].startswith("my-trip-scout:")
    assert result["other"] == BASE


def test_an_image_that_is_named_is_taken_as_it_is(plan, make) -> None:
    fleet = FLEET % (", image: 'mine:3'", "")
    assert images(plan, make, fleet, servers="f", requirements__txt="six\n")["scout"] == "mine:3"
    whole = FLEET % ("", "") + "image: {agent: 'all:1'}\n"
    assert set(images(plan, make, whole, servers="f", requirements__txt="six\n").values()) >= {"all:1"}


def test_debian_packages_are_in_everybodys_image(plan, make) -> None:
    result = images(plan, make, FLEET % ("", "") + "image: {packages: [git]}\n")
    assert result["scout"] == result["other"] != BASE


def test_a_pinned_package_of_debian_is_installed_as_it_is_pinned(plan, make, run) -> None:
    pinned = "git=1:2.47.3-0+deb13u1"
    images(plan, make)
    (built,) = plan(FLEET % ("", "") + f"image: {{packages: ['{pinned}']}}\n").built
    assert f" {pinned} && rm -rf" in dockerfile(built.recipe, "x", base=BASE, python="python:9")
    for wrong in ("git=", "git=1; id", "git = 1"):
        code, _, err = run("validate", "-f", str(make(FLEET % ("", "") + f"image: {{packages: ['{wrong}']}}\n")))
        assert (code, "must be the name of a Debian package, or NAME=VERSION" in err) == (2, True)


def test_another_python_is_another_tag_and_the_default_one_is_not(plan, make) -> None:
    wanted = FLEET % ("", "") + "image: {python: '%s'}\n"
    plain = images(plan, make, servers="f")["scout"]
    assert images(plan, make, wanted % "python:3.13-slim", servers="f")["scout"] == plain
    pinned = f"python:3.13-slim@sha256:{'0' * 64}"
    assert images(plan, make, wanted % pinned, servers="f")["scout"] != plain
    result = plan(wanted % pinned, fastagent__config__yaml=CONFIG)
    text = dockerfile(result.recipe, "x", base=BASE, python=result.python_image)
    assert (f"\nFROM {pinned} AS servers\n" in text, "python:3.13-slim " in text) == (True, False)


def test_the_dockerfile_of_a_recipe_holds_what_it_installs(plan, make) -> None:
    images(plan, make)
    folder = make("").parent
    (folder / "agents" / "scout.md").write_text("---\nname: scout\nservers: [f, n]\n---\nHi\n")
    built = plan(
        FLEET % ("", "") + "image: {packages: [git]}\n", fastagent__config__yaml=CONFIG, requirements__txt="six\n"
    ).built
    assert [(package.kind, package.specifier) for package in built[0].recipe.servers] == [
        ("npm", "@s/n"),
        ("python", "fetch"),
    ]
    text = dockerfile(built[0].recipe, "x", base=BASE, python="python:9")
    assert "apt-get install -y -qq --no-install-recommends git" in text
    assert "COPY <<'PALLAS_EOF' /requirements.txt\nsix\nPALLAS_EOF\n" in text
    assert '"specifier": "@s/n"' in text
    assert text.endswith(
        "COPY --from=servers /opt/servers /opt/servers\nENV PATH=$PATH:/opt/servers/bin\nUSER 10001:10001\n"
    )


def test_servers_that_no_image_can_have_are_named(make, run) -> None:
    servers = {
        "a": "uvx, args: [--index-url, x, a]",
        "b": "npx, args: ['${NAME}']",
        "c": "no-such-runtime",
        "d": "uvx, args: [ok]",
        "e": "uvx, args: [--from, 'tool @ https://ci:pw-canary@host.example/tool.whl', tool]",
    }
    text = "".join(f"    {name}: {{command: {line}}}\n" for name, line in servers.items())
    path = make(
        "name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n",
        fastagent__config__yaml=f"mcp:\n  servers:\n{text}",
    )
    err = run("validate", "-f", str(path))[2]
    assert "mcp.servers.a.command: `uvx` is called with options that an image cannot be built by: in a container" in err
    assert "mcp.servers.e.command: a password stands in the URL of its package, and would be copied: in a" in err
    assert "pw-canary" not in err
    assert "mcp.servers.b.command: a variable stands in the name of its package: in a container" in err
    assert "mcp.servers.c.command: there is no program `no-such-runtime`, neither here nor in the agent image" in err
    assert "mcp.servers.d" not in err


def test_another_requirement_builds_no_server_anew(plan, make) -> None:
    """Docker keeps a stage whose text and whose inputs are the same."""
    images(plan, make)
    (make("").parent / "agents" / "scout.md").write_text("---\nname: scout\nservers: [f, n]\n---\nHi\n")
    stages = []
    for requirement in ("six\n", "humanize\n"):
        (built,) = plan(FLEET % ("", ""), fastagent__config__yaml=CONFIG, requirements__txt=requirement).built
        text = dockerfile(built.recipe, "x", base=BASE, python="python:9")
        stages.append({part.partition("\n")[0].rpartition(" ")[2]: part for part in text.split("\nFROM ")[1:]})
    first, second = stages
    assert first.keys() >= {"tools", "server-list", "servers", "requirements"}
    assert {name for name in first if first[name] != second[name]} == {"requirements"}
    read = set(re.findall(r"from=([a-z-]+)", first["servers"]))
    assert read == {"tools", "server-list"}


def test_a_build_starts_from_the_image_that_is_pinned_and_from_no_other(plan, make) -> None:
    """So a digest in `image.python` holds for every stage, and for the pip that is lent to one."""
    pinned = f"python:3.13-slim@sha256:{'0' * 64}"
    images(plan, make, servers="f, n", requirements__txt="six\n")
    built = plan(f"{FLEET % ('', '')}image: {{python: '{pinned}'}}\n").built
    texts = [dockerfile(item.recipe, "x", base=BASE, python=pinned) for item in built]
    texts += [
        (ROOT / name).read_text().replace("${PYTHON}", pinned) for name in ("Dockerfile.agent", "Dockerfile.registry")
    ]
    assert len(texts) == 3
    for text in texts:
        stages = set(re.findall(r"^FROM \S+ AS (\S+)", text, re.MULTILINE))
        sources = set(re.findall(r"^FROM (\S+)|\bfrom=([^,\s]+)", text, re.MULTILINE))
        assert {name for pair in sources for name in pair if name} - stages - {"scratch"} <= {BASE, pinned}
        assert pinned in text
