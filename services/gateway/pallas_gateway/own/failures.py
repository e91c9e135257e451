"""Errors of the gateway's own tools, in the codes and the shape of seed 002 (Error Handling)."""

from __future__ import annotations

from collections.abc import Mapping

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import ValidationError

from pallas_gateway.data_plane.errors import CODES, Reason


class Failed(MCPError):
    """A request that is answered with an error; `reason` says in a word which, and stands in its data beside `more`."""

    def __init__(
        self, reason: Reason, text: str, retry_after: int | None = None, more: Mapping[str, str | int] | None = None
    ) -> None:
        data: dict[str, str | int] = {"reason": reason, **(more or {})}
        if retry_after is not None:
            data["retry_after"] = retry_after
        super().__init__(CODES[reason], text, data)
        self.reason: Reason = reason
        self.member: str | None = None
        """Host name of the member that it tells something of, empty for none; None: that which was called."""


def invalid(field: str, reason: str, text: str = "") -> MCPError:
    """Return the error for one parameter (seed 002, Error Response Format): its data has `field` and `reason`."""
    return MCPError(
        INVALID_PARAMS, f"Invalid params: {text or f'{field}: {reason}'}", {"field": field, "reason": reason}
    )


def invalid_arguments(error: ValidationError) -> MCPError:
    """Return the error for the first argument that is wrong."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = ".".join(map(str, first["loc"]))
    missing = first["type"] == "missing"
    return invalid(field, first["msg"], f"{field} is required" if missing else "")
