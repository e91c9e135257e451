"""What is installed for a project's code: of which file, and what in it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from uv import find_uv_bin

from pallas_contract.problems import Problem
from pallas_gen.dependencies import bake, requirements
from tests.problem_lines import without_codes

PYPROJECT = '[project]\nname = "x"\nversion = "1"\ndependencies = [%s]\n'
PYLOCK = """\
lock-version = "1.0"
[[packages]]
name = "six"
version = "1.17.0"
marker = "python_version > '3'"
[packages.sdist]
hashes = {sha256 = "bb"}
[[packages.wheels]]
hashes = {sha256 = "aa"}
[[packages]]
name = "fast_agent-mcp"
version = "1"
[[packages.wheels]]
hashes = {sha256 = "cc"}
"""


def found(path: str | None = None, **files: str) -> tuple[requirements.Files, list[str]]:
    problems: list[Problem] = []
    texts = {name.replace("__", "."): text for name, text in files.items()}
    return requirements.find(texts.get, path, problems), [without_codes(str(problem)) for problem in problems]


def test_nothing_is_needed_where_there_is_no_file() -> None:
    assert found() == ({}, [])


@pytest.mark.parametrize("text", ["", "# six\n", "fast-agent-mcp>=0.5\nPallas_Kit[all]\n", "--pre\n"])
def test_the_kit_and_fast_agent_are_in_every_image(text: str) -> None:
    assert found(requirements__txt=text) == ({}, [])


def test_lines_lose_comments_and_are_joined() -> None:
    text = "six==1.17.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via x\nidna  # why\n"
    assert found(requirements__txt=text)[0] == {
        "requirements.txt": "six==1.17.0 --hash=sha256:aa --hash=sha256:bb\nidna\n"
    }


def test_files_that_a_file_names_are_read_too() -> None:
    text = "-r more.txt\n-r gone.txt\n"
    files, problems = found(requirements__txt=text, more__txt="six\n-r requirements.txt\n")
    assert files == {"requirements.txt": "six\n"}
    assert problems == [
        "more.txt:2:1: names `requirements.txt`, by which it is named itself",
        "requirements.txt:2:1: there is no file `gone.txt` in the project",
    ]


@pytest.mark.parametrize("line", ["-e .", "--editable x", "./a.whl", "../a", "/a.whl", "file:///a", "a @ file:///a"])
def test_what_lies_on_this_machine_is_refused_with_its_line(line: str) -> None:
    files, problems = found(requirements__txt=f"six\n{line}\n")
    assert files == {"requirements.txt": "six\n"}
    assert problems[0].startswith("requirements.txt:2:1: a package of this machine reaches no image\n")


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    files, problems = found(requirements__txt="six\n--index-url https://me:secret@index.example\n")
    assert files == {"requirements.txt": "six\n"}
    assert "secret@" not in problems[0]
    assert "pip's own settings" in problems[0]


def test_dependencies_of_a_pyproject() -> None:
    files, _ = found(pyproject__toml=PYPROJECT % '"six>=1", "fast-agent-mcp"')
    assert files == {"requirements.txt": "six>=1\n"}
    assert found(pyproject__toml=PYPROJECT % '"fast-agent-mcp"')[0] == {}
    _, problems = found(pyproject__toml='[project]\ndynamic = ["dependencies"]\n')
    assert problems[0].startswith("pyproject.toml: its dependencies are dynamic and cannot be read")


def test_a_pylock_becomes_requirements_with_all_hashes() -> None:
    expected = "six==1.17.0 ; python_version > '3' --hash=sha256:aa --hash=sha256:bb\n"
    assert found(pylock__toml=PYLOCK)[0] == {"requirements.txt": expected}
    _, problems = found(pylock__toml='[[packages]]\nname = "x"\n[packages.vcs]\ntype = "git"\n')
    assert problems == ["pylock.toml: `x` has no version with hashes and cannot be installed from an index"]


def test_a_uv_lock_goes_with_its_pyproject() -> None:
    project = PYPROJECT % '"six"'
    assert found(pyproject__toml=project, uv__lock="version = 1\n")[0] == {
        "pyproject.toml": project,
        "uv.lock": "version = 1\n",
    }
    assert found(uv__lock="version = 1\n")[1] == ["uv.lock: has no pyproject.toml beside it, which it locks"]


def test_the_most_exact_file_is_taken() -> None:
    files = {"requirements__txt": "a", "requirements__lock": "b", "pylock__toml": PYLOCK, "pyproject__toml": "x"}
    assert found(**files)[0]["requirements.txt"].startswith("six==1.17.0")
    del files["pylock__toml"]
    assert found(**files)[0] == {"requirements.txt": "b\n"}


def test_a_file_that_an_agent_names() -> None:
    assert found("other.txt", other__txt="six\n", requirements__txt="idna\n")[0] == {"requirements.txt": "six\n"}
    assert found("other.txt")[1][0].startswith("other.txt: no such file\n")
    assert found("pyproject.toml", pyproject__toml="[")[1][0].startswith("pyproject.toml: cannot be read as TOML: ")


@pytest.mark.parametrize(
    "text", ["project = 1\n", '[project]\ndependencies = "six"\n', "[project]\ndependencies = [1]\n"]
)
def test_dependencies_that_are_no_list_are_refused(text: str) -> None:
    assert found(pyproject__toml=text)[1] == ["pyproject.toml: `project.dependencies` must be a list of requirements"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[project]\ndynamic = 1\n"),
        ("pylock.toml", 'packages = ["x"]\n'),
        ("pylock.toml", "packages = 1\n"),
        ("pylock.toml", '[[packages]]\nname = "x"\nversion = "1"\nwheels = [1]\n'),
        ("pylock.toml", '[[packages]]\nname = "x"\nversion = "1"\nwheels = [{hashes = 1}]\n'),
    ],
)
def test_no_shape_of_a_file_ends_in_a_traceback(name: str, text: str) -> None:
    assert found(**{name.replace(".", "__"): text})[0] == {}


UV_LOCK = """\
version = 1
requires-python = ">=3.13"
[[package]]
name = "own"
version = "0"
source = {virtual = "."}
default-groups = ["docs"]
dependencies = [{name = "six"}, {name = "requests", extra = ["socks"]}]
optional-dependencies = {x = [{name = "yarl"}]}
dev-dependencies = {dev = [{name = "pytest"}], docs = [{name = "sphinx"}]}
[[package]]
name = "requests"
version = "1"
source = {registry = "https://index.example/simple"}
dependencies = [{name = "idna"}]
optional-dependencies = {socks = [{name = "pysocks"}], other = [{name = "chardet"}]}
[[package]]
name = "idna"
version = "1"
source = {registry = "https://index.example/simple"}
dependencies = [{name = "requests"}]
""" + "".join(
    f'[[package]]\nname = "{name}"\nversion = "1"\nsource = {{registry = "https://index.example/simple"}}\n'
    for name in ("chardet", "pysocks", "pytest", "six", "sphinx", "yarl")
)


def test_the_same_packages_of_a_uv_lock_count_and_are_installed(tmp_path: Path, monkeypatch) -> None:
    """By uv itself, as in the build."""
    project = '[project]\nname = "own"\nversion = "0"\nrequires-python = ">=3.13"\n'
    (tmp_path / "pyproject.toml").write_text(
        f'{project}[dependency-groups]\ndocs = ["sphinx"]\n[tool.uv]\ndefault-groups = ["docs"]\n'
    )
    (tmp_path / "uv.lock").write_text(UV_LOCK)
    texts: list[str] = []
    monkeypatch.setattr(bake, "requirements", lambda path: texts.append(path.read_text()))
    monkeypatch.setattr(bake, "_uv", lambda _: find_uv_bin())
    bake.main("requirements", tmp_path)
    installed = {line.partition("==")[0] for line in texts[0].splitlines()}
    assert requirements.packages({"uv.lock": UV_LOCK}) == installed == {"six", "requests", "idna", "pysocks"}


@pytest.mark.parametrize(
    ("files", "packages"),
    [
        ({}, set()),
        (
            {"requirements__txt": "# tools\npandas==2.2 \\\n    --hash=sha256:0\n--pre\n\nMy.Lib[x]>=1\n"},
            {"pandas", "My.Lib"},
        ),
        ({"requirements__txt": "six\n", "pyproject__toml": PYPROJECT % '"idna"'}, {"six"}),
        ({"pyproject__toml": PYPROJECT % '"httpx>=0.28", "yarl"'}, {"httpx", "yarl"}),
        ({"pylock__toml": PYLOCK}, {"six"}),
        (
            {"requirements__txt": 'pywin32; sys_platform == "win32"\nsix ; os_name == "posix" --hash=sha256:0\n'},
            {"six"},
        ),
        ({"pyproject__toml": PYPROJECT % '"pywin32; sys_platform == \'win32\'", "six"'}, {"six"}),
        (
            {
                "pyproject__toml": PYPROJECT % '"six"',
                "uv__lock": '[[package]]\nname = "own"\nsource = {virtual = "."}\ndependencies = [{name = "six"},'
                ' {name = "pywin32", marker = "sys_platform == \'win32\'"}]\n'
                '[[package]]\nname = "six"\n[[package]]\nname = "pywin32"\n',
            },
            {"six"},
        ),
        ({"pyproject__toml": PYPROJECT % '"six"', "uv__lock": UV_LOCK}, {"six", "requests", "idna", "pysocks"}),
        ({"pyproject__toml": PYPROJECT % '"six"', "uv__lock": '[[package]]\nname = "six"\n'}, {"six"}),
        ({"pyproject__toml": PYPROJECT % '"six"', "uv__lock": "package = 1\n"}, set()),
    ],
)
def test_the_names_of_what_is_installed(files: dict[str, str], packages: set[str]) -> None:
    assert requirements.packages(found(**files)[0]) == packages
