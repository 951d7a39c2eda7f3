"""Rules: what every single step must respect. The invariants are those of the design."""

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from scheduler.models import Status, Trigger
from tests.simulation.checkpoints import only_the_living_save, what_was_saved_is_kept
from tests.simulation.dedicated import what_is_claimed_is_taken
from tests.simulation.dependents import (
    dependents_follow_their_parents,
    dependents_wait_out_their_backoff,
    follows_a_parent,
)
from tests.simulation.draw import GROUPS
from tests.simulation.elders import nothing_is_set_aside
from tests.simulation.grid import Grid
from tests.simulation.presence import (
    a_stop_gives_back_what_did_not_start,
    only_the_dead_are_rescued,
    rescue_leaves_nothing,
)
from tests.simulation.rows import STOPPED, JobRow, RunRow, Violation, read_garbled, read_pauses
from tests.simulation.slots import Timeline
from tests.simulation.users import no_activity_is_lost

if TYPE_CHECKING:
    from tests.simulation.watcher import Change, Event, Watcher

WAITING = Trigger.which("waits")
RATES = {"2/min": (2, timedelta(minutes=1)), "5/10min": (5, timedelta(minutes=10))}
MOVES = {
    Status.PENDING: {Status.PENDING, Status.RUNNING, Status.CANCELLED},
    Status.RUNNING: set(Status),
    Status.TIMED_OUT: {Status.TIMED_OUT},
}


def sweeps_mend(watcher: "Watcher", change: "Change") -> None:
    """What others have changed past the scheduler is allowed for until the next sweep, and judged from then on.

    So is what cannot be read, until somebody has written what can.
    """
    watcher.garbled &= read_garbled() if watcher.garbled else set()
    if change.event.name == "sweep":
        watcher.bent.clear()
        watcher.stale = set(watcher.garbled)


def runs_move_forward(watcher: "Watcher", change: "Change") -> None:
    """A row goes from promised to running to ended; only a claim that is given back goes back (I6)."""
    for before, after in change.runs:
        if before is not None and after.status not in MOVES[Status(before.status)]:
            raise Violation(f"I6: run {after.pk} went from {before.status} to {after.status}")
    if change.gone and change.event.name != "release_runs":
        raise Violation(f"I3: the open runs {[run.pk for run in change.gone]} have vanished")


def tokens_grow(watcher: "Watcher", change: "Change") -> None:
    """Every claim has a token of its own, larger than those before (I5)."""
    for pk, job in change.jobs.items():
        before = change.jobs_before.get(pk)
        tokens = sorted(run.token for run in change.begun if run.job_id == pk)
        first = before.token + 1 if before else 1
        if tokens != list(range(first, first + len(tokens))) or job.token != first + len(tokens) - 1:
            raise Violation(f"I5: job {job.name} had token {first - 1}, has {job.token}, its claims have {tokens}")


def places_are_counted(watcher: "Watcher", change: "Change") -> None:
    """The living runs of a job are counted on it (I12); where the count was bent, from the next sweep on."""
    living = Counter(watcher.runs[pk].job_id for pk in watcher.open if watcher.runs[pk].is_living)
    for pk in change.jobs.keys() - watcher.bent:
        job = change.jobs[pk]
        if job.active_runs != living[pk]:
            raise Violation(f"I12: job {job.name} has {living[pk]} living runs and says {job.active_runs}")


def limits_hold(watcher: "Watcher", change: "Change") -> None:
    """A claim finds a free place in its job and in its group (I2, I15)."""
    living = Counter(watcher.runs[pk].job_id for pk in watcher.open if watcher.runs[pk].is_living)
    for run in change.begun:
        job = change.jobs[run.job_id]
        most = watcher.spec(job).most_at_once
        if living[job.pk] > most:
            raise Violation(f"I2: job {job.name} has {living[job.pk]} living runs, {most} are allowed")
        in_group = sum(living[pk] for pk, other in change.jobs.items() if other.group == job.group)
        if job.group in GROUPS and in_group > GROUPS[job.group]:
            raise Violation(f"I15: group {job.group} has {in_group} living runs")


def postponed_attempts_hold_their_places(watcher: "Watcher", change: "Change") -> None:
    """What begins finds a place beside the attempts of its job that put themselves off, unless it is one (I2).

    Where the newest slot replaces what goes on, such an attempt is cancelled.
    """
    for run in change.begun:
        if run.trigger in WAITING or _follows_a_postponement(watcher, run):
            continue
        waiting = [watcher.runs[pk] for pk in watcher.open]
        waiting = [one for one in waiting if one.job_id == run.job_id and one.status == Status.PENDING]
        held = sum(_follows_a_postponement(watcher, one) for one in waiting)
        if held and held + 1 > watcher.spec(change.jobs[run.job_id]).most_at_once:
            raise Violation(f"I2: run {run.pk} began beside {held} postponed attempts of its job")


