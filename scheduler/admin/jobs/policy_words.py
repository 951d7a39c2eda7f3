"""The policies of a job in words."""

from collections.abc import Callable, Collection, Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.activity.keys import NAMES
from scheduler.engine.views.job_view import JobView
from scheduler.models.stored import Unreadable
from scheduler.policy import Policy
from scheduler.policy.backoff import Steps
from scheduler.policy.base import GateClosed, OnLost, OnStuck
from scheduler.policy.codec import clock_text
from scheduler.policy.misfire import Misfire
from scheduler.policy.overlap import Overlap
from scheduler.schedules import OnActivity, format_duration


def policy_words(policy: Policy | Unreadable) -> list[tuple[str, str]]:
    """Return the policies as pairs of subject and sentence."""
    if isinstance(policy, Unreadable):
        return [(_("Policies"), policy.error)]
    return [pair for words in OF_GROUPS.values() for pair in words(policy)]


def words_of_group(policy: Policy, options: Collection[str]) -> str:
    """Return what holds of a group of options in a line, such as “Stops after 5 failures in a row.”."""
    found = [pair for option, words in OF_GROUPS.items() if option in options for pair in words(policy)]
    nothing = _("no limit") if "rate_limit" in options else _("not watched") if "fresh" in options else ""
    return " · ".join(words if _is_sentence(words) else f"{subject}: {words}" for subject, words in found) or nothing


def _is_sentence(words: str) -> bool:
    return words[:1].isupper() and words.endswith(".")


def words_for_users(view: JobView, rules: OnActivity) -> list[tuple[str, str]]:
    """Return the rules of a job whose runs follow what users do, and those of its policies that count for it."""
    if isinstance(view.job.policy, Unreadable):
        return policy_words(view.job.policy)
    policy = view.policy
    time, blocked = format_duration(rules.interval), format_duration(rules.block)
    most = policy.max_concurrent
    failures = ngettext("after %d failure", "after %d failures in a row", rules.max_retries) % rules.max_retries
    found = [
        (_("One user is"), ", ".join(NAMES[: rules.dimensions])),
        (_("At once"), ngettext("%d run at most.", "%d runs at most.", most) % most),
        (_("A failed run"), _("is tried again after {time}.").format(time=time)),
        (_("Blocked"), _("{failures}, for {time}.").format(failures=failures, time=blocked)),
        (_("Missed"), _("if it does not start within {time}.").format(time=format_duration(rules.task_ttl))),
        (_("Timeout"), format_duration(rules.timeout)),
    ]
    of_slots = (_("Overlap"), _("Misfire"), _("Breaker"), _("Timeout"), *(() if policy.retries else (_("Backoff"),)))
    return [*found, *(one for one in policy_words(policy) if one[0] not in of_slots)]


def _overlap(policy: Policy) -> Iterator[tuple[str, str]]:
    most = policy.max_concurrent
    words = {
        Overlap.SKIP: _("A slot that comes while the job runs is skipped."),
        Overlap.QUEUE_ONE: _("One slot that comes while the job runs follows at once."),
        Overlap.ALLOW: ngettext("Up to %d run at once.", "Up to %d runs at once.", most) % most,
        Overlap.REPLACE: _("A new slot asks the running one to stop, then starts."),
    }
    yield _("Overlap"), words[policy.overlap]


def _misfire(policy: Policy) -> Iterator[tuple[str, str]]:
    most = policy.max_catch_up
    words = {
        Misfire.RUN_LATEST: _("After downtime the latest missed slot runs once."),
        Misfire.SKIP: _("Slots missed by downtime are left out."),
        Misfire.RUN_ALL: ngettext(
            "After downtime up to %d missed slot runs.", "After downtime up to %d missed slots run.", most
        )
        % most,
    }
    found = words[policy.misfire]
    if policy.grace is not None:
        found += " " + _("A start may be late by {time}.").format(time=format_duration(policy.grace))
    yield _("Misfire"), found


def _failure(policy: Policy) -> Iterator[tuple[str, str]]:
    if policy.retries:
        retries = ngettext("%d retry of a failed slot.", "%d retries of a failed slot.", policy.retries)
        yield _("Retries"), retries % policy.retries
    if isinstance(policy.backoff, Steps):
        steps = ", ".join(format_duration(step) for step in policy.backoff.steps)
        yield _("Backoff"), _("Delays after failures: {steps}.").format(steps=steps) if steps else _("None.")
    else:
        yield _("Backoff"), str(policy.backoff)
    if policy.breaker_threshold is None:
        yield _("Breaker"), _("Never stops, however often it fails.")
    else:
        count = policy.breaker_threshold
        words = ngettext("Stops after %d failure.", "Stops after %d failures in a row.", count) % count
        if policy.breaker_probe_after:
            words += " " + _("Tries again after {time}.").format(time=format_duration(policy.breaker_probe_after))
        yield _("Breaker"), words
    lost = _("runs again (at least once)") if policy.on_lost is OnLost.RETRY else _("is left (at most once)")
    yield _("When its process dies"), _("the slot {what}.").format(what=lost)


def _time(policy: Policy) -> Iterator[tuple[str, str]]:
    timeout = format_duration(policy.timeout) if policy.timeout else _("none")
    yield _("Timeout"), timeout
    if policy.stuck_after:
        after = format_duration(policy.stuck_after)
        held = policy.on_stuck is OnStuck.FLAG
        words = _("Flagged after {time}; the run keeps its place.") if held else _("Given up after {time}.")
        yield _("Stuck"), words.format(time=after)


def _limits(policy: Policy) -> Iterator[tuple[str, str]]:
    if policy.gate_closed is GateClosed.WAIT:
        yield _("Closed gate"), _("A slot waits until its gate opens.")
    elif policy.gate_closed is GateClosed.SKIP:
        yield _("Closed gate"), _("A slot whose gate is closed is skipped.")
    if policy.rate_limit:
        yield _("Rate limit"), str(policy.rate_limit)
    if policy.starts_at:
        yield _("Starts"), f"{policy.starts_at:%Y-%m-%d %H:%M %Z}"
    if policy.ends_at:
        yield _("Ends"), f"{policy.ends_at:%Y-%m-%d %H:%M %Z}"
    if policy.max_runs:
        yield _("Most runs"), str(policy.max_runs)


def _expected(policy: Policy) -> Iterator[tuple[str, str]]:
    if policy.fresh:
        yield _("Expected"), _("A success at least every {time}.").format(time=format_duration(policy.fresh))
    if policy.succeed_by:
        yield _("Expected"), _("A success by {time}.").format(time=clock_text(policy.succeed_by))


def _called(policy: Policy) -> Iterator[tuple[str, str]]:
    yield _("Executor"), policy.executor


OF_GROUPS: dict[str, Callable[[Policy], Iterator[tuple[str, str]]]] = {
    "overlap": _overlap, "misfire": _misfire, "retries": _failure, "timeout": _time, "rate_limit": _limits,
    "fresh": _expected, "executor": _called,
}  # fmt: skip
"""What is said of each group of the form, by an option that is in it."""
