"""`make test` and .ci/run: what may be left out, and how all rounds together end. The tools they call are stand-ins."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

TOOLS = (
    "machine",
    "images",
    "cluster",
    "chromium",
    "prometheus",
    "policy",
    "conformance",
    "docs",
    "valkey",
    "versions",
)
ROUNDS = ("quick", "together", "waiting", "pods", "alone")
PYTEST = """\
#!/bin/sh
# Stands in for .venv/bin/python: a round of pytest writes its report, SQLite is as it should be, anything else is run.
[ "$1" != -c ] || exit 0
[ "$1" = -m ] || exec {python} "$@"
echo "$*" >> rounds
[ -z "${PALLAS_TEST_FILES:-}" ] || echo "$TMPDIR" > folder
for argument; do
  [ "${before:-}" != --junitxml ] || report=$argument
  before=$argument
done
name=$(basename "$report" .xml)
[ -z "${PALLAS_TEST_FILES:-}" ] || { cp -r files new && mv new "$PALLAS_TEST_FILES"; }
case $name in quick | again) [ ! -e suite ] || exec {python} "$@" -n 0 --dist no ;; esac
[ ! -e "crash-$name" ] || exit 3
[ ! -e "empty-$name" ] || { echo "<testsuites/>" > "$report"; exit 5; }
if [ -e "fail-$name" ]; then fault='<failure message="no"/>' code=1; else fault="" code=0; fi
[ "$name" = again ] || round=$name
echo "<testsuites><testcase classname='tests.${round:-$FAILED}' name='test_it' time='1.5'>" > "$report"
echo "$fault</testcase></testsuites>" >> "$report"
exit $code
"""


class Copy:
    """The files under test in a folder of their own, with every tool there and well."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        for name in (".ci/run", "tools/test", "tools/lib.sh", "tools/totals.py"):
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(root / name, folder / name)
        for tool in TOOLS:
            self.script(f"tools/{tool}", "#!/bin/sh\n")
        self.script("tools/bytecode.py", "")
        self.script(".venv/bin/python", PYTEST.replace("{python}", sys.executable))
        self.lists(f"tests.{name}::test_it" for name in ROUNDS)
        (folder / "Makefile").write_text("lint:\n\t@true\ntest:\n\t@tools/test $(ARGS)\n")

    def script(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def lists(self, tests: Iterable[str]) -> None:
        """Have the first round find these."""
        self.script("files/TESTS", "".join(f"{test}\n" for test in tests))

    def missing(self, tool: str) -> None:
        self.script(f"tools/{tool}", "#!/bin/sh\nexit 3\n")

    def run(self, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"], **env}
        return subprocess.run(
            command, cwd=self.folder, env=env, check=False, capture_output=True, text=True, timeout=300
        )

    @property
    def rounds(self) -> list[str]:
        """The arguments of each round of pytest."""
        return (self.folder / "rounds").read_text().splitlines()


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Copy:
    return Copy(root, tmp_path)


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != "images"])
@pytest.mark.parametrize("value", ["true", "1"])
def test_nothing_may_be_left_out_where_ci_is_set(copy: Copy, tool: str, value: str) -> None:
    copy.missing(tool)
    done = copy.run("tools/test", CI=value)
    assert done.returncode == 1
    assert "CI would leave out the tests marked" in done.stderr
    assert not (copy.folder / "rounds").exists()


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != "images"])
def test_ci_run_sets_it(copy: Copy, tool: str) -> None:
    copy.missing(tool)
    done = copy.run(".ci/run")
    assert done.returncode != 0
    assert "CI would leave out the tests marked" in done.stderr


def test_elsewhere_what_is_missing_is_left_out_of_each_round_and_named(copy: Copy) -> None:
    copy.missing("conformance")
    copy.missing("chromium")
    done = copy.run("tools/test")
    assert done.returncode == 0
    assert "NOT RUN (not browser and not conformance)" in done.stderr
    assert len(copy.rounds) == 5
    assert all(" and not browser and not conformance" in line for line in copy.rounds)


def test_no_round_begins_where_the_lint_has_failed(copy: Copy) -> None:
    (copy.folder / "Makefile").write_text("lint:\n\t@sleep 0.5; exit 1\n")  # long after all tools have been found
    assert copy.run("tools/test").returncode != 0
    assert not (copy.folder / "rounds").exists()


def test_every_test_is_in_one_round(copy: Copy) -> None:
    """The marks of a round are its own expression, evaluated for every kind of test there is."""
    copy.run("tools/test", CI="1")
    expressions = [re.findall(" -m (.*) -n ", line)[0] for line in copy.rounds]
    heavy = ("docker", "slow", "cluster", "browser", "prometheus")
    others = ("alone", "waits", "beside", "helm", "root", "policy", "conformance", "site", "versions")
    pairs = [{"slow", "alone"}, {"docker", "helm"}, {"docker", "cluster"}, {"slow", "waits"}, {"docker", "beside"}]
    for marks in [set[str](), *({mark} for mark in heavy), {"alone"}, *pairs]:
        names = {mark: mark in marks for mark in (*heavy, *others)}
        assert [bool(eval(text, {}, names)) for text in expressions].count(True) == 1, marks


def test_each_round_reads_only_the_files_with_tests_of_its_marks(copy: Copy) -> None:
    for mark, files in {
        "waits": "w",
        "beside": "b",
        "alone": "a",
        "slow": "sw",
        "docker": "ds",
        "cluster": "cs",
    }.items():
        copy.script(f"files/{mark}", "".join(f"{name}.py\n" for name in files))
    copy.run("tools/test", CI="1")
    read = {Path(line.partition("--junitxml ")[2].split()[0]).stem: line.split(".py") for line in copy.rounds}
    assert {name: sorted(part[-1] for part in parts[:-1]) for name, parts in read.items()} == {
        "quick": [],
        "waiting": ["b", "w"],
        "together": ["d", "s", "w"],
        "pods": ["c", "s"],
        "alone": ["a"],
    }
    (copy.folder / "rounds").unlink()
    copy.run("tools/test", "tests/e2e", CI="1")
    assert [(".py" in line, line.endswith("tests/e2e")) for line in copy.rounds] == [(False, True)] * 5


