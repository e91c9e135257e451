"""The supervisor's word about agents that are not up."""

from __future__ import annotations

import pytest

from pallas_contract.documents import absence
from pallas_contract.documents.reason import Reason


def test_what_is_written_is_read() -> None:
    absences = {"b": Reason("Starting", "waits for a"), "a": Reason("InputRefused", "é: no")}
    text = absence.dump(absences)
    assert absence.parse(text) == absences
    assert text == absence.dump(dict(reversed(absences.items())))


def test_entries_of_another_kind_are_left_out() -> None:
    text = '{"a": {"reason": "Ok", "message": "x"}, "b": 1, "c": {"reason": "Exited"}, "d": {"message": "x"}}'
    assert absence.parse(text) == {}


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_what_is_no_object_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        absence.parse(text)
