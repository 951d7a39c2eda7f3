"""The Django admin of jobs and runs. Changes state through `engine/control.py` only; runs nothing inside a request."""

from scheduler.admin.job import JobAdmin
from scheduler.admin.run import RunLogAdmin

__all__ = ["JobAdmin", "RunLogAdmin"]
