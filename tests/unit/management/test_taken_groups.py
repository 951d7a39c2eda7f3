"""Which groups `run_scheduler` takes, by its options; a name that nothing has is said with near ones."""

import pytest
from django.core.management import CommandError, call_command, load_command_class

from scheduler.management.commands import run_scheduler
from scheduler.management.taken_groups import taken_groups, warnings_of
from scheduler.models import ALL_GROUPS, Job, TakenGroups
from scheduler.registry import register, registry


def given(*words):
    parser = load_command_class("scheduler", "run_scheduler").create_parser("manage.py", "run_scheduler")
    return vars(parser.parse_args(words))


@pytest.mark.parametrize(
    ("words", "takes"),
    [
        ([], ALL_GROUPS),
        (["--only-group", "heavy", "mail"], TakenGroups(frozenset({"heavy", "mail"}))),
        (["--only-group", "heavy", "--only-group", "mail"], TakenGroups(frozenset({"heavy", "mail"}))),
        (["--queues", "mail", "--only-group", "heavy"], TakenGroups(frozenset({"heavy", "queue:mail"}))),
        (["--except-group", "heavy"], TakenGroups(but=frozenset({"heavy"}))),
    ],
    ids=str,
)
def test_the_options_choose_groups(words, takes):
    assert taken_groups(given(*words)) == takes


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--only-group", ""], "jobs without a group are taken by a process with --except-group"),
        (["--queues", " "], "--queues is ' '"),
        (["--only-group", "a "], "write it without blank ends"),
        (["--only-group", "a\nb"], "without unprintable characters"),
        (["--only-group", "x" * 101], "at most 100 characters"),
        (["--only-group", "a", "--except-group", "b"], "leave it out beside --only-group and --queues"),
    ],
    ids=lambda value: "",
)
def test_what_is_no_choice_is_one_line_and_nothing_starts(words, text, monkeypatch):
    monkeypatch.setattr(run_scheduler.current, "run", pytest.fail)
    with pytest.raises(CommandError, match=text):
        call_command("run_scheduler", *words, skip_checks=True)


@pytest.mark.django_db
class TestUnknown:
    @pytest.fixture(autouse=True)
    def known(self, settings):
        settings.SCHEDULER_GROUPS = {"serial": 1}
        settings.SCHEDULER_DEFAULT_GROUP = "usual"
        settings.TASKS = {"default": {"QUEUES": ["mail"]}, "other": {}, "odd": None}
        register("measured", group="reports")(lambda: None)
        Job.objects.create(name="added", task="measured", group="heavy")
        yield
        registry.remove("measured")

    def warnings(self, *words):
        return list(warnings_of(taken_groups(given(*words))))

    def test_what_a_job_a_task_or_a_setting_names_is_known(self):
        assert self.warnings("--only-group", "heavy", "reports", "serial", "usual", "--queues", "mail", "default") == []
        assert self.warnings() == []

    @pytest.mark.parametrize(
        ("words", "warning"),
        [
            (["--only-group", "haevy"], "No job and no setting names the group 'haevy'. Did you mean 'heavy'?"),
            (["--except-group", "zzz"], "No job and no setting names the group 'zzz'."),
            (
                ["--queues", "mial"],
                "No job and no setting names the group 'queue:mial'. Did you mean 'queue:mail' or 'queue:default'?",
            ),
        ],
        ids=lambda value: "",
    )
    def test_another_is_named_with_near_ones(self, words, warning):
        assert self.warnings(*words) == [warning]

    def test_it_is_said_at_the_start_which_goes_on(self, monkeypatch, capsys):
        taken = []
        monkeypatch.setattr(run_scheduler.arm, "claim", lambda *_: True)
        monkeypatch.setattr(run_scheduler.current, "run", lambda by, takes: taken.append(takes))
        monkeypatch.setattr(run_scheduler.current, "stop", lambda: None)
        monkeypatch.setattr(run_scheduler.StopRequest, "wait", lambda *_: None)
        call_command("run_scheduler", "--only-group", "haevy", skip_checks=True)
        said = capsys.readouterr()
        assert "Did you mean 'heavy'?" in said.err
        assert "The scheduler is running (groups: only haevy)." in said.out
        assert taken == [TakenGroups(frozenset({"haevy"}))]