def test_the_files_of_each_mark_are_listed(root: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    conftest: Any = request.config.pluginmanager.get_plugin(str(root / "tests/conftest.py"))
    items = [item for item in request.session.items if item.path == request.path]
    conftest.list_files(items, tmp_path / "files")
    assert (tmp_path / "files/parametrize").read_text() == "tests/packaging/test_tools_test.py\n"
    assert (tmp_path / "files/TESTS").read_text().splitlines() == [item.nodeid for item in items]


@pytest.mark.parametrize("own", ["alone", "beside", "waits"])
def test_a_file_of_tests_of_a_round_of_their_own_is_read_by_no_other(
    root: Path, request: pytest.FixtureRequest, tmp_path: Path, own: str
) -> None:
    conftest: Any = request.config.pluginmanager.get_plugin(str(root / "tests/conftest.py"))
    marks = {"a.py": ["slow"], "b.py": ["slow", own], "c.py": ["docker"]}
    items = [
        SimpleNamespace(
            path=root / name, nodeid=name, iter_markers=lambda names=names: [SimpleNamespace(name=n) for n in names]
        )
        for name, names in marks.items()
    ]
    conftest.list_files(items, tmp_path / "files")
    listed = {path.name: path.read_text() for path in (tmp_path / "files").iterdir() if path.name != "TESTS"}
    assert listed == {"slow": "a.py\n", own: "b.py\n", "docker": "c.py\n"}


def test_an_end_in_the_first_round_ends_the_one_beside_it(copy: Copy) -> None:
    """It waits for the list of files, which does not come any more."""
    copy.script(".venv/bin/python", "#!/bin/sh\nkill $PPID\nsleep 1\n")
    assert copy.run("tools/test", CI="1").returncode != 0
    end = time.monotonic() + 30
    while left := working_in(copy.folder):
        assert time.monotonic() < end, left
        time.sleep(0.1)


def working_in(folder: Path) -> list[str]:
    """Return the processes whose working directory is `folder`."""
    links = Path("/proc").glob("[0-9]*/cwd")
    return [str(link) for link in links if os.path.realpath(link) == str(folder)]


def test_no_round_waits_for_ever(copy: Copy) -> None:
    copy.run("tools/test", CI="1")
    assert [" --timeout 600 " in f"{line} " for line in copy.rounds] == [True] * 5


def test_the_last_line_counts_all_rounds(copy: Copy) -> None:
    done = copy.run(".ci/run")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "5 passed, 0 failed")
    assert "     1.5 s  tests.alone::test_it" in done.stdout


@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.parametrize("how", ["fail", "crash"])
def test_a_round_that_fails_fails_all_and_keeps_no_other_from_running(copy: Copy, name: str, how: str) -> None:
    (copy.folder / f"{how}-{name}").touch()
    done = copy.run("tools/test")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1 if how == "fail" else 3, "4 passed, 1 failed")
    assert len(copy.rounds) == 5


@pytest.mark.parametrize("name", ROUNDS)
def test_a_test_that_no_round_has_run_fails_all(copy: Copy, name: str) -> None:
    (copy.folder / f"empty-{name}").touch()
    done = copy.run("tools/test", CI="1")
    lines = ["4 passed, 0 failed", f"NOT RUN tests.{name}::test_it"]
    assert (done.returncode, done.stdout.splitlines()[-2:]) == (1, lines)
    assert copy.run("tools/test", "tests/some").returncode == 0, "who says what to run has chosen"


def test_a_list_of_no_tests_fails_all(copy: Copy) -> None:
    copy.lists([])
    done = copy.run("tools/test", CI="1")
    assert done.returncode == 1
    assert re.fullmatch("NOT RUN any: .* names none", done.stdout.splitlines()[-1])


def test_what_measures_the_machine_has_it_to_itself_where_it_may_not_come_first(copy: Copy) -> None:
    copy.script("bin/nice", "#!/bin/sh\necho 0\n")
    done = copy.run("tools/test", PATH=f"{copy.folder}/bin:{os.environ['PATH']}")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "5 passed, 0 failed")
    assert "/alone.xml " in copy.rounds[-1]


@pytest.mark.parametrize("free", [100, 1_000_000])
def test_files_are_in_memory_where_it_is_plentiful_and_gone_with_the_round(copy: Copy, free: int) -> None:
    copy.script("bin/df", f"#!/bin/sh\necho Avail\necho {free}\n")
    copy.script("bin/awk", f"#!/bin/sh\necho {free}\n")
    done = copy.run("tools/test", PATH=f"{copy.folder}/bin:{os.environ['PATH']}", TMPDIR=str(copy.folder))
    assert done.returncode == 0
    folder = (copy.folder / "folder").read_text().strip()
    in_memory = free > 100 and not os.statvfs("/dev/shm").f_flag & os.ST_NOEXEC
    # the copy is in such a folder itself where this test is of the quick round
    assert (Path(folder).parent == Path("/dev/shm"), folder == str(copy.folder)) == (in_memory, not in_memory)
    assert Path(folder).exists() is not in_memory


def test_marks_make_the_rounds_and_nothing_else(copy: Copy) -> None:
    done = copy.run("tools/test", "-m", "docker")
    assert done.returncode == 2
    assert "pick with -k" in done.stderr
