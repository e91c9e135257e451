"""One record of the audit: its line, its MAC, and what it says of arguments."""

from __future__ import annotations

import json

import pytest

from pallas_contract.documents import audit_record
from pallas_contract.documents.audit_record import BEGIN, Link, NotOurs

KEY = b"0123456789abcdef"


def test_a_record_is_a_line_of_json_that_names_the_one_before() -> None:
    line, link = audit_record.sealed(KEY, {"event": "decision", "name": "bücher"}, Link(6, "ab" * 32))
    data = json.loads(line)
    assert (data["seq"], data["prev"], data["mac"], data["name"]) == (7, "ab" * 32, link.mac, "bücher")
    assert line.endswith(b"\n")
    entry = audit_record.opened(KEY, line[:-1])
    assert (entry.link, entry.prev, entry.fields["event"]) == (link, "ab" * 32, "decision")
    assert str(link) == f"7:{link.mac}"


def test_a_changed_byte_or_another_key_is_seen() -> None:
    line, _ = audit_record.sealed(KEY, {"caller": "phone"}, Link(0, BEGIN))
    with pytest.raises(NotOurs, match="was changed, or written with another key"):
        audit_record.opened(KEY, line[:-1].replace(b"phone", b"photo"))
    with pytest.raises(NotOurs, match="another key"):
        audit_record.opened(b"another key 0123", line[:-1])
    for text in (b"", b"{}", line[:-2], line[1:-1] + b" "):
        with pytest.raises(NotOurs, match="is no record"):
            audit_record.opened(KEY, text)


def test_text_that_looks_like_a_mac_does_not_end_a_record() -> None:
    line, link = audit_record.sealed(KEY, {"name": f'","mac":"{"0" * 64}"}}'}, Link(0, BEGIN))
    assert audit_record.opened(KEY, line[:-1]).link == link


def test_a_digest_is_of_the_values_and_of_the_key() -> None:
    digest = audit_record.arguments_digest(KEY, {"a": 1, "b": [True, None, "x"]})
    assert digest == audit_record.arguments_digest(KEY, {"b": [True, None, "x"], "a": 1})
    assert digest != audit_record.arguments_digest(KEY, {"a": 1, "b": [True, None, "y"]})
    assert digest != audit_record.arguments_digest(b"another key 0123", {"a": 1, "b": [True, None, "x"]})


def test_files_are_in_order_by_name() -> None:
    names = [audit_record.file_name(first) for first in (1, 9, 10, 2_000_000)]
    assert sorted(names) == names
    assert [audit_record.first_of(name) for name in names] == [1, 9, 10, 2_000_000]
    assert audit_record.first_of("audit-x.jsonl") is None
    assert audit_record.first_of("gateway.db") is None
