"""Pure decisions: no Django, no I/O, no clock."""

from scheduler.policy.base import DEFAULT_POLICY, MAX_LOST_ATTEMPTS, OnLost, OnStuck, Policy
from scheduler.policy.misfire import Misfire
from scheduler.policy.overlap import Overlap

__all__ = ["DEFAULT_POLICY", "MAX_LOST_ATTEMPTS", "Misfire", "OnLost", "OnStuck", "Overlap", "Policy"]
