"""Overrides: what people changed of jobs that code defines, column by column, and of a policy option by option."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from scheduler.exceptions import InvalidOption
from scheduler.models import Job
from scheduler.models.stored import Unreadable
from scheduler.policy import Policy

logger = logging.getLogger("scheduler")

OPTION = "policy."
"""Before the name of an option that a person changed; `policy` alone is the policy as a whole."""

OPTIONS = tuple(field.name for field in fields(Policy))


def overridden_by(job: Job, columns: Mapping[str, Any], given: Collection[str]) -> set[str]:
    """Return what a person overrides who changes these columns, and `given` are the policy options that were named."""
    names = columns.keys() - {"policy"}
    if "policy" not in columns or "policy" in job.overridden_fields:
        return names
    if isinstance(job.policy, Unreadable):
        return {*names, "policy"}
    changed = [one for one in OPTIONS if getattr(job.policy, one) != getattr(columns["policy"], one)]
    return {*names, *(f"{OPTION}{one}" for one in {*changed, *given})}


def merged(job: Job, policy: Policy, keep: Collection[str]) -> Policy | Unreadable:
    """Return the policy of the code with the options that a person changed; theirs where the two make no policy."""
    mine = _options_of(keep)
    if not mine or isinstance(job.policy, Unreadable):
        return policy
    found: Policy = _merge(policy, job.policy, mine) or job.policy
    return found


def hidden(job: Job, wanted: Mapping[str, Any]) -> list[str]:
    """Return what the code says otherwise than the person whose change holds; `wanted` is what the code defines."""
    found = [one for one in job.overridden_fields if one in wanted and wanted[one] != getattr(job, one)]
    mine, code = _options_of(job.overridden_fields), wanted["policy"]
    if not mine or "policy" in found or isinstance(job.policy, Unreadable):
        return found
    kept = mine if _merge(code, job.policy, mine) else OPTIONS
    return [*found, *(f"{OPTION}{one}" for one in kept if getattr(code, one) != getattr(job.policy, one))]


def value_of(columns: Mapping[str, Any], name: str) -> Any:
    """Return the value of what `overridden_fields` names: of a column, or of an option of the policy."""
    if name.startswith(OPTION):
        return getattr(columns.get("policy"), name.removeprefix(OPTION), None)
    return columns.get(name)


def tell_of_hidden(job: Job, wanted: Mapping[str, Any]) -> None:
    """Log what the code says and a person's change hides: a deploy that has no effect must not be silent."""
    if names := hidden(job, wanted):
        logger.warning(
            "Job %r keeps what people changed; the code says otherwise of %s. follow_code(%r) takes the code's.",
            job.name,
            ", ".join(names),
            job.name,
            extra={"action": "code_hidden", "job": job.name, "fields": names},
        )


def _merge(code: Policy, kept: Policy, options: Collection[str]) -> Policy | None:
    """Return the code's policy with some options of another; None when they make no policy together."""
    try:
        return replace(code, **{one: getattr(kept, one) for one in options})
    except InvalidOption:
        return None


def _options_of(names: Collection[str]) -> list[str]:
    return [one for one in OPTIONS if f"{OPTION}{one}" in names]