def _follows_a_postponement(watcher: "Watcher", run: RunRow) -> bool:
    before = (one for one in _attempts(watcher, run) if one.attempt == run.attempt - 1)
    return run.trigger not in WAITING and any(one.status == Status.POSTPONED for one in before)


def nothing_starts_early(watcher: "Watcher", change: "Change") -> None:
    """A run is claimed for its slot, by the instance that shall run it, at most a little ahead (I4, I11)."""
    node = change.event.node
    went_back = watcher.clock_went_back
    for run in change.begun:
        if run.started_at is None or (run.counts and run.started_at < run.scheduled_for and not went_back):
            raise Violation(f"I4: run {run.pk} of slot {run.scheduled_for} starts at {run.started_at}")
        before = next(before for before, after in change.runs if after.pk == run.pk)
        promised = before.due_at if before and not before.handed_at else None  # else it is when it is handed over again
        if promised and run.started_at < promised:
            raise Violation(f"I11: run {run.pk}, promised for {promised}, starts at {run.started_at}")
        if node is None or run.started_at > change.event.now + watcher.world.ahead:
            raise Violation(f"I4: run {run.pk} was claimed too far ahead")


def nothing_starts_after_a_stop(watcher: "Watcher", change: "Change") -> None:
    """A pause, a disabled or broken job, a paused group: no claim after that has committed (I13).

    People may run a job by hand whatever stops it; a backfill is stopped by pauses only.
    """
    claimed = [run for run in change.begun if run.trigger != Trigger.MANUAL]
    if not claimed:
        return
    paused_groups = read_pauses(change.event.now)
    for run in claimed:
        job = change.jobs_before[run.job_id]
        probing = job.broken_at and "breaker_probe_after" in watcher.spec(job).options
        is_over = job.paused_until and run.started_at and job.paused_until <= run.started_at
        paused = job.paused_at and not is_over
        stopped = paused
        if run.trigger != Trigger.BACKFILL:
            stopped = paused or not job.enabled or job.orphaned_at or (job.broken_at and not probing)
        if stopped or paused_groups & {"", job.group}:
            raise Violation(f"I13: run {run.pk} of {job.name} was claimed although it, or its group, is stopped")


def pauses_end_in_time(watcher: "Watcher", change: "Change") -> None:
    """The end of a pause is looked at in time; what waits for a slot before it is planned from then on (I3).

    Other policies keep the slot that was next, or the end of the pause: the job is planned from that on. Of slots that
    are given back meanwhile, from the oldest; where the slot cannot be read, from the start. A job that waits for
    others goes on with the end of a parent, which may be older: it starts right after the pause.
    """
    for pk, job in change.jobs.items():
        before, ended_at = change.jobs_before.get(pk), change.ended_at(job)
        if pk in watcher.stale:
            continue
        if job.paused_until and job.enabled and job.is_planned and job.wake_at != job.paused_until:
            raise Violation(f"I3: {job.name} is paused until {job.paused_until}, and looked at {job.wake_at}")
        is_older = before and ended_at and job.next_run_at and job.next_run_at < ended_at and job.is_planned
        if is_older and not follows_a_parent(watcher, change, job):
            raise Violation(f"I3: {job.name} goes on with {job.next_run_at} after a pause until {ended_at}")
        kept = {before.next_run_at, before.replan_from, before.paused_until} if before else set()
        kept |= {run.first for run in change.gone if run.job_id == pk}
        kept |= {before.wake_at} if before and job.name in watcher.spoiled else set()
        if not job.is_planned and job.replan_from not in {ended_at, *kept, None}:
            raise Violation(f"I3: {job.name} will be planned from {job.replan_from}: no end of a pause, no slot of its")


def attempts_are_bounded(watcher: "Watcher", change: "Change") -> None:
    """A slot has at most three attempts that are lost, and no more that fail than it may be retried (I11)."""
    for run in change.begun:
        if not run.may_go_again or run.attempt == 1:
            continue
        spent = [one for one in _attempts(watcher, run) if _is_spent(one)]
        spec = watcher.spec(change.jobs[run.job_id])
        if len(spent) >= max(3, spec.most_retries + 1):
            raise Violation(f"I11: run {run.pk} is an attempt after {len(spent)} others")
        if sum(one.status == Status.LOST for one in spent) >= 3:
            raise Violation(f"I11: run {run.pk} follows three lost attempts")


def _attempts(watcher: "Watcher", run: RunRow) -> list[RunRow]:
    alike = (watcher.runs[pk] for pk in watcher.runs)
    return [one for one in alike if (one.job_id, one.scheduled_for) == (run.job_id, run.scheduled_for)]


