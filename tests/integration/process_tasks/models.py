"""A table the test makes."""

from django.db import models


class Note(models.Model):
    """A line of text."""

    text = models.TextField()

    class Meta:
        app_label = "process_tasks"
        managed = False

    def __str__(self) -> str:
        return self.text
