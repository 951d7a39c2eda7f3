"""Send a prompt: into the session that the job keeps, a new one where that is gone, or one for this run only."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeVar

from django.utils.crypto import salted_hmac

from scheduler.arguments import checked_flag, checked_number, checked_text, checked_whole
from scheduler.clock import SYSTEM_CLOCK
from scheduler.context import Postpone, RunContext, current_run
from scheduler.contrib.sessions.address import address_of, session_id
from scheduler.exceptions import ConfigurationError, InvalidOption
from scheduler.safetext import counted

if TYPE_CHECKING:
    from scheduler.contrib.sessions.client import Service

T = TypeVar("T")

SOURCE = "scheduler"
"""Marks the sessions that jobs made: no other one is ever deleted."""
SESSION, MADE_OF = "session_id", "session_made_of"
"""Where `context.state` keeps the session of a job, as `views/result.py` reads it, and what it was made of."""
BUSY_HOURS = 1
MOST_SESSIONS = 100
MOST_DELETED = 20
"""Sessions that one run deletes at most, so that it ends."""
LONGEST_NAME = 255
INSTALL = 'pip install "django-inprocess-scheduler[sessions]"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a session is to be made of. One that was made of something else is not used."""

    url: str
    model: str | None
    working_directory: str | None


def send_prompt(
    prompt: str,
    url: str,
    *,
    persist_session: bool = True,
    model: str | None = None,
    working_directory: str | None = None,
    max_sessions: int | None = MOST_SESSIONS,
    timeout: float = 30,
) -> str:
    """Hand a prompt to a session of a service; its answer is not waited for.

    The job keeps one session for all its runs, or has one for each with `persist_session=False`. `prompt` is a
    template with the placeholders of `render_kwargs`. `url` is that of the service, `timeout` the seconds that each
    request may take, `max_sessions` how many sessions of jobs the service may have (None: any number). Raises Postpone
    while the session is busy, InvalidOption for wrong arguments, ServiceError where the service fails.
    """
    run = current_run() or _run_by_hand()
    wish = Wish(
        url=address_of(checked_text("url", url)),
        model=_text("model", model),
        working_directory=_text("working_directory", working_directory),
    )
    most = None if max_sessions is None else checked_whole("max_sessions", max_sessions, least=1, most=10_000)
    is_kept, text = checked_flag("persist_session", persist_session), _rendered(checked_text("prompt", prompt), run)
    with _service(wish.url, timeout) as service:
        talk = _Talk(service, run, wish, most)
        session = talk.go_on(text) if is_kept else talk.begin_and_end(text)
    return f"{counted(len(text), 'character')} sent to session {session}"


class _Talk:
    """What one run says to a service."""

    def __init__(self, service: "Service", run: RunContext, wish: Wish, most: int | None) -> None:
        from scheduler.contrib.sessions.client import Gone, ServiceError

        self._gone, self._failed = Gone, ServiceError
        self._service, self._run, self._wish, self._most = service, run, wish, most

    def go_on(self, text: str) -> str:
        """Send into the session that the job keeps; into a new one where there is none, or none any more."""
        kept = self._kept()
        if kept and self._is_there(kept, text):
            return kept
        session = self._create(persist=True, after=kept)
        self._run.state |= {SESSION: session, MADE_OF: asdict(self._wish)}  # before anything else can fail
        self._delete_oldest(session)
        self._send(session, text)
        return session

    def begin_and_end(self, text: str) -> str:
        """Send into a session of this run, which is deleted whatever happens."""
        session = self._create(persist=False)
        try:
            self._delete_oldest(session)
            self._send(session, text)
        finally:
            self._delete(session)
        return session

    def _kept(self) -> str:
        """Return the session of the job, empty where it has none or its session was made of something else."""
        session, made_of = (self._run.state.get(name) for name in (SESSION, MADE_OF))
        return session_id(session) if made_of == asdict(self._wish) else ""

    def _is_there(self, session: str, text: str) -> bool:
        """Send into a session; False when the service has it no more."""
        try:
            self._send(session, text)
        except self._gone:
            self._run.logger.warning("Session %s is gone; the prompt goes to a new one", session)
            return False
        return True

    def _create(self, *, persist: bool, after: str = "") -> str:
        about = {"name": self._run.job[:LONGEST_NAME], "source": SOURCE, "persist": persist}
        chosen = {"model": self._wish.model, "working_directory": self._wish.working_directory}
        body = about | {name: value for name, value in chosen.items() if value is not None}
        return self._or_postpone(lambda: self._service.create(body, key=self._key(f"create after {after}")))

    def _send(self, session: str, text: str) -> None:
        body = {"prompt": text, "source": SOURCE}
        self._or_postpone(lambda: self._service.send(session, body, key=self._key("send")))

    def _or_postpone(self, ask: Callable[[], T]) -> T:
        from scheduler.contrib.sessions.client import Busy

        try:
            return ask()
        except Busy as busy:
            raise Postpone(str(busy), hours=BUSY_HOURS) from busy

    def _key(self, step: str) -> str:
        """The same for each attempt of a slot: a service that heeds it does nothing twice."""
        return salted_hmac(__name__, f"{self._run.idempotency_key} {step}", algorithm="sha256").hexdigest()

    def _delete_oldest(self, newest: str) -> None:
        """Make room for a session that was just made. What goes wrong here is not worth the prompt."""
        if self._most is None:
            return
        try:
            found = self._service.oldest_first(SOURCE)
        except self._failed as error:
            self._run.logger.warning("The number of sessions is not known: %s", error)
            return
        others = [session for session in found if session != newest]
        for session in others[: max(0, min(len(others) + 1 - self._most, MOST_DELETED))]:
            self._run.logger.info("Session %s, the oldest, is deleted: at most %d are kept", session, self._most)
            if not self._delete(session) or self._run.stop_requested:
                return

    def _delete(self, session: str) -> bool:
        try:
            self._service.delete(session)
        except self._failed as error:
            self._run.logger.warning("Session %s was not deleted: %s", session, error)
            return False
        return True


def _service(url: str, timeout: float) -> "Service":
    try:
        from scheduler.contrib.sessions.client import Service
    except ImportError as error:
        raise ConfigurationError(f"send_prompt needs httpx, which cannot be imported ({error}). {INSTALL}.") from error
    seconds = checked_number("timeout", timeout)
    if not 0 < seconds <= 3600:
        raise InvalidOption(f"timeout is {timeout!r}; it must be a number of seconds up to 3600.")
    return Service(url, timeout=seconds)


def _text(name: str, value: object) -> str | None:
    return None if value is None else checked_text(name, value, longest=1000)


def _rendered(prompt: str, run: RunContext) -> str:
    from scheduler.executors.render_kwargs import rendered

    text: str = rendered({"prompt": prompt}, run, SYSTEM_CLOCK.now())["prompt"]
    if not text.strip():
        raise InvalidOption("prompt is empty.")
    return text


def _run_by_hand() -> RunContext:
    """Stand in for the run where the task is called as a plain function: what it keeps is lost."""
    return RunContext(
        run_id=0,
        job="",
        task="send_prompt",
        scheduled_for=SYSTEM_CLOCK.now(),
        attempt=1,
        trigger="manual",
        fencing_token=0,
    )
