"""E-mail, by the backend of Django."""

from collections.abc import Mapping
from dataclasses import dataclass
from smtplib import SMTPDataError, SMTPRecipientsRefused
from typing import Any, ClassVar

from django.conf import settings
from django.core import mail

from scheduler.exceptions import ConfigurationError
from scheduler.notifications.channels.base import (
    CONNECT_SECONDS,
    Channel,
    MessageRefused,
    SendFailed,
    common_of,
    refuse_unknown_keys,
    texts,
)
from scheduler.notifications.message import Message
from scheduler.safetext import told

OWN = ("to", "from", "prefix")
REFUSALS = (SMTPDataError, SMTPRecipientsRefused, ValueError)
"""What says that this message cannot be sent; a ValueError is a header or an address that no mail may have."""
TEMPORARY = range(400, 500)
"""Codes by which a mail server says “later”, as one does that greylists: no refusal of the message."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Email(Channel):
    """Sends mails to `to`, from `sender` or DEFAULT_FROM_EMAIL."""

    kind: ClassVar[str] = "email"
    to: tuple[str, ...]
    sender: str = ""
    prefix: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Email":
        """Read the dict of a channel; raises ConfigurationError."""
        refuse_unknown_keys(given, OWN)
        to = texts(given.get("to", ()), "to")
        if not to or not all("@" in one and one.isprintable() for one in to):
            raise ConfigurationError("to must be a list of mail addresses.")
        (sender, prefix) = (given.get(key, "") for key in ("from", "prefix"))
        if not all(isinstance(one, str) and (one.isprintable() or not one) for one in (sender, prefix)):
            raise ConfigurationError("from and prefix must be texts of one line.")
        return cls(**common_of(given, "5/10min"), to=tuple(to), sender=sender, prefix=prefix)

    @property
    def label(self) -> str:
        return ", ".join(self.to)

    def send(self, message: Message) -> None:
        """Send one mail. Its connection has a time limit also where EMAIL_TIMEOUT is None."""
        letter = mail.EmailMessage(
            subject=f"{self.prefix or settings.EMAIL_SUBJECT_PREFIX}{message.subject}",
            body=message.body,
            from_email=self.sender or None,
            to=list(self.to),
            headers={"Auto-Submitted": "auto-generated", "X-Scheduler-Message": message.id},
        )
        try:
            sent = _mailer().send_messages([letter])
        except Exception as error:
            kind = MessageRefused if isinstance(error, REFUSALS) and not _is_temporary(error) else SendFailed
            raise kind(f"{type(error).__name__}: {told(error)}") from error
        if not sent:
            raise SendFailed("The backend sent nothing.")


def _is_temporary(error: Exception) -> bool:
    """Return whether the server may take the same mail later, for one of its recipients at least."""
    if isinstance(error, SMTPRecipientsRefused):
        return any(code in TEMPORARY for code, _ in error.recipients.values())
    return isinstance(error, SMTPDataError) and error.smtp_code in TEMPORARY


def _mailer() -> Any:
    """Return the default backend of the project, with a time limit if it connects without one."""
    mailers = getattr(mail, "mailers", None)  # from Django 6.1 on
    mailer: Any = mail.get_connection() if mailers is None else mailers.default
    if getattr(mailer, "timeout", 0) is None:
        mailer.timeout = CONNECT_SECONDS
    return mailer
