"""CalDAV (RFC 4791) as far as a calendar needs it: a query, one object put, one taken away.

The library of that name would bring an HTTP client that overwrites urllib3 for all programs of the image, so this
speaks the three methods itself, with the client that the image has (docs/decisions/0049-clients-of-atlas.md).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import httpx

from connectors import trust
from connectors.accounts import Account
from connectors.problems import Problem

PORTS = {"https": 443, "http": 80}
MOST_BYTES = 4 << 20
"""Bytes of an answer."""
_DAV = "{DAV:}"
_CALDAV = "{urn:ietf:params:xml:ns:caldav}"
_QUERY = (
    '<?xml version="1.0" encoding="utf-8"?><C:calendar-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav">'
    "<D:prop><D:getetag/><C:calendar-data/></D:prop><C:filter><C:comp-filter name='VCALENDAR'>"
    "<C:comp-filter name='VEVENT'>{0}</C:comp-filter></C:comp-filter></C:filter></C:calendar-query>"
)
_XML = {"content-type": "application/xml; charset=utf-8", "depth": "1"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the calendar: where it is, which version that was, and its text (RFC 5545)."""

    url: str
    etag: str
    text: str


class Calendar:
    """One calendar of one account."""

    def __init__(self, account: Account, timeout: float = 20.0) -> None:
        if account.scheme == "http" and not account.is_here:
            raise Problem(f"CALENDAR_URL would send the password to {account.at} in clear: use https")
        self._account = account
        host = f"[{account.host}]" if ":" in account.host else account.host
        self._url = f"{account.scheme}://{host}:{account.port}{account.path.rstrip('/')}/"
        self._timeout = timeout

    async def between(self, start: str, end: str) -> list[Entry]:
        """Return the files with events in a period, whose ends are UTC as `20261123T100000Z`."""
        return await self._query(f"<C:time-range start='{start}' end='{end}'/>")

    async def with_uid(self, uid: str) -> list[Entry]:
        """Return the files that may have the event `uid`: servers match parts of it too."""
        wanted = (
            f"<C:prop-filter name='UID'><C:text-match collation='i;octet'>{escape(uid)}</C:text-match></C:prop-filter>"
        )
        return await self._query(wanted)

    async def add(self, name: str, text: str) -> None:
        """Store a new file; one that is there is never overwritten."""
        headers = {"content-type": "text/calendar; charset=utf-8", "if-none-match": "*"}
        await self._asked("PUT", f"{self._url}{name}.ics", text.encode(), headers=headers, wanted=(200, 201, 204))

    async def remove(self, entry: Entry) -> None:
        """Take a file away, if it is still the version that was read."""
        await self._asked(
            "DELETE", entry.url, b"", headers={"if-match": entry.etag} if entry.etag else {}, wanted=(200, 204)
        )

    async def _query(self, condition: str) -> list[Entry]:
        answer = await self._asked("REPORT", self._url, _QUERY.format(condition).encode(), headers=_XML, wanted=(207,))
        try:
            tree = ElementTree.fromstring(answer)
        except (ElementTree.ParseError, ValueError) as error:
            raise Problem(f"{self._account.at} does not answer as a CalDAV server does: {error}") from None
        return [entry for response in tree.iter(f"{_DAV}response") if (entry := self._entry(response))]

    def _entry(self, response: ElementTree.Element) -> Entry | None:
        href, text = response.findtext(f"{_DAV}href", ""), response.findtext(f".//{_CALDAV}calendar-data", "")
        url = urljoin(self._url, href.strip())
        # An address elsewhere would be given the password.
        if not text or urlsplit(url)[:2] != urlsplit(self._url)[:2]:
            return None
        return Entry(url, response.findtext(f".//{_DAV}getetag", ""), text)

    async def _asked(
        self, method: str, url: str, body: bytes, *, headers: dict[str, str], wanted: tuple[int, ...]
    ) -> bytes:
        at = self._account.at
        try:
            async with asyncio.timeout(self._timeout):
                status, answer = await self._answer(method, url, body, headers)
        except (TimeoutError, httpx.TimeoutException):
            unknown = " It is not known whether it did that: look before you try again." if method != "REPORT" else ""
            raise Problem(f"{at} has not answered for {self._timeout:g} s.{unknown}") from None
        except httpx.HTTPError as error:
            why = trust.distrust(error) or f"cannot be reached, or speaks no HTTP: {error}"
            raise Problem(f"{at} {why}") from None
        if status in wanted:
            return answer
        raise Problem(f"{at} {_reason(status, self._account.user, method)}")

    async def _answer(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        # httpx by itself brings authorities of its own, and knows none of this machine's
        options: dict[str, Any] = {"timeout": self._timeout, "trust_env": False, "verify": trust.context()}
        auth = (self._account.user, self._account.password)
        async with (
            httpx.AsyncClient(auth=auth, **options) as client,
            client.stream(method, url, content=body, headers=headers) as response,
        ):
            answer = b""
            async for piece in response.aiter_bytes():
                answer += piece
                if len(answer) > MOST_BYTES:
                    raise Problem(f"{self._account.at} answers with more than {MOST_BYTES >> 20} MiB: ask for less")
            return response.status_code, answer


def _reason(status: int, user: str, method: str) -> str:
    if status in (401, 403):
        return f"refuses {user}: check CALENDAR_USER and CALENDAR_PASSWORD (HTTP {status})"
    if status == 404:
        return "has no such calendar: check the path of CALENDAR_URL (HTTP 404)"
    if status == 412:
        what = "the event has changed since it was read" if method == "DELETE" else "there is an event of this uid"
        return f"did nothing: {what} (HTTP 412)"
    if 300 <= status < 400:
        return f"leads elsewhere: put that address into CALENDAR_URL (HTTP {status})"
    return f"answers with HTTP {status}"
