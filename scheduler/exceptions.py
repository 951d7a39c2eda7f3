"""Every error of this package: one base class, named by what went wrong, the docstring as the default message."""

import inspect
from typing import ClassVar


class SchedulerError(Exception):
    """Something went wrong in the scheduler."""

    says_all: ClassVar[bool] = False
    """Whether its message says all: a run that ends with it shows that in one line, and no traceback."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.getdoc(type(self)))


class ConfigurationError(SchedulerError):
    """A setting or an option of the scheduler is wrong."""


class InvalidSchedule(ConfigurationError, ValueError):
    """The schedule can never be right as written.

    `field` names the argument or cron field that is wrong, so that a form can show the message beside it.
    """

    def __init__(self, message: str | None = None, *, field: str = "schedule") -> None:
        super().__init__(message)
        self.field = field


class InvalidOption(ConfigurationError, ValueError):
    """An option of a task or job is unknown or has a wrong value.

    `field` names the argument that is wrong where the message does not begin with it.
    """

    def __init__(self, message: str | None = None, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class DuplicateTask(ConfigurationError):
    """Two different functions are registered under one task name."""


class UnknownTask(SchedulerError, LookupError):
    """No task of this name is registered in this process."""


class UnknownJob(SchedulerError, LookupError):
    """No job of this name exists."""


class UnknownGroup(SchedulerError, LookupError):
    """No job and no setting names this group."""


class UnknownRun(SchedulerError, LookupError):
    """No run of this number exists."""


class TaskFailed(SchedulerError):
    """A task said that it failed: one that runs for a user returned False."""

    says_all: ClassVar[bool] = True


class ActivityStoreUnavailable(SchedulerError):
    """The store of activities does not answer. What was to be noted may not be noted."""


class Refused(SchedulerError):
    """The scheduler will not do this now.

    `code` is one of busy, gate_closed, not_registered, orphaned, code_owned, not_from_code, invalid, exists, changed,
    ended.
    """

    def __init__(self, message: str | None = None, *, code: str = "refused") -> None:
        super().__init__(message)
        self.code = code
