"""tools/supply_chain/documents/provenance.py: a statement in the shape of in-toto and SLSA."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tools.supply_chain.documents import provenance
from tools.supply_chain.documents.provenance import Run, Source

SOURCE = Source("1.0", "c" * 40, 1_700_000_000, {"b.lock": "b1", "a.lock": "a1"}, "base:1", ("sha256:l1", "sha256:l2"))
RUN = Run("urn:pallas-kit:builder:local", {"docker": "26"}, ("pallas-agent",))


def test_it_names_every_file_image_lock_and_the_commit(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(b"wheel")
    (tmp_path / "a.tgz").write_bytes(b"chart")
    files = {path.name: provenance.sha256(path) for path in tmp_path.iterdir()}
    text = provenance.statement(SOURCE, RUN, files, {"pallas-agent:1.0": "sha256:m1"})
    document = json.loads(text)
    assert (document["_type"], document["predicateType"]) == (
        "https://in-toto.io/Statement/v1",
        "https://slsa.dev/provenance/v1",
    )
    assert [subject["name"] for subject in document["subject"]] == ["a.tgz", "b.whl", "pallas-agent:1.0"]
    assert document["subject"][1]["digest"]["sha256"] == provenance.sha256(tmp_path / "b.whl")
    assert document["subject"][2]["digest"] == {"sha256": "m1"}
    definition = document["predicate"]["buildDefinition"]
    assert set(definition) == {"buildType", "externalParameters", "internalParameters", "resolvedDependencies"}
    assert definition["internalParameters"]["builtTwice"] == ["pallas-agent"]
    commit, *locks, base = definition["resolvedDependencies"]
    assert commit["digest"] == {"gitCommit": "c" * 40}
    assert [(lock["name"], lock["digest"]["sha256"]) for lock in locks] == [("a.lock", "a1"), ("b.lock", "b1")]
    assert (base["name"], base["annotations"]["layers"]) == ("base:1", ["sha256:l1", "sha256:l2"])
    assert len(base["digest"]["sha256"]) == 64
    assert document["predicate"]["runDetails"]["builder"]["id"] == "urn:pallas-kit:builder:local"


def test_a_base_of_a_registry_has_its_digest() -> None:
    source = replace(SOURCE, base_digests=("python@sha256:abc",))
    *_, base = json.loads(provenance.statement(source, RUN, {}, {}))["predicate"]["buildDefinition"][
        "resolvedDependencies"
    ]
    assert (base["uri"], base["digest"]) == ("oci:python@sha256:abc", {"sha256": "abc"})
