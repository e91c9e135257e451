"""The connector of mail, before real servers and such as behave badly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import imap_tools
import pytest
from connectors import serving
from connectors.mail.server import tools
from connectors.problems import Problem
from mcp import Client

from tests import ports

from . import servers
from .servers import PASSWORD, USER, Post, called

NEW = {"to": ["ben@example.com"], "subject": "Abendessen um sieben?", "text": "Grüße, Anna"}


@asynccontextmanager
async def mail(*, imap: int = 1, smtp: int = 1, password: str = PASSWORD, timeout: float = 60) -> AsyncIterator[Client]:
    """Yield a client of the connector for the servers at two ports."""
    user = USER.replace("@", "%40")
    environ = {
        "MAIL_IMAP_URL": f"imap://{user}@127.0.0.1:{imap}",
        "MAIL_SMTP_URL": f"smtp://{user}@127.0.0.1:{smtp}",
        "MAIL_PASSWORD": password,
    }
    async with Client(serving.server("mail", tools(environ, timeout))) as client:
        yield client


def _new_trash(port: int) -> None:
    with imap_tools.MailBoxUnencrypted("127.0.0.1", port).login(USER, PASSWORD) as box:
        box.folder.delete("Trash")
        box.folder.create("Trash")


async def test_messages_are_listed_read_and_moved_to_the_trash() -> None:
    async with servers.imap() as port, mail(imap=port) as client:
        failed, listed = await called(client, "list_mail", limit=2)
        assert not failed
        assert len(listed["messages"]) == 2
        newest = listed["messages"][0]
        assert set(newest) == {"uid", "from", "to", "subject", "date", "unread"}
        _, message = await called(client, "read_mail", uid=newest["uid"])
        assert message["subject"] == newest["subject"]
        assert message["text"]
        _, again = await called(client, "list_mail", limit=2)
        assert again == listed  # reading leaves what is unread
        failed, words = await called(client, "delete_mail", uid=newest["uid"])  # the trash of this server is read-only
        assert (failed, "Mailbox is read-only" in words) == (True, True)
        assert (await called(client, "list_mail", limit=2))[1] == listed
        await asyncio.to_thread(_new_trash, port)
        assert await called(client, "delete_mail", uid=newest["uid"]) == (False, {"moved_to": "Trash"})
        _, trash = await called(client, "list_mail", folder="Trash")
        assert trash["messages"][0]["subject"] == newest["subject"]
        failed, words = await called(client, "delete_mail", uid=newest["uid"])
        assert failed
        assert words.endswith(f"there is no message {newest['uid']} in INBOX")
        failed, words = await called(client, "list_mail", folder="Attic")
        assert words.endswith("has no folder 'Attic'")


async def test_a_message_is_sent_to_all_or_to_none() -> None:
    post = Post(refused={"nobody@example.com"})
    async with servers.smtp(post) as port, mail(smtp=port) as client:
        failed, sent = await called(client, "send_mail", **NEW)
        assert (failed, sent["sent"]) == (False, True)
        failed, words = await called(client, "send_mail", **NEW | {"to": ["ben@example.com", "nobody@example.com"]})
        assert failed
        assert "not sent, to nobody" in words
        assert "refuses nobody@example.com: 550 no such mailbox" in words
    (envelope,) = post.taken
    assert envelope.mail_from == USER
    assert envelope.rcpt_tos == ["ben@example.com"]
    assert b"Message-ID: " + sent["message_id"].encode() in envelope.content


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"to": []}, "`to` needs 1 to 20 addresses"),
        ({"to": ["ben"]}, "cannot be the head of a message"),
        ({"subject": "Hello\r\nBcc: all@example.com"}, "cannot be the head of a message"),
        ({"answers": "<1@x>\r\nBcc: all@example.com"}, "cannot be the head of a message"),
    ],
)
async def test_what_is_no_message_never_leaves(wrong: dict[str, object], words: str) -> None:
    async with mail() as client:
        failed, said = await called(client, "send_mail", **NEW | wrong)
    assert failed
    assert words in said


async def test_a_login_that_is_refused_is_said_without_the_password() -> None:
    wrong = "not-the-password"
    async with (
        servers.imap() as imap,
        servers.smtp(Post()) as smtp,
        mail(imap=imap, smtp=smtp, password=wrong) as client,
    ):
        for tool, arguments in (("list_mail", {}), ("send_mail", NEW)):
            failed, words = await called(client, tool, **arguments)
            assert failed
            assert f"refuses the login of {USER}: check the user and MAIL_PASSWORD" in words
            assert wrong not in words


async def test_a_server_that_is_away_silent_or_speaks_rubbish_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "connectors.mail.server._IN_ALL", 100
    )  # or what takes three times as long could be noticed first
    away = ports.free_port()
    async with servers.talking(servers.silent) as silent, servers.talking(servers.rubbish) as rubbish:
        for port, words in (
            (away, "cannot be reached: Connection refused"),
            (silent, "has not answered"),
            (rubbish, "does not answer as"),
        ):
            async with mail(imap=port, smtp=port, timeout=0.5 if port == silent else 60) as client:
                for tool, arguments in (("list_mail", {}), ("delete_mail", {"uid": "1"}), ("send_mail", NEW)):
                    failed, said = await called(client, tool, **arguments)
                    assert failed
                    assert words in said
                    assert f"127.0.0.1:{port}" in said


async def test_a_message_whose_fate_is_unknown_is_not_called_unsent() -> None:
    async def ends_after_the_text(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 post\r\n")
        while line := await reader.readline():
            if line.upper().startswith(b"DATA"):
                writer.write(b"354 go on\r\n")
                await reader.readuntil(b"\r\n.\r\n")
                return
            writer.write(b"250 post\r\n")

    async with servers.talking(ends_after_the_text) as port, mail(smtp=port, password="") as client:
        failed, words = await called(client, "send_mail", **NEW)
    assert failed
    assert "it may have been sent" in words
    assert "Look into the folder of what was sent" in words


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "MAIL_IMAP_URL is not set"),
        ("pop3://server", "is no imaps or imap URL"),
        ("imaps://anna:secret@server", "has a password in it"),
        ("imaps://server:99999999", "cannot be read as a URL"),
    ],
)
def test_a_wrong_address_is_told_at_the_start(url: str, words: str) -> None:
    with pytest.raises(Problem, match=words) as problem:
        tools({"MAIL_IMAP_URL": url, "MAIL_SMTP_URL": "smtps://server"})
    assert "secret" not in str(problem.value).replace("`secrets`", "")
