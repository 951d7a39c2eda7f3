"""JobState: how a job stands, in one word."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class JobState(models.TextChoices):
    """The state of a job in one word, derived from its columns."""

    SCHEDULED = "scheduled", _("scheduled")
    RUNNING = "running", _("running")
    PAUSED = "paused", _("paused")
    BROKEN = "broken", _("broken")
    DISABLED = "disabled", _("disabled")
    FINISHED = "finished", _("finished")
    ORPHANED = "orphaned", _("orphaned")
    INVALID = "invalid", _("invalid")
