"""A change of the job as it was read: when another one came first, it is refused and leaves nothing behind."""

import threading

import pytest
from django.db import connection, connections

from scheduler.engine.control import (
    add_job,
    follow_code,
    get_job,
    pause_job,
    remove_job,
    reset_job,
    resume_job,
    set_job,
    update_job,
)
from scheduler.exceptions import InvalidOption, Refused, UnknownJob
from scheduler.models import Job, JobEvent
from scheduler.registry import register
from tests.factories import T0, make_job

PATIENCE = 30
WRITERS, ROUNDS = 8, 3
on_sqlite = connection.vendor == "sqlite"
shared = pytest.mark.usefixtures("file_database") if on_sqlite else pytest.mark.django_db(transaction=True)
"""A database that threads share."""

CHANGES = {
    update_job: {"description": "mine"},
    set_job: {"task": "task", "schedule": "every 5m", "description": "mine"},
    follow_code: {},
    pause_job: {"reason": "mine"},
    resume_job: {},
    reset_job: {},
    remove_job: {},
}


def stopped(change):
    """A job to which the change means something."""
    columns = {"broken_at": T0, "paused_at": T0, "overridden_fields": ["group"], "group": "a"}
    return make_job("task", columns=columns | ({} if change is remove_job else {"source": "app.tasks"}))


def names(changes):
    return [change.__name__ for change in changes]


@pytest.mark.django_db
@pytest.mark.usefixtures("known", "clock")
@pytest.mark.parametrize("change", CHANGES, ids=names(CHANGES))
class TestEachChange:
    def test_is_made_to_the_job_as_it_was_read(self, change):
        job = stopped(change)
        change("task", **CHANGES[change], actor="ann", if_version=job.version_tag)
        assert JobEvent.objects.filter(actor="ann").exists()
        assert not Job.objects.filter(pk=job.pk, version=job.version).exists()

    def test_is_made_when_one_of_several_versions_fits(self, change):
        job = stopped(change)
        change("task", **CHANGES[change], if_version=["1-1", job.version_tag])
        assert not Job.objects.filter(pk=job.pk, version=job.version).exists()

    def test_is_refused_when_another_one_came_first(self, change):
        job = stopped(change)
        Job.objects.update(description="theirs")
        before = Job.objects.values().get()
        with pytest.raises(Refused, match="read it again") as refusal:
            change("task", **CHANGES[change], if_version=job.version_tag)
        assert refusal.value.code == "changed"
        assert Job.objects.values().get() == before
        assert not JobEvent.objects.exists()

    def test_is_refused_for_a_new_job_of_the_same_name(self, change):
        """Counted from the start, it would soon have the number of the old one."""
        old = stopped(change)
        old.delete()
        new = stopped(change)
        assert new.version == old.version
        with pytest.raises(Refused) as refusal:
            change("task", **CHANGES[change], if_version=old.version_tag)
        assert refusal.value.code == "changed"

    def test_of_a_job_that_is_not_there_creates_none(self, change):
        with pytest.raises((UnknownJob, Refused)):
            change("nobody", **CHANGES[change], if_version="1-1")
        assert not Job.objects.exists()


@pytest.mark.django_db
@pytest.mark.usefixtures("clock")
class TestGates:
    @pytest.mark.parametrize("change", CHANGES, ids=names(CHANGES))
    def test_none_is_asked_for_a_change_that_is_refused(self, change):
        asked = []
        register("task", gate=lambda: asked.append("") or True)(lambda **kwargs: None)
        stopped(change)
        with pytest.raises(Refused) as refusal:
            change("task", **CHANGES[change], if_version="0-0")
        assert (refusal.value.code, asked) == ("changed", [])

    @pytest.mark.parametrize("change", [update_job, resume_job, reset_job])
    def test_who_changes_the_job_while_one_is_asked_comes_first(self, change):
        def gate():
            Job.objects.update(description="theirs")
            return True

        register("task", gate=gate)(lambda **kwargs: None)
        job = stopped(change)
        changes = {"schedule": "every 7m", "enabled": True} if change is update_job else {}
        if change is update_job:
            Job.objects.update(enabled=False, version=job.version)
        with pytest.raises(Refused) as refusal:
            change("task", **changes, if_version=job.version_tag)
        assert refusal.value.code == "changed"
        assert not JobEvent.objects.exists()


@pytest.mark.django_db
@pytest.mark.usefixtures("known", "clock")
class TestAnyway:
    @pytest.mark.parametrize("wrong", [7, 1.5, [7], b"1-1"])
    def test_no_other_mark_is_taken(self, wrong):
        make_job()
        with pytest.raises(InvalidOption, match="version_tag"):
            update_job("job", if_version=wrong)

    @pytest.mark.parametrize("source", ["", "app.tasks"])
    def test_nothing_to_change_is_no_new_version(self, source):
        job = make_job("task", columns={"source": source})
        assert update_job("task").version_tag == job.version_tag
        assert not JobEvent.objects.exists()


def in_threads(work):
    """Carry out `work` by several writers who begin together; returns what each has returned."""
    together, found = threading.Barrier(WRITERS), []

    def write(number):
        try:
            together.wait(PATIENCE)
            found.append(work(number))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return found


@shared
@pytest.mark.usefixtures("known")
def test_of_writers_who_read_the_same_job_one_wins():
    add_job("job", "task", "every 5m")
    for turn in range(ROUNDS):
        tag = get_job("job").version_tag

        def write(number, tag=tag, turn=turn):  # what no other turn writes: nothing to change is no new version
            try:
                return update_job("job", description=f"{turn} by {number}", if_version=tag).description
            except Refused as refusal:
                return refusal.code

        found = in_threads(write)
        (winner,) = set(found) - {"changed"}
        assert (len(found), found.count("changed")) == (WRITERS, WRITERS - 1)
        assert get_job("job").description == winner
