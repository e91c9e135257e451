"""The server of mail: `python -m connectors.mail.server`. It keeps nothing; the agent's model sees what it asks for.

`send_mail` and `delete_mail` are to be confirmed by a person (`gateway.confirm` of agents.full.yaml): a message that
somebody else wrote may well ask a model to send something.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from connectors import accounts
from connectors.mail.box import PORTS as BOX_PORTS
from connectors.mail.box import Box
from connectors.mail.outbox import PORTS as OUTBOX_PORTS
from connectors.mail.outbox import Outbox, composed
from connectors.serving import Tool, run, within

_IN_ALL = 3
"""What a question takes at most, in time limits of one answer of the server."""

Uid = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,9}$", description="uid of the message, as list_mail has it")]
Folder = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


def tools(environ: Mapping[str, str] = os.environ, timeout: float = 20.0) -> list[Tool]:
    """Return the tools for the account in MAIL_IMAP_URL and MAIL_SMTP_URL, with MAIL_PASSWORD.

    `timeout` are the seconds that a server may take for an answer.

    Raises:
        Problem: a variable is not there, or wrong.
    """
    reading = accounts.read("MAIL_IMAP_URL", "MAIL_PASSWORD", BOX_PORTS, environ)
    sending = accounts.read("MAIL_SMTP_URL", "MAIL_PASSWORD", OUTBOX_PORTS, environ)
    sender = environ.get("MAIL_FROM", "") or reading.user
    box, outbox = Box(reading, timeout), Outbox(sending, timeout)
    late = f"{reading.at} takes too long: try again later"

    async def list_mail(
        folder: Folder = "INBOX",
        unread_only: bool = False,
        words: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] = "",
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
    ) -> dict[str, Any]:
        """List the newest messages of a folder, newest first; with words only those in which these stand."""
        rows = await within(
            _IN_ALL * timeout, late, lambda: box.listed(folder, unread=unread_only, words=words, limit=limit)
        )
        return {"folder": folder, "messages": rows}

    async def read_mail(uid: Uid, folder: Folder = "INBOX") -> dict[str, Any]:
        """Read one message. It stays unread."""
        return await within(_IN_ALL * timeout, late, box.read, uid, folder)

    async def send_mail(
        to: list[str], subject: str, text: Annotated[str, Field(max_length=100_000)], answers: str = ""
    ) -> dict[str, Any]:
        """Send a message; `answers` is the Message-ID of the one that it answers. A person confirms this."""
        message = composed(sender, to, subject, text, answers=answers)
        unknown = f"it may have been sent: {sending.at} takes too long. Look into the folder of what was sent"
        await within(_IN_ALL * timeout, unknown, outbox.send, message)
        return {"sent": True, "to": to, "message_id": message["Message-ID"]}

    async def delete_mail(uid: Uid, folder: Folder = "INBOX") -> dict[str, Any]:
        """Move one message to the trash. A person confirms this."""
        trash = await within(_IN_ALL * timeout, late, box.discard, uid, folder)
        return {"moved_to": trash}

    return [list_mail, read_mail, send_mail, delete_mail]


def main() -> int:
    """Serve on PALLAS_BIND."""
    return run("mail", tools)


if __name__ == "__main__":
    sys.exit(main())