def _is_spent(run: RunRow) -> bool:
    if run.is_open or not run.may_go_again or run.status in (Status.POSTPONED, Status.SKIPPED, Status.CANCELLED):
        return False
    return run.status != Status.LOST or run.reason != STOPPED


def lost_attempts_go_again(watcher: "Watcher", change: "Change") -> None:
    """A slot or a run by hand whose process died gets its next attempt with the end of the lost one (I3, I11)."""
    for run in change.ended:
        if run.status != Status.LOST or not run.may_go_again or run.stop_requested_at:
            continue
        job, before = change.jobs[run.job_id], change.jobs_before[run.job_id]
        is_stopped = run.trigger != Trigger.MANUAL and (before.broken_at or job.broken_at or not job.enabled)
        is_wanted = watcher.spec(job).options.get("on_lost", "retry") == "retry"
        was_the_last = run.reason != STOPPED and run.failed_attempts + 1 >= 3
        if is_stopped or was_the_last or not is_wanted:
            continue
        if all(one.attempt <= run.attempt for one in _attempts(watcher, run)):
            raise Violation(f"I3/I11: {run.trigger} run {run.pk} of {job.name} was lost, and nothing follows")


def rates_hold(watcher: "Watcher", change: "Change") -> None:
    """A run of the schedule finds room under the rate limit, in a window that is one per cent short."""
    for run in change.begun:
        rate = watcher.spec(change.jobs[run.job_id]).options.get("rate_limit")
        if rate is None or not run.is_of_the_plan or watcher.pruned or watcher.clock_went_back:
            continue
        most, per = RATES[rate]
        since = max(change.event.now, run.started_at or change.event.now) - per * 0.99
        others = (one for one in watcher.runs.values() if one.job_id == run.job_id and one.pk != run.pk)
        started = [one for one in others if one.status != Status.SKIPPED and one.started_at and one.started_at > since]
        if len(started) >= most:
            raise Violation(f"I15: run {run.pk} exceeds the rate limit {rate}")


def slots_are_decided_in_order(watcher: "Watcher", change: "Change") -> None:
    """Every slot of the model's timeline is decided exactly once, none is left out, the plan names the next (I3)."""
    for run in change.gone:
        watcher.timelines[run.job_id].give_back(run)
    for pk, job in change.jobs.items():
        before, timeline = change.jobs_before.get(pk), watcher.timelines[pk]
        timeline.define(job)
        if _is_planned_afresh(change, before, job):
            _plan(watcher, change, timeline, job)
        if before and before.broken_at and timeline.start is None:
            timeline.grid = _grid(watcher, job)
        for old, run in change.runs:
            if old is None and run.job_id == pk and run.is_second_decision:
                raise Violation(f"I1/I3: run {run.pk} decides slot {run.scheduled_for} of {job.name} again")
            if old is None and run.job_id == pk and run.is_of_the_plan:
                timeline.decide(run, probing=bool(before and before.broken_at))
                _check_catch_up(watcher, change.event, timeline, job, run)
        if job.is_stopped or not job.is_planned:
            timeline.unplan()
        timeline.loose |= pk in watcher.stale
        _allow_for_runs_by_hand(watcher, timeline, pk)
        timeline.check_plan(job)


def _is_planned_afresh(change: "Change", before: JobRow | None, job: JobRow) -> bool:
    if not job.is_planned or job.is_stopped:
        return False
    if before is None or not before.is_planned or before.is_stopped:
        return True
    if change.event.node is None:  # what people do is planned in the same transaction: other slots, the end of a pause
        ended_at = change.ended_at(job)
        waited = before.next_run_at is not None and ended_at is not None and before.next_run_at < ended_at
        return waited or before.planned_by != job.planned_by
    return change.event.name == "clock_moved_back" and before.next_run_at != job.next_run_at


def _plan(watcher: "Watcher", change: "Change", timeline: Timeline, job: JobRow) -> None:
    event, before = change.event, change.jobs_before.get(job.pk)
    since = _planned_since(change, before, job)
    timeline.move(watcher.world.zone if watcher.spec(job).daily else "")
    timeline.plan(_grid(watcher, job), event.now, since=since, clock_went_back=watcher.clock_went_back)
    if event.name == "clock_moved_back" and watcher.spec(job).anchor:
        timeline.loose = True  # it goes on within one interval, although its grid may begin later


def _planned_since(change: "Change", before: JobRow | None, job: JobRow) -> datetime | None:
    """Return the instant from which a job is planned that has a plan now; None means from now on."""
    ended_at = change.ended_at(job)
    is_edit = change.event.node is None and not change.event.name.startswith("resume")
    if before and is_edit and before.planned_by != job.planned_by:
        return None  # people gave it other slots: none of them is in the past, whatever pause is over
    if before is None or before.is_planned:
        return ended_at
    if change.event.node is None and ended_at:  # people end a pause, and the job is planned in that transaction
        own = before.paused_at and not job.paused_at
        return ended_at if own or (before.replan_from and before.replan_from < ended_at) else before.replan_from
    return before.replan_from


