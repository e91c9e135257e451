"""The user's code as text: within the folder, within limits, and read once."""

from __future__ import annotations

import pytest

from pallas_contract.problems import Refused
from pallas_contract.project import code


def test_texts_by_their_path_each_read_once(tmp_path) -> None:
    (tmp_path / "a.py").write_text("a")
    text_of = code.reader(tmp_path)
    assert (text_of("a.py"), text_of("b.py"), text_of("")) == ("a", None, None)
    (tmp_path / "a.py").write_text("b")
    assert text_of("a.py") == "a"


def test_the_mark_that_windows_editors_write_is_no_text(tmp_path) -> None:
    (tmp_path / "a.py").write_bytes("\ufeffa = 1".encode())
    assert code.reader(tmp_path)("a.py") == "a = 1"


def test_what_a_link_leads_to_outside_is_not_there(tmp_path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "out.py").touch()
    (folder / "in.py").touch()
    (folder / "link.py").symlink_to(tmp_path / "out.py")
    (folder / "same.py").symlink_to("in.py")
    text_of = code.reader(folder)
    assert [text_of(path) for path in ("link.py", "../out.py", "same.py")] == [None, None, ""]


@pytest.mark.parametrize(
    ("content", "message"), [(b"\xff", "is not UTF-8 text"), (b"#" * (1 + (1 << 20)), "is larger than 1 MiB")]
)
def test_what_is_no_code(tmp_path, content: bytes, message: str) -> None:
    (tmp_path / "a.py").write_bytes(content)
    with pytest.raises(Refused, match=message):
        code.reader(tmp_path)("a.py")
    with pytest.raises(Refused, match="cannot be read: File name too long"):
        code.reader(tmp_path)("x" * 300)


def test_a_module_may_name_its_encoding(tmp_path) -> None:
    text = "# coding: latin-1\r\nname = 'caf\xe9'\r\n"
    for name in ("a.py", "a.md"):
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    assert code.reader(tmp_path)("a.py") == text.replace("\r\n", "\n")
    with pytest.raises(Refused, match="is not UTF-8 text"):
        code.reader(tmp_path)("a.md")


@pytest.mark.parametrize("encoding", ["hex", "none-such"])
def test_an_encoding_that_python_does_not_read_is_refused(tmp_path, encoding: str) -> None:
    (tmp_path / "a.py").write_text(f"# coding: {encoding}\n")
    with pytest.raises(Refused, match=f"a.py: is not Python: .*{encoding}"):
        code.reader(tmp_path)("a.py")
