"""Families: the metrics by name, each with its help, labels and samples."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from scheduler.engine.views.standing import Standing
from scheduler.metrics.figures import Figures
from scheduler.metrics.sums import OTHER, STATUSES
from scheduler.models import JobState, Status, Trigger
from scheduler.models.tally import BEYOND, LATE_MS, TOOK_MS
from scheduler.schedules import Slots

FROM_THE_FIRST = [status for status in STATUSES.values() if status != "cancelled"]
"""Each of these is there, as 0, before the first run: a counter that begins at 1 shows no increase."""
UNKNOWN = "unknown"
"""The label of a trigger or a reason that no row tells."""

Labels = tuple[str, ...]


def families(found: Figures) -> Iterator[Metric]:
    """Yield every metric."""
    yield from _of_runs(found)
    yield from _of_slots(found)
    yield from _of_jobs(found)
    yield from _of_the_whole(found)


def _of_runs(found: Figures) -> Iterator[Metric]:
    sums = found.sums
    runs = [((label, STATUSES[of], why or UNKNOWN), times) for (label, of, why), times in sums.runs.items()]
    beginning = ((label, status, trigger) for label, trigger in _usual(found) for status in FROM_THE_FIRST)
    text = "Runs that have ended, by how they ended and what started them."
    yield _counter("scheduler_task_runs", text, ("task", "status", "trigger"), _summed(runs, beginning))
    text = "Runs of all jobs that have ended, deleted jobs included."
    of_all = _summed((labels[1:], times) for labels, times in runs)
    yield _counter("scheduler_runs", text, ("status", "trigger"), of_all)
    text = "How long runs took whose end was reported."
    yield _histogram("scheduler_task_duration_seconds", text, "task", TOOK_MS, sums.took, found.labels.values())
    text = "How long after their slots the first attempts started."
    yield _histogram("scheduler_start_delay_seconds", text, "trigger", LATE_MS, sums.late, [str(Trigger.SCHEDULE)])


def _usual(found: Figures) -> Iterator[tuple[str, str]]:
    """Yield the label of each job, and the trigger of most of its runs."""
    for one in found.standings:
        if label := found.labels.get(one.job.pk):
            yield label, str(_usual_trigger(one))
    if len(found.labels) < len(found.standings):
        yield OTHER, str(Trigger.SCHEDULE)


def _usual_trigger(one: Standing) -> Trigger:
    schedule = one.job.schedule
    if schedule.is_dependent:
        return Trigger.DEPENDENCY
    if schedule.for_users:
        return Trigger.ACTIVITY
    return Trigger.SCHEDULE if schedule.slots in (Slots.TIMED, Slots.ONE) else Trigger.MANUAL


def _of_slots(found: Figures) -> Iterator[Metric]:
    slots = found.sums.slots.items()
    text = "Slots that were skipped, by the kind of reason."
    skipped = _summed(((label, why or UNKNOWN), times) for (label, of, why), times in slots if of == Status.SKIPPED)
    yield _counter("scheduler_task_skipped", text, ("task", "reason"), skipped)
    text = "Slots that were found too late, or never started."
    beginning = ((label,) for label in found.labels.values())
    missed = _summed((((label,), times) for (label, of, _), times in slots if of == Status.MISSED), beginning)
    yield _counter("scheduler_task_missed", text, ("task",), missed)


def _of_jobs(found: Figures) -> Iterator[Metric]:
    shown = [(found.labels[one.job.pk], one) for one in found.standings if one.job.pk in found.labels]
    next_slots = [((label,), _seconds(one.next_slot)) for label, one in shown if one.next_slot]
    yield _gauge("scheduler_next_run_timestamp_seconds", "The next slot that is planned.", ("task",), next_slots)
    successes = [((label,), _seconds(one.job.last_success_at)) for label, one in shown if one.job.last_success_at]
    yield _gauge("scheduler_last_success_timestamp_seconds", "The end of the last success.", ("task",), successes)
    failures = [((label,), one.job.consecutive_failures) for label, one in shown]
    yield _gauge("scheduler_consecutive_failures", "Failures in a row.", ("task",), failures)
    states = [((label, str(one.state.value)), 1) for label, one in shown]
    yield _gauge("scheduler_job_state", "1 for the state of each job.", ("task", "state"), states)
    yield _gauge("scheduler_activity_queue_depth", "Users who wait for a run.", ("task",), _waiting(found))


def _waiting(found: Figures) -> list[tuple[Labels, float]]:
    ids = {str(one.job.name): one.job.pk for one in found.standings}
    waiting = Counter[str]()
    for name, users in found.waiting.items():
        if users is not None:
            waiting[found.labels.get(ids[name], OTHER)] += users
    return [((label,), users) for label, users in sorted(waiting.items())]


def _of_the_whole(found: Figures) -> Iterator[Metric]:
    states = Counter(one.state for one in found.standings)
    every = [((str(state.value),), states[state]) for state in JobState]
    yield _gauge("scheduler_jobs", "Jobs by state, those without a label of their own too.", ("state",), every)
    yield _gauge("scheduler_instances", "Live processes that start due work.", (), [((), len(found.found.running))])
    late = found.found.oldest_overdue
    seconds = late[1].total_seconds() if late else 0.0
    text = "For how long the job is overdue that has been so for longest; 0 where none is."
    yield _gauge("scheduler_oldest_overdue_seconds", text, (), [((), seconds)])
    problems = Counter[Labels]()
    for one in found.found.problems:
        problems[one.code, str(one.severity)] += one.count
    text = "Problems that every process sees, as health lists them."
    yield _gauge("scheduler_problems", text, ("code", "severity"), sorted(problems.items()))


def _summed(counted: Iterable[tuple[Labels, int]], beginning: Iterable[Labels] = ()) -> dict[Labels, int]:
    """Add up what has the same labels; what has the empty one is of a job that is gone."""
    sums: dict[Labels, int] = dict.fromkeys(beginning, 0)
    for labels, times in counted:
        sums[labels] = sums.get(labels, 0) + times
    return {labels: sums[labels] for labels in sorted(sums) if labels[0]}


def _counter(name: str, text: str, names: Labels, values: Mapping[Labels, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=names)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _gauge(name: str, text: str, names: Labels, values: Iterable[tuple[Labels, float]]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=names)
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def _histogram(
    name: str,
    text: str,
    label: str,
    bounds: Sequence[int],
    measured: Mapping[tuple[str, int], Sequence[int]],
    beginning: Iterable[str],
) -> Metric:
    """Return a histogram of what was measured: by label and bound in milliseconds how often, and the sum in
    microseconds."""
    buckets: dict[str, list[int]] = {one: [0] * len(bounds) for one in beginning}
    sums: Counter[str] = Counter()
    for (value, within), (times, microseconds) in measured.items():
        if value:
            buckets.setdefault(value, [0] * len(bounds))[bisect_left(bounds, within)] += times
            sums[value] += microseconds
    family = HistogramMetricFamily(name, text, labels=[label])
    words = ["+Inf" if bound == BEYOND else str(bound / 1000) for bound in bounds]
    for value in sorted(buckets):
        family.add_metric([value], list(_cumulated(words, buckets[value])), sums[value] / 1_000_000)
    return family


def _cumulated(words: Iterable[str], counts: Iterable[int]) -> Iterator[tuple[str, int]]:
    total = 0
    for word, count in zip(words, counts, strict=True):
        total += count
        yield word, total


def _seconds(at: datetime) -> float:
    return at.timestamp()
