"""Problems: what is wrong with the scheduler, as health, the commands and the admin's banner tell it."""

from scheduler.problems.base import SEVERITIES, Problem, Severity
from scheduler.problems.survey import Survey, survey

__all__ = ["SEVERITIES", "Problem", "Severity", "Survey", "survey"]
