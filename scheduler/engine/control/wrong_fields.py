"""Wrong fields: what is wrong with each field of a definition, so that a form or a program hears of all of them."""

from collections.abc import Mapping
from typing import Any

from scheduler.arguments import checked_name
from scheduler.definition import CHECKS
from scheduler.engine.control.definition import checked_schedule
from scheduler.exceptions import InvalidOption, InvalidSchedule, UnknownTask
from scheduler.policy.codec import from_options
from scheduler.policy.overlap import Overlap
from scheduler.registry import registry


def wrong_fields(name: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the error of each of the given fields of a job that is wrong by itself, by name.

    A wrong part of the schedule has the name of the part too, such as `schedule.seconds`. What is wrong only with
    other fields, `update_job` and `set_job` say.
    """
    found: dict[str, str] = {}
    for field, value in [("name", name), *given.items()]:
        try:
            _check(field, value, of=name)
        except InvalidSchedule as error:
            found["schedule" if error.field == "schedule" else f"schedule.{error.field}"] = str(error)
        except (InvalidOption, UnknownTask) as error:
            found[field] = str(error)
    return found


def _check(field: str, value: Any, *, of: str) -> None:
    if field == "name":
        checked_name(value)
    elif field == "task":
        registry.get(value)
    elif field == "schedule":
        checked_schedule(value, of=of)
    elif field in CHECKS:
        CHECKS[field](value)
    else:
        from_options({"overlap": Overlap.ALLOW, field: value})  # beside which every option may stand
