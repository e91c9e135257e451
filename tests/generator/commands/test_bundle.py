"""`pallas-gen bundle --verify`."""

from __future__ import annotations

import json
from pathlib import Path

from pallas_gen.bundle import verify


def test_it_needs_the_bundle_alone_and_says_what_is_wrong_with_it(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("bundle", "--verify", "x.tar", "-o", "y")[0] == 2
    assert run("bundle", "--verify", "x.tar")[0] == 2
    (tmp_path / "b").mkdir()
    for name in ("SHA256SUMS", "MANIFEST.json"):
        (tmp_path / "b" / name).write_text("")
    assert run("bundle", "--verify", "b") == (
        1,
        "",
        "MANIFEST.json: was added\n    copy the bundle again\n",
    )
    code, out, err = run("bundle", "--verify", "b", "--format", "json")
    assert (code, [entry["file"] for entry in json.loads(out)["problems"]], err) == (1, ["MANIFEST.json"], "")
    assert run("bundle", "--format", "json")[0] == 2
    monkeypatch.setattr(verify, "problems", lambda store: iter(()))
    assert run("bundle", "--verify", "b")[0] == 0
