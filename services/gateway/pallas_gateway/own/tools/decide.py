"""The tool by which an approver's own client asks its user (MCP, Elicitation): the user decides, and no argument does.

A question goes to whoever shows the token of one who may confirm, and never to the client whose call waits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as t
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pallas_gateway.confirmation.decisions import STATES, Decisions
from pallas_gateway.own.admission import Context
from pallas_gateway.own.failures import Failed
from pallas_gateway.policy.policy import Policy, principal_name
from pallas_service.access.caller import Caller, caller
from pallas_service.sqlite_file import CannotStore

NAME = "decide_confirmations"
_TOOL = t.Tool(
    name=NAME,
    description="Ask the user of this client to approve or refuse the oldest call that waits for a confirmation.",
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
)
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"decision": {"type": "string", "title": "Decision", "enum": sorted(STATES)}},
    "required": ["decision"],
}
_ELSEWHERE = "Decide on the page of calls of the gateway, /console#/calls, or at /confirmations."


class Decide:
    """The tool, for callers that may confirm something by `policy`; None as `decisions` where nothing is confirmed."""

    def __init__(self, policy: Policy, decisions: Decisions | None = None) -> None:
        self._policy = policy
        self._decisions = decisions

    def listed(self, verified: Caller | None) -> list[t.Tool]:
        """Return the tool where a caller has it."""
        return [_TOOL] if self._decisions and self._policy.may_confirm(verified) else []

    async def call(
        self, ctx: Context, params: t.CallToolRequestParams
    ) -> t.CallToolResult | t.InputRequiredResult | None:
        """Return the question for the user, or what became of the last one; None where the caller has no such tool.

        Raises:
            Failed: the state, or the audit, cannot be written.
        """
        verified = caller(ctx.request)
        if params.name != NAME or verified is None or not self.listed(verified) or self._decisions is None:
            return None
        approver = principal_name(verified)
        try:
            if params.input_responses:
                words = [await self._taken(*answer, approver=approver) for answer in params.input_responses.items()]
                left = len(await self._decisions.pending(approver))
                return _text("; ".join(words) + f". {left} more wait.")
            return _question(await self._decisions.pending(approver), ctx)
        except CannotStore:
            raise Failed("confirmation_unavailable", "the state, or the audit, cannot be written") from None

    async def _taken(self, id_: str, response: object, *, approver: str) -> str:
        """Return what became of one answer of the user; one that is no decision leaves the call waiting."""
        content = response.content if isinstance(response, t.ElicitResult) and response.action == "accept" else None
        state = STATES.get(str((content or {}).get("decision")))
        if state is None or self._decisions is None:
            return "not decided"
        return state if await self._decisions.decide(id_, approver, state) else "decided elsewhere, or expired"


def _question(pending: list[dict[str, Any]], ctx: Context) -> t.CallToolResult | t.InputRequiredResult:
    if not pending:
        return _text("Nothing waits.")
    entry = next((entry for entry in pending if "arguments" in entry), None)
    if entry is None:
        return _text(f"{len(pending)} wait, which are too long to be asked here. {_ELSEWHERE}")
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    has_form = elicitation is not None and (elicitation.form is not None or elicitation.url is None)
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS or not has_form:
        return _text(f"{len(pending)} wait, and this client cannot ask its user. {_ELSEWHERE}")
    form = t.ElicitRequestFormParams(message=_message(entry), requested_schema=_FORM)
    return t.InputRequiredResult(input_requests={entry["id"]: t.ElicitRequest(params=form)})


def _message(entry: Mapping[str, Any]) -> str:
    """Return the question, with the exact arguments in ASCII: no character of them hides another."""
    asked = {key: entry[key] for key in ("arguments", "more") if key in entry}
    tenant = f" of tenant {entry['tenant']}" if entry["tenant"] else ""
    return f"{entry['caller']}{tenant} asks for `{entry['tool']}` of `{entry['agent']}`:\n{json.dumps(asked, indent=2)}"


def _text(text: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(type="text", text=text)])