def _grid(watcher: "Watcher", job: JobRow) -> Grid | None:
    spec = watcher.spec(job)
    return spec.grid(job.anchor_at, watcher.world.zone) if spec.has_grid else None


def _allow_for_runs_by_hand(watcher: "Watcher", timeline: Timeline, job: int) -> None:
    """A clock that was set back may bring a slot to the instant of a run by hand; the job then goes on off its grid."""
    number = timeline.expected()
    if not watcher.clock_went_back or number is None or timeline.grid is None:
        return
    slot = timeline.grid.slot(number)
    timeline.loose |= any((run.job_id, run.scheduled_for) == (job, slot) for run in watcher.runs.values())


def _check_catch_up(watcher: "Watcher", event: "Event", timeline: Timeline, job: JobRow, run: RunRow) -> None:
    """One catch-up for all that is late, or a bounded number of them (I10)."""
    if timeline.loose or run.status != Status.RUNNING:
        return
    options = watcher.spec(job).options
    most = options.get("max_catch_up", 10) - 1 if options.get("misfire") == "run_all" else 0
    if timeline.overdue(event.now) > most:
        raise Violation(f"I10: after run {run.pk}, {timeline.overdue(event.now)} slots of {job.name} are still due")


def anchors_stay(watcher: "Watcher", change: "Change") -> None:
    """The grid of a job begins when it is planned for the first time, and stays until it is disabled (I9).

    One that waits for others begins anew with every schedule it is given.
    """
    for pk, job in change.jobs.items():
        before = change.jobs_before[pk].anchor_at if pk in change.jobs_before else None
        if job.anchor_at is None and watcher.spec(job).parents and not job.is_planned:
            continue
        if job.anchor_at not in (before, change.event.now) and (job.enabled or job.anchor_at):
            raise Violation(f"I9: the anchor of {job.name} was {before}, and is {job.anchor_at}")


def breaker_trips_once(watcher: "Watcher", change: "Change") -> None:
    """Failures in a row are counted, and the one that reaches the threshold breaks the job, with one notice (I14).

    It comes late, or never, where the answer to the write was lost.
    """
    trips: Counter[int] = Counter()
    for run in change.ended:
        if run.counts and (run.failed or run.status == Status.SUCCEEDED):
            trips[run.job_id] += _judge(watcher, change.jobs[run.job_id], failed=run.failed)
    heard = Counter({pk: count for pk, count in watcher.world.notices.items() if count})
    watcher.world.notices.clear()
    if change.event.unheard:
        watcher.notices_owed += trips
    elif (+trips - heard) or (heard - trips - watcher.notices_owed):
        raise Violation(f"I14: notices {dict(heard)} of broken jobs, but {dict(trips)} have broken")
    else:
        watcher.notices_owed -= heard - trips
    for pk, job in change.jobs.items():
        if change.event.node is None and not job.consecutive_failures and not job.broken_at:
            watcher.failures[pk] = 0
            watcher.broken.discard(pk)
        if (job.consecutive_failures, bool(job.broken_at)) != (watcher.failures[pk], pk in watcher.broken):
            raise Violation(f"I14: {job.name} has {job.consecutive_failures} failures, not {watcher.failures[pk]}")


def _judge(watcher: "Watcher", job: JobRow, *, failed: bool) -> bool:
    watcher.failures[job.pk] = watcher.failures[job.pk] + 1 if failed else 0
    threshold = watcher.spec(job).options.get("breaker_threshold", 5)
    if not failed:
        watcher.broken.discard(job.pk)
    trips = failed and threshold is not None and watcher.failures[job.pk] >= threshold and job.pk not in watcher.broken
    if trips:
        watcher.broken.add(job.pk)
    return trips


RULES = (
    sweeps_mend,
    runs_move_forward,
    tokens_grow,
    places_are_counted,
    limits_hold,
    postponed_attempts_hold_their_places,
    nothing_starts_early,
    nothing_starts_after_a_stop,
    pauses_end_in_time,
    attempts_are_bounded,
    lost_attempts_go_again,
    rates_hold,
    anchors_stay,
    slots_are_decided_in_order,
    breaker_trips_once,
    dependents_follow_their_parents,
    dependents_wait_out_their_backoff,
    rescue_leaves_nothing,
    only_the_dead_are_rescued,
    a_stop_gives_back_what_did_not_start,
    nothing_is_set_aside,
    no_activity_is_lost,
    only_the_living_save,
    what_was_saved_is_kept,
    what_is_claimed_is_taken,
)
