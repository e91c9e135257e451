"""tools/shrink.py: what it takes away is not missed by those who are left."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import shrink

LEXERS = """
from pygments.lexers import get_all_lexers, get_lexer_by_name, guess_lexer_for_filename, load_lexer_from_file
from pygments.util import ClassNotFound
from rich.console import Console
from rich.syntax import Syntax
import io, pygments.lexers as lexers

for name in ("python", "pytb", "json", "yaml", "bash", "console", "diff", "text"):
    print(name, get_lexer_by_name(name).name)
names = [name for name, *_ in get_all_lexers(plugins=False)]
print(len(names), all(getattr(lexers, name, None) for name in lexers.LEXERS))
for name in ("abap", "html"):
    try:
        get_lexer_by_name(name)
    except ClassNotFound:
        print(name, "is none")
console = Console(file=io.StringIO(), width=40)
console.print(Syntax("<p>text</p>", "html"))
print(console.file.getvalue().strip())
print(guess_lexer_for_filename("a.py", "").name)
"""
PRINTED = """\
python Python
pytb Python Traceback
json JSON
yaml YAML
bash Bash
console Bash Session
diff Diff
text Text only
"""


@pytest.fixture
def site_packages(tmp_path: Path) -> Path:
    for name in ("pygments", "wcwidth"):
        origin = importlib.util.find_spec(name).origin  # type: ignore[union-attr]
        assert origin is not None
        shutil.copytree(Path(origin).parent, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(site_packages: Path, code: str) -> str:
    program = f"import sys; sys.path.insert(0, {str(site_packages)!r})\n{code}"
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    ).stdout


def test_a_closed_image_has_few_lexers_and_knows_of_no_other(site_packages: Path) -> None:
    shrink.thin_lexers(site_packages)
    assert {path.stem for path in (site_packages / "pygments" / "lexers").glob("*.py")} == set(shrink.LEXERS)
    first, _, rest = run(site_packages, LEXERS).partition("text Text only\n")
    assert f"{first}text Text only\n" == PRINTED
    count, *lines = rest.splitlines()
    assert 20 < int(count.split()[0]) < 60
    assert count.endswith(" True")
    assert lines == ["abap is none", "html is none", "<p>text</p>", "Python"]


def test_widths_are_those_of_before_where_no_terminal_is_known(site_packages: Path) -> None:
    code = "import wcwidth; print([wcwidth.wcswidth(text) for text in ('abc', 'コン', '👩‍🚀', 'e\\u0301')])"
    before = run(site_packages, code)
    shrink.shrink(site_packages)
    assert not list(site_packages.glob(shrink.TERMINALS))
    assert run(site_packages, code) == before
    ghostty = f"import os; os.environ['TERM_PROGRAM'] = 'ghostty'\n{code}"
    assert run(site_packages, ghostty).count(",") == 3


def test_only_what_is_never_imported_by_an_agent_stays_uncompiled(tmp_path: Path) -> None:
    lexers = ("pygments/lexers/abap.py", "pygments/lexers/python.py")
    for name in (*lexers, "a.py", "fast_agent/core/b.py", "fast_agent/acp/c.py", "authlib/d/e.py", "authlib.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    names = [path.relative_to(tmp_path).as_posix() for path in shrink.compiled(tmp_path)]
    assert names == ["a.py", "authlib.py", "fast_agent/core/b.py", "pygments/lexers/python.py"]


def test_of_packages_that_are_large_only_what_is_imported_is_compiled(tmp_path: Path) -> None:
    for name in ("openai/used.py", "openai/types/unused.py", "mdurl/a.py", "other/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    imported = ["/elsewhere/openai/types/unused.py", str(tmp_path / "openai" / "used.py")]

    def names(*arguments: list[str]) -> list[str]:
        return [path.relative_to(tmp_path).as_posix() for path in shrink.compiled(tmp_path, *arguments)]

    assert names() == ["mdurl/a.py", "openai/types/unused.py", "openai/used.py", "other/b.py"]
    assert names(imported) == ["mdurl/a.py", "openai/used.py", "other/b.py"]
    assert names([], ["mdurl"]) == ["openai/types/unused.py", "openai/used.py", "other/b.py"]


def test_no_call_of_the_build_goes_to_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, str]] = []

    async def ask() -> None:
        asked.append(dict(os.environ))

    proxies = {"HTTP_PROXY": "http://proxy:3128", "https_proxy": "http://proxy:3128", "NO_PROXY": "example.org"}
    monkeypatch.setattr(os, "environ", {"LANG": "C", **proxies})
    monkeypatch.setattr(shrink, "WALKED", ())
    monkeypatch.setattr(shrink, "ALSO", ())
    monkeypatch.setattr(shrink, "_ask", ask)
    assert shrink.__file__ in shrink.imported()
    assert asked == [{"LANG": "C"}]
