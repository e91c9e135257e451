"""Sending mail by SMTP, so that one always knows whether it was sent, was not, or may have been."""

from __future__ import annotations

import smtplib
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from connectors import trust
from connectors.accounts import Account
from connectors.problems import Problem

PORTS = {"smtps": 465, "smtp": 587}
MOST = 20
"""Recipients of one message."""


def composed(sender: str, to: list[str], subject: str, text: str, *, answers: str = "") -> EmailMessage:
    """Return a message; `answers` is the Message-ID of the one that it is the answer to.

    Raises:
        Problem: an address, the subject or `answers` is none.
    """
    if not 1 <= len(to) <= MOST:
        raise Problem(f"`to` needs 1 to {MOST} addresses, not {len(to)}")
    message = EmailMessage()
    try:
        message["From"] = Address(addr_spec=sender)
        message["To"] = [Address(addr_spec=address) for address in to]
        message["Subject"] = subject
        if answers:
            message["In-Reply-To"] = message["References"] = answers
    except (ValueError, LookupError, MessageError) as error:
        raise Problem(f"this cannot be the head of a message: {error}") from None
    if not all(address.isascii() for address in (sender, *to)):
        raise Problem("an address has letters that not every server takes: write its domain with xn--")
    message["Date"] = formatdate(localtime=True)
    message["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
    message.set_content(text)
    return message


class Outbox:
    """The way out of one account. Plain SMTP becomes TLS by STARTTLS, but for a server on this machine."""

    def __init__(self, account: Account, timeout: float = 20.0) -> None:
        self._account = account
        self._timeout = timeout

    def send(self, message: EmailMessage) -> None:
        """Send a message to all its recipients, or to none.

        Raises:
            Problem: it was not sent; or nobody knows, and then it says that.
        """
        at, user = self._account.at, self._account.user
        try:
            smtp = self._connected()
        except (smtplib.SMTPException, OSError) as error:
            if why := trust.distrust(error):
                raise Problem(f"not sent: {at} {why}") from None
            if _is_late(error):
                raise Problem(f"not sent: {at} has not answered for {self._timeout:g} s") from None
            strange = "does not answer as an SMTP server does" if isinstance(error, smtplib.SMTPException) else ""
            raise Problem(f"not sent: {at} {strange or 'cannot be reached'}: {_words(error)}") from None
        try:
            if user and self._account.password:
                smtp.login(user, self._account.password)
            self._handed_over(smtp, message)
        except smtplib.SMTPAuthenticationError:
            raise Problem(f"not sent: {at} refuses the login of {user}: check the user and MAIL_PASSWORD") from None
        except (smtplib.SMTPException, OSError, UnicodeError) as error:
            raise Problem(f"not sent: {at}: {_words(error)}") from None
        finally:
            smtp.close()

    def _connected(self) -> smtplib.SMTP:
        account, context = self._account, trust.context()
        if account.scheme == "smtps":
            return smtplib.SMTP_SSL(account.host, account.port, timeout=self._timeout, context=context)
        smtp = smtplib.SMTP(account.host, account.port, timeout=self._timeout)
        if not account.is_here:
            try:
                smtp.starttls(context=context)
            except BaseException:
                smtp.close()
                raise
        return smtp

    def _handed_over(self, smtp: smtplib.SMTP, message: EmailMessage) -> None:
        smtp.ehlo_or_helo_if_needed()
        self._taken("the sender", smtp.mail(message["From"].addresses[0].addr_spec))
        for recipient in message["To"].addresses:
            self._taken(recipient.addr_spec, smtp.rcpt(recipient.addr_spec))
        try:
            answer = smtp.data(message.as_bytes())
        except smtplib.SMTPDataError:
            raise
        except (smtplib.SMTPException, OSError) as error:
            said = f"it may have been sent: {self._account.at} took it and then {_words(error)}"
            raise Problem(f"{said}. Look into the folder of what was sent before you try again") from None
        self._taken("the message", answer)

    def _taken(self, what: str, answer: tuple[int, bytes]) -> None:
        code, words = answer
        if not 200 <= code < 300:
            said = words.decode("utf-8", "replace")[:200]
            raise Problem(f"not sent, to nobody: {self._account.at} refuses {what}: {code} {said}")


def _is_late(error: BaseException) -> bool:
    """Return whether a time limit is behind an error; smtplib makes a lost connection of it."""
    return isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError)


def _words(error: Exception) -> str:
    if _is_late(error):
        return "did not answer in time"
    if isinstance(error, smtplib.SMTPResponseException):
        words = error.smtp_error
        return f"{error.smtp_code} {words.decode('utf-8', 'replace') if isinstance(words, bytes) else words}"[:200]
    return str(getattr(error, "strerror", "") or error)[:200] or type(error).__name__
