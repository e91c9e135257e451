"""The supervisor's word about agents that are not up, and why: a file that `pallas` writes and the registry reads.

A JSON object `{agent: {"reason": code, "message": text}}`; an agent that is up is not in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pallas_contract.documents.reason import Code, Reason

CODES: tuple[Code, ...] = ("Starting", "InputRefused", "Exited")
"""It waits for its turn or is not up yet; it refused its input and is not started again; it ended otherwise."""


def dump(absences: Mapping[str, Reason]) -> str:
    """Return the text of the file, in the order of names."""
    entries = {agent: {"reason": reason.code, "message": reason.message} for agent, reason in absences.items()}
    return json.dumps(entries, sort_keys=True)


def parse(text: str) -> dict[str, Reason]:
    """Return the reason per agent; entries that are none of ours are left out.

    Raises:
        ValueError: the text is no JSON object.
    """
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    reasons = {}
    for agent, entry in data.items():
        fields = entry if isinstance(entry, dict) else {}
        code = next((code for code in CODES if code == fields.get("reason")), None)
        message = fields.get("message")
        if code and isinstance(message, str):
            reasons[agent] = Reason(code, message)
    return reasons
