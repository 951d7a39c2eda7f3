"""Slots: the timeline of one job by the independent model, and which slots of it the ledger has decided."""

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from tests.simulation.grid import LONG_AGO, Grid
from tests.simulation.rows import JobRow, RunRow, Violation
from tests.simulation.zones import ZONES

MOMENT = timedelta(microseconds=1)


@dataclass
class Timeline:
    """The slots of a job since it was last planned. `start` is None while the job has no plan, or is being probed."""

    grid: Grid | None = None
    start: int | None = None
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Which slots each row of the plan decides, by number."""
    slots: dict[datetime, int] = field(default_factory=dict)
    """Every slot that a row of the plan was ever for."""
    loose: bool = False
    """The clock was set back behind what is decided: slots of the new plan may have been decided before."""

    definition: str = ""
    """What the plan is made from, as the scheduler notes it."""
    zone: str = ""
    """The zone in which it is planned; empty where that does not matter."""
    floor: datetime | None = None
    """Up to where its slots have had their run in another zone."""
    days: set[date] = field(default_factory=set)
    """The days, by its wall clock, of which a slot is decided by this definition."""

    def define(self, job: JobRow) -> None:
        """Another definition has other slots: of those no day is decided."""
        if job.planned_by != self.definition:
            self.definition, self.floor, self.zone = job.planned_by, None, ""
            self.days.clear()

    def move(self, zone: str) -> None:
        """The job is planned in a zone: the days that had their slot in the one before keep it."""
        before, self.zone = self.zone, zone
        if not before or not zone or before == zone:
            return
        newest = max(self.slots, default=None)
        decided = max(filter(None, (self.floor, newest)), default=None)
        self.floor = decided and decided + ZONES[before] - ZONES[zone]

    def plan(self, grid: Grid | None, now: datetime, *, since: datetime | None, clock_went_back: bool) -> None:
        """The job is planned afresh: its first slot is the first one to come that nothing has decided yet.

        After a pause it is the first one from its end on, `since`, that instant included.
        """
        after = now if since is None else max(LONG_AGO, min(since, now)) - MOMENT
        decided = max([after, *self.slots, *filter(None, [self.floor])])
        self.grid, self.ranges = grid, {}
        self.loose = clock_went_back and decided > after
        self.start = None if grid is None else grid.number_after(max(after, decided))

    def unplan(self) -> None:
        """The job is stopped, or is to be planned anew: what is undecided is dropped."""
        self.start = None

    def expected(self) -> int | None:
        """Return the number of the first slot that nothing has decided."""
        number = self.start
        if number is None:
            return None
        for first, last in sorted(self.ranges.values()):
            if first > number:
                break
            number = max(number, last + 1)
        return number

    def decide(self, row: RunRow, *, probing: bool) -> None:
        """The ledger has a new row of the plan."""
        if row.scheduled_for in self.slots:
            raise Violation(f"I1/I3: slot {row.scheduled_for} has two rows: {self.slots[row.scheduled_for]}, {row.pk}")
        self.slots[row.scheduled_for] = row.pk
        if self.grid is None or self.loose:
            return
        self._check_day(row)
        first, last = self.grid.number_of(row.first), self.grid.number_of(row.scheduled_for)
        if first is None or last is None:
            raise Violation(f"I3: row {row.pk} is for {row.first} … {row.scheduled_for}, which are no slots")
        if row.coalesced != last - first:
            raise Violation(f"I3: row {row.pk} counts {row.coalesced} further slots, not {last - first}")
        if self.start is None and probing:
            self.start, self.ranges = first, {}
        self._add(row.pk, first, last)

    def _check_day(self, row: RunRow) -> None:
        if not self.zone:
            return
        day = (row.scheduled_for + ZONES[self.zone]).date()
        if day in self.days:
            raise Violation(f"I1: row {row.pk} of {row.scheduled_for} is the second one of {day}")
        self.days.add(day)

    def _add(self, pk: int, first: int, last: int) -> None:
        if self.start is None:
            raise Violation(f"I13: row {pk} decides a slot of a job without a plan")
        if first != self.expected():
            raise Violation(f"I3: row {pk} begins with slot number {first}, but {self.expected()} is the next one")
        for other, (low, high) in self.ranges.items():
            if first <= high and low <= last:
                raise Violation(f"I3: rows {other} and {pk} decide the same slots")
        self.ranges[pk] = (first, last)

    def give_back(self, row: RunRow) -> None:
        """A claim was undone."""
        self.slots.pop(row.scheduled_for, None)
        if self.zone:
            self.days.discard((row.scheduled_for + ZONES[self.zone]).date())
        if self.ranges.pop(row.pk, None) is None:
            self.loose = True  # it comes from an earlier plan, and is due again in this one

    def overdue(self, now: datetime) -> int:
        """Return how many slots up to `now` nothing has decided."""
        number = self.expected()
        return 0 if number is None or self.grid is None else max(0, self.grid.number_after(now) - number)

    def check_plan(self, job: JobRow) -> None:
        """The plan of the job names the next slot of the model, exactly."""
        number = self.expected()
        if number is None or self.grid is None or self.loose:
            return
        if job.next_run_at != self.grid.slot(number):
            raise Violation(f"I8/I9: {job.name} has {job.next_run_at} next, the model {self.grid.slot(number)}")
