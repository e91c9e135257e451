"""A mailbox by IMAP: each question is a connection of its own, so that a server that was away is just asked again."""

from __future__ import annotations

import imaplib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import imap_tools
from imap_tools.errors import ImapToolsError, MailboxFolderSelectError, MailboxLoginError

from connectors import trust
from connectors.accounts import Account
from connectors.problems import Problem

PORTS = {"imaps": 993, "imap": 143}
LONGEST = 20_000
"""Characters of a text that are handed to a model."""
LARGEST = 10 << 20
"""Bytes of a message that is read."""
_TRASH = "\\Trash"
_NAMES_OF_TRASH = ("trash", "deleted items", "deleted messages", "bin", "papierkorb")


class Box:
    """The mailbox of one account. Plain IMAP becomes TLS by STARTTLS, but for a server on this machine."""

    def __init__(self, account: Account, timeout: float = 20.0) -> None:
        self._account = account
        self._timeout = timeout

    def listed(self, folder: str, *, unread: bool, words: str, limit: int) -> list[dict[str, Any]]:
        """Return the newest messages of a folder, newest first, without their texts."""
        parts: dict[str, Any] = {"seen": False} if unread else {}
        criteria = imap_tools.AND(
            **parts, **({"text": words} if words else {}), **({} if parts or words else {"all": True})
        )
        charset = "US-ASCII" if words.isascii() else "UTF-8"
        with self._open(folder) as box:
            found = box.fetch(criteria, charset, limit=limit, mark_seen=False, reverse=True, headers_only=True)
            return [_row(message) for message in found]

    def read(self, uid: str, folder: str) -> dict[str, Any]:
        """Return one message with its text; it is not marked as read.

        Raises:
            Problem: there is none, or it is too large.
        """
        with self._open(folder) as box:
            message = self._one(box, uid, folder)
        text = message.text or message.html
        attached = [
            {"name": part.filename, "type": part.content_type, "bytes": part.size} for part in message.attachments
        ]
        row = _row(message) | {"text": text[:LONGEST], "attachments": attached}
        return row | ({"notice": f"the text has {len(text):,} characters"} if len(text) > LONGEST else {})

    def discard(self, uid: str, folder: str) -> str:
        """Move one message to the trash, and return that folder: nothing is destroyed.

        Raises:
            Problem: there is no such message, or no folder for what is discarded.
        """
        with self._open(folder) as box:
            trash = _trash(box)
            if trash is None:
                raise Problem(f"{self._account.at} has no folder for what is deleted: make one called Trash")
            if trash == folder:
                raise Problem(f"it is in {trash} already: empty that folder yourself")
            if uid not in box.uids(imap_tools.AND(uid=uid)):
                raise Problem(f"there is no message {uid} in {folder}")
            box.move(uid, trash)
        return trash

    def _one(self, box: imap_tools.BaseMailBox, uid: str, folder: str) -> imap_tools.MailMessage:
        heads = list(box.fetch(imap_tools.AND(uid=uid), mark_seen=False, headers_only=True))
        if not heads:
            raise Problem(f"there is no message {uid} in {folder}")
        if heads[0].size_rfc822 > LARGEST:
            raise Problem(
                f"message {uid} has {heads[0].size_rfc822 >> 20} MiB, and {LARGEST >> 20} are read: open it elsewhere"
            )
        return next(iter(box.fetch(imap_tools.AND(uid=uid), mark_seen=False)))

    @contextmanager
    def _open(self, folder: str) -> Iterator[imap_tools.BaseMailBox]:
        at, user = self._account.at, self._account.user
        box = None
        try:
            box = self._connected()
            box.login(user, self._account.password, initial_folder=None)
            box.folder.set(folder)
            yield box
        except MailboxLoginError:
            raise Problem(f"{at} refuses the login of {user}: check the user and MAIL_PASSWORD") from None
        except MailboxFolderSelectError:
            raise Problem(f"{at} has no folder {folder!r}") from None
        except TimeoutError:
            raise Problem(f"{at} has not answered for {self._timeout:g} s: try again later") from None
        except OSError as error:
            raise Problem(f"{at} {trust.distrust(error) or f'cannot be reached: {error.strerror or error}'}") from None
        except (imaplib.IMAP4.error, ImapToolsError, ValueError, LookupError, TypeError) as error:
            raise Problem(f"{at} does not answer as an IMAP server does: {str(error)[:200]}") from None
        finally:
            if box is not None:
                with suppress(Exception):  # what was asked is answered: how a server says goodbye changes nothing
                    box.logout()
                with suppress(OSError):
                    box.client.shutdown()

    def _connected(self) -> imap_tools.BaseMailBox:
        account = self._account
        if account.scheme == "imaps":
            return imap_tools.MailBox(account.host, account.port, self._timeout, ssl_context=trust.context())
        if account.is_here:
            return imap_tools.MailBoxUnencrypted(account.host, account.port, self._timeout)
        return imap_tools.MailBoxStartTls(account.host, account.port, self._timeout, ssl_context=trust.context())


def _row(message: imap_tools.MailMessage) -> dict[str, Any]:
    return {
        "uid": message.uid,
        "from": message.from_,
        "to": list(message.to),
        "subject": message.subject,
        "date": message.date.isoformat(),
        "unread": "\\Seen" not in message.flags,
    }


def _trash(box: imap_tools.BaseMailBox) -> str | None:
    """Return the folder that the server marks as its trash (RFC 6154), else one that is called so."""
    folders = box.folder.list()
    marked = [folder.name for folder in folders if _TRASH in folder.flags]
    named = [folder.name for folder in folders if folder.name.rpartition(folder.delim)[2].lower() in _NAMES_OF_TRASH]
    return next(iter(marked + named), None)
