"""The rig installs its failpoints, its clock and its mutants before anything runs."""

import os

from django.apps import AppConfig


class RigConfig(AppConfig):
    name = "rig"
    label = "rig"

    def ready(self) -> None:
        from scheduler.signals import job_broken

        from . import failpoints, faketime, journal, mutants

        job_broken.connect(journal.tell_when_broken)
        faketime.install()
        mutants.install(os.environ.get("FAULTS_MUTANT", ""))
        failpoints.install()  # last: what a mutant puts in has its points, too
