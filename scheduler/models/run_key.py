"""RunKey: a key, and the task that was put under it last. While that waits, no other one waits under the key."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.arguments import KEY_LENGTH
from scheduler.models.fields import BigField, InstantField
from scheduler.models.names import NameField
from scheduler.models.primary import PrimaryQuerySet


class RunKey(models.Model):
    """Unique for job and key, and changed only from the slot that was read: of two that would put a task there, one
    does. No constraint binds it to its job, which may be gone.
    """

    job_id = BigField(_("key of the job"))
    key = NameField(_("key"), max_length=KEY_LENGTH)
    scheduled_for = InstantField(_("slot"))
    """Of the task that was put under it last, whatever attempt that has come to."""

    objects = models.Manager.from_queryset(PrimaryQuerySet["RunKey"])()

    class Meta:
        verbose_name = _("key of a task")
        verbose_name_plural = _("keys of tasks")
        base_manager_name = "objects"
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["job_id", "key"], name="scheduler_run_key_once")]
        indexes = [models.Index(fields=["scheduled_for"], name="scheduler_run_key_at")]

    def __str__(self) -> str:
        return f"{self.job_id} {self.key}"
