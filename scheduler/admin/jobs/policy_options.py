"""What the form says of each option of the policy: label, help, and what an empty field means. One row for each.

Kind and default of an option are read from the policy itself; one that is missing here appears under “Further options”.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from django.utils.translation import gettext_lazy as _

from scheduler.policy import Policy
from scheduler.policy.executor import executors

NONE = _("none")


@dataclass(frozen=True, slots=True)
class Option:
    """The words of one option. `empty` says what None means where that is the default."""

    name: str
    label: Any
    help: Any = ""
    empty: Any = NONE
    choices: Mapping[str, Any] = field(default_factory=dict)


GROUPS: list[tuple[Any, list[Option]]] = [
    (_("Overlap"), [
        Option("overlap", _("A slot comes while the job runs"), choices={
            "skip": _("skip it"), "queue_one": _("start it when the run ends, one at most"),
            "allow": _("start it beside"), "replace": _("ask the run to stop, then start it"),
        }),
        Option("max_concurrent", _("Runs at once"), _("More than 1 needs “start it beside”.")),
    ]),
    (_("After downtime"), [
        Option("misfire", _("Slots were missed"), choices={
            "run_latest": _("run the latest once"), "skip": _("leave them out"), "run_all": _("run all of them"),
        }),
        Option("grace", _("Not yet missed for"), _("How late a slot may start and still be in time."),
               _("a day for dates and times; else one interval, and at least 1m")),
        Option("catch_up_window", _("Catch up at most"), _("Slots older than this are left out."), _("no limit")),
        Option("max_catch_up", _("Most slots caught up"), _("For “run all of them”.")),
    ]),
    (_("Failures"), [
        Option("retries", _("Retries"), _("Further attempts of the same slot.")),
        Option("backoff", _("Delays after failures"),
               _("The last one repeats: 30s, 1m, 5m. Or a growing one: 1m x2 up to 1h. Or “none”.")),
        Option("breaker_threshold", _("Broken after failures in a row"), _("1: the first one. “none”: never.")),
        Option("breaker_probe_after", _("Try a broken job again after"), empty=_("a person resets it")),
        Option("on_lost", _("The process of a run died"), choices={
            "retry": _("run the slot again: at least once"), "skip": _("leave it: at most once"),
        }),
    ]),
    (_("Time limits"), [
        Option("timeout", _("Timeout"), _("A run that takes longer is asked to stop."), _("no limit")),
        Option("stuck_after", _("Stuck after"), _("A run that takes longer is flagged. “none”: never.")),
        Option("on_stuck", _("A stuck run"), choices={
            "flag": _("is flagged and keeps its place"), "abandon": _("is given up, the job goes on"),
        }),
    ]),
    (_("Limits"), [
        Option("gate_closed", _("The gate is closed when a slot is due"), choices={
            "auto": _("skip it; wait where the schedule counts from completion"), "skip": _("skip it"),
            "wait": _("wait: the gate is asked again every 30 s"),
        }),
        Option("rate_limit", _("Rate limit"), _("Such as 10/h or 5/10min."), _("no limit")),
        Option("max_runs", _("Most runs ever"), empty=_("no limit")),
        Option("starts_at", _("No slot before"), _("Such as 2027-01-31 12:00, in the time zone of the project."),
               _("no limit")),
        Option("ends_at", _("No slot after"), _("Such as 2027-12-31 12:00, in the time zone of the project."),
               _("no limit")),
    ]),
    (_("What is expected"), [
        Option("fresh", _("A success at least every"),
               _("Such as 25h. What is late is told as a problem; nothing is stopped."), _("not watched")),
        Option("succeed_by", _("A success by"),
               _("A time of day such as 06:00, in the time zone of the job, on each day with a slot before it."),
               _("not watched")),
        Option("notify_after", _("Told after failures in a row"),
               _("By notification channels; stops nothing. 1: the first one."), _("when the job counts as failing")),
        Option("notify", _("Told of"),
               _("Of broken, failed, stuck, missed, lost, not_fresh, deadline_missed, slower; or “nothing”."),
               _("what the channels tell")),
    ]),
    (_("How it is called"), [
        Option("executor", _("Executor"), _("What runs the call.")),
        Option("executor_options", _("Options of the executor"),
               _("For executors that hand runs over, such as {\"queue\": \"slow\", \"priority\": 5}.")),
        Option("handover_timeout", _("Hand over again after"),
               _("Where the executor hands runs over and none takes them.")),
        Option("render_kwargs", _("Fill in placeholders"), _("Of the keyword arguments, for each run.")),
    ]),
]  # fmt: skip
"""The groups of the form, in this order."""


def executor_words() -> dict[str, Any]:
    """Return the executors that there are now, with their words."""
    return {executor.name: _(executor.label) for executor in executors()}


def option_groups(policy: type[Any] = Policy) -> list[tuple[Any, list[Option]]]:
    """Return the groups with every option the policy has and no other."""
    there = [one.name for one in fields(policy)]
    groups = [(label, [option for option in options if option.name in there]) for label, options in GROUPS]
    known = {option.name for _label, options in groups for option in options}
    further = [Option(name, name.replace("_", " ").capitalize()) for name in there if name not in known]
    return [*groups, *([(_("Further options"), further)] if further else [])]
