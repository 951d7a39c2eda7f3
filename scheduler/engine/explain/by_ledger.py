"""What the rows of a slot say about it."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.engine.explain.by_events import pause_that_holds, was_stopped
from scheduler.engine.explain.evidence import Evidence
from scheduler.engine.explain.explanation import Finding, Verdict
from scheduler.engine.views.datetimes import lasted, said
from scheduler.models import RunLog, Status, Trigger
from scheduler.models.run import AT_EXECUTOR

VERDICTS = {
    Status.PENDING: Verdict.PENDING,
    Status.RUNNING: Verdict.RUNNING,
    Status.SUCCEEDED: Verdict.RAN,
    Status.FAILED: Verdict.FAILED,
    Status.TIMED_OUT: Verdict.FAILED,
    Status.SKIPPED: Verdict.SKIPPED,
    Status.MISSED: Verdict.MISSED,
    Status.CANCELLED: Verdict.CANCELLED,
    Status.POSTPONED: Verdict.POSTPONED,
    Status.LOST: Verdict.LOST,
}


def recorded(evidence: Evidence) -> Finding | None:
    """The slot has rows of its own: the newest attempt decides."""
    attempts = evidence.attempts
    if not attempts:
        return None
    run = attempts[-1]
    details = {"attempts": [{"run": one.pk, "attempt": one.attempt, "status": one.status} for one in attempts]}
    told = [_outcome(evidence, run), _for_user(evidence, run), pause_that_holds(evidence, run), _earlier(attempts[:-1])]
    sentence = " ".join(filter(None, [*told, _also_counted(run)]))
    return Finding(VERDICTS[Status(run.status)], sentence, run, details | _numbers(run))


def handed_over(evidence: Evidence) -> Finding | None:
    """A run of the job, by hand too, was handed over, and waits for a process that takes it."""
    run = evidence.handed_over
    return None if run is None else Finding(Verdict.PENDING, _outcome(evidence, run), run, _numbers(run))


def counted(evidence: Evidence) -> Finding | None:
    """The slot is counted on the row of a later one."""
    row = evidence.covering
    if row is None:
        return None
    words = {"row": row.pk, "count": row.coalesced + 1, "slot": said(row.scheduled_for), "why": _why(row)}
    if row.status in (Status.SKIPPED, Status.MISSED):
        verdict = VERDICTS[Status(row.status)]
        text = _("It was {what}: {why}. Row {row} records {count} slots up to {slot} together.")
        words["what"] = row.get_status_display()
    else:
        verdict = Verdict.COALESCED
        text = _("It had no run of its own: {count} slots up to {slot} became one, run {row} ({trigger}, {status}).")
        words |= {"trigger": row.get_trigger_display(), "status": row.get_status_display()}
    stop = was_stopped(evidence)
    sentence = " ".join([text.format(**words), *([stop.sentence] if stop else [])])
    return Finding(verdict, sentence, row, {"counted_on": row.pk} | _numbers(row))


def _outcome(evidence: Evidence, run: RunLog) -> str:
    unknown = _("an unknown time")
    words = {
        "run": run.pk,
        "attempt": run.attempt,
        "trigger": run.get_trigger_display(),
        "started": said(run.started_at),
        "late": lasted(run.lateness) or unknown,
        "took": lasted(run.duration) or unknown,
        "finished": said(run.finished_at),
        "due": said(run.due_at),
        "handed": said(run.handed_at),
        "executor": run.reason.removeprefix(AT_EXECUTOR),
        "since": lasted(evidence.now - (run.started_at or evidence.now)),
        "why": _why(run),
    }
    return _template(run).format(**words)


def _template(run: RunLog) -> str:
    if run.status == Status.TIMED_OUT and run.is_living:
        return _("It timed out: run {run} started at {started}, and its call has not returned for {since}.")
    if run.handed_at is not None and run.status == Status.PENDING:
        return _(
            "Attempt {attempt} (run {run}) was handed over to {executor} at {handed}; no process has taken it since."
            " It is handed over again at {due}."
        )
    return {
        Status.PENDING: _("Attempt {attempt} (run {run}) is promised; it waits to start at {due}.")
        if run.due_at
        else _("Run {run} is promised; it waits for the backfill runs before it."),
        Status.RUNNING: _("It is running: run {run} started at {started} and has taken {since} so far."),
        Status.SUCCEEDED: _(
            "It ran: run {run} ({trigger}) started at {started}, {late} after its slot, and succeeded in {took}."
        ),
        Status.FAILED: _("It ran and failed: run {run} ({trigger}) started at {started} and took {took}: {why}."),
        Status.TIMED_OUT: _("It ran and timed out: run {run} started at {started} and took {took}: {why}."),
        Status.SKIPPED: _("It was skipped: {why} (row {run})."),
        Status.MISSED: _("It was missed: {why} (row {run})."),
        Status.CANCELLED: _("It was cancelled at {finished}: {why} (run {run})."),
        Status.POSTPONED: _("It asked at {finished} to be run later: {why} (run {run})."),
        Status.LOST: _("It started at {started}, but its end was never reported: {why} (run {run})."),
    }[Status(run.status)]


def _why(run: RunLog) -> str:
    """The reason, else the last line of the error, which names it."""
    lines = (run.reason or run.error).strip().splitlines()
    return lines[-1].rstrip(".") if lines else _("no reason is recorded")


def _earlier(attempts: list[RunLog]) -> str:
    if not attempts:
        return ""
    told = ", ".join(
        _("attempt {attempt} {status} at {at}").format(
            attempt=run.attempt, status=run.get_status_display(), at=said(run.finished_at)
        )
        for run in attempts[-3:]
    )
    return _("Before it: {attempts}.").format(attempts=told)


def _also_counted(run: RunLog) -> str:
    if not run.coalesced:
        return ""
    text = ngettext(
        "{count} earlier slot, that of {first}, is counted on it.",
        "{count} earlier slots, from {first} on, are counted on it.",
        run.coalesced,
    )
    return text.format(count=run.coalesced, first=said(run.coalesced_from))


def _numbers(run: RunLog) -> dict[str, object]:
    return {
        "status": run.status,
        "trigger": run.trigger,
        "reason": run.reason,
        "coalesced": run.coalesced,
        "late_seconds": run.lateness.total_seconds() if run.lateness is not None else None,
        "duration_seconds": run.duration.total_seconds() if run.duration is not None else None,
        "is_catch_up": run.trigger == Trigger.CATCH_UP,
    }


def _for_user(evidence: Evidence, run: RunLog) -> str:
    """For which user a run was, in words; empty for other runs."""
    if run.trigger != Trigger.ACTIVITY:
        return ""
    words = _("It was for the user {user}.").format(user=run.actor)
    if others := evidence.other_users:
        more = ngettext("%d more user had a run at that time.", "%d more users had runs at that time.", others)
        words += " " + more % others
    return words
