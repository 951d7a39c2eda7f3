"""@register: plain functions stay plain, and what is wrong fails at import with the place named."""

import os
import subprocess
import sys
from datetime import date, timedelta
from decimal import Decimal
from functools import partial, wraps

import pytest

from scheduler.arguments import NAME_LENGTH, did_you_mean
from scheduler.exceptions import ConfigurationError, DuplicateTask, InvalidOption, InvalidSchedule, UnknownTask
from scheduler.registry import Registry, Task, register
from scheduler.schedules import Cron, DailyAt, Every, Manual

HERE = __file__


def work(**kwargs):
    """Does the work.

    And more.
    """
    return 42


async def async_gate():
    return True


@pytest.fixture
def tasks():
    return Registry()


def test_a_task_stays_a_plain_callable(tasks):
    assert register("work", schedule=Every(60), into=tasks)(work) is work
    assert work() == 42


def test_a_task_knows_its_name_schedule_place_and_description(tasks):
    register("work", schedule="daily at 03:00", kwargs={"n": 1}, retries=2, into=tasks)(work)
    task = tasks.get("work")
    assert (task.name, task.function, task.schedule) == ("work", work, DailyAt(hour=3))
    assert (task.kwargs, task.policy.retries, task.description) == ({"n": 1}, 2, "Does the work.")
    assert task.place.startswith(f"{HERE}:")
    assert task.module == __name__


def test_without_a_name_the_dotted_path_is_the_name(tasks):
    register(into=tasks)(work)
    assert tasks.names() == [f"{__name__}.work"]


def test_without_a_schedule_a_task_runs_by_hand_only(tasks):
    register("work", into=tasks)(work)
    assert tasks.get("work").schedule == Manual()


def test_a_schedule_may_be_written_in_any_form(tasks):
    for number, schedule in enumerate(
        [Cron("0 9 * * 1-5"), "cron 0 9 * * 1-5", {"type": "cron", "expression": "0 9 * * 1-5"}]
    ):
        register(f"work{number}", schedule=schedule, into=tasks)(work)
    assert len({task.schedule for task in tasks}) == 1


def test_two_functions_under_one_name_fail_and_both_places_are_named_Q1(tasks):
    register("work", into=tasks)(work)
    first = tasks.get("work").place
    with pytest.raises(DuplicateTask) as caught:
        register("work", into=tasks)(lambda: None)
    assert first in str(caught.value)
    assert str(caught.value).count(HERE) == 2


def test_the_same_function_again_is_no_error(tasks):
    for _ in range(2):
        register("work", into=tasks)(work)
    assert len(tasks) == 1


def test_one_file_imported_under_two_module_names_is_one_task_Q1(tasks, tmp_path):
    path = tmp_path / "tasks.py"
    path.write_text("def job():\n    return 1\n")
    for module in ("app.tasks", "tasks"):
        namespace = {"__name__": module}
        exec(compile(path.read_text(), str(path), "exec"), namespace)
        register("job", into=tasks)(namespace["job"])
    assert len(tasks) == 1


def test_two_closures_of_one_factory_are_two_functions(tasks):
    def make(n):
        return lambda: n

    register("work", into=tasks)(make(1))
    with pytest.raises(DuplicateTask):
        register("work", into=tasks)(make(2))


def test_a_partial_of_the_same_function_is_the_same_task(tasks):
    register("work", into=tasks)(partial(work))
    register("work", into=tasks)(partial(work))
    assert len(tasks) == 1


def test_two_apps_may_each_have_a_function_of_one_name_Q1(tasks):
    for app in ("one", "two"):
        namespace = {"__name__": f"{app}.tasks"}
        exec(compile("def my_job(): pass", f"{app}/tasks.py", "exec"), namespace)
        register(into=tasks)(namespace["my_job"])
    assert tasks.names() == ["one.tasks.my_job", "two.tasks.my_job"]


@pytest.mark.parametrize("name", ["a" * NAME_LENGTH, "ü 任务", "a?b=%2F#c", "<img src=x onerror=alert(1)>"])
def test_long_and_odd_names_are_accepted_Q1(name, tasks):
    register(name, into=tasks)(work)
    assert tasks.names() == [name]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a" * 256, "256 characters; at most 255"),
        ("", "non-empty"),
        ("   ", "non-empty"),
        (" a", "blank ends"),
        ("a\n", "blank ends"),
        ("a\x00b", "unprintable"),
        ("a\nb", "unprintable"),
        ("a/b", "would break addresses"),
        ("..", "would break addresses"),
        (5, "non-empty string"),
    ],
)
def test_a_bad_name_is_refused_at_import_with_its_place_Q1(name, text, tasks):
    with pytest.raises(InvalidOption, match=text) as caught:
        register(name, into=tasks)(work)
    assert f"{HERE}:" in str(caught.value)
    assert len(tasks) == 0


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"schedule": "cron 61 * * * *"}, InvalidSchedule, "minute"),
        ({"schedule": "cron 0 0 31 2 *"}, InvalidSchedule, "never"),
        ({"schedule": 5}, ConfigurationError, "5"),
        ({"overlaps": "skip"}, InvalidOption, "Did you mean 'overlap'"),
        ({"retries": "many"}, InvalidOption, "retries is 'many'"),
        ({"confirm": 1}, InvalidOption, "confirm is 1; it must be True, False, or what to tell"),
        ({"schedule": Every(seconds=0.0001)}, InvalidSchedule, "SCHEDULER_MIN_INTERVAL"),
        ({"kwargs": [1, 2]}, InvalidOption, "kwargs is \\[1, 2\\]; it must be a mapping"),
        ({"kwargs": "text"}, InvalidOption, "kwargs is 'text'; it must be a mapping"),
        ({"kwargs": {1: 2}}, InvalidOption, "it must be a mapping of argument names"),
        ({"kwargs": {"since": date(2026, 1, 1)}}, InvalidOption, "date is not JSON serializable"),
        ({"kwargs": {"share": Decimal("1.5")}}, InvalidOption, "Decimal is not JSON serializable"),
        ({"kwargs": {"ids": {1}}}, InvalidOption, "set is not JSON serializable"),
        ({"kwargs": {"share": float("nan")}}, InvalidOption, "not JSON compliant"),
        ({"kwargs": {"text": "a\0b"}}, InvalidOption, "NUL or a lone surrogate"),
        ({"kwargs": {"text": "\udcff"}}, InvalidOption, "NUL or a lone surrogate"),
        ({"enabled": "no"}, InvalidOption, "enabled is 'no'; it must be True or False"),
        ({"enabled": None}, InvalidOption, "enabled is None; it must be True or False"),
        ({"takes_context": 1}, InvalidOption, "takes_context is 1; it must be True or False"),
        ({"description": 5}, InvalidOption, "description is 5; it must be a string"),
        ({"description": "\udcff"}, InvalidOption, "NUL or a lone surrogate"),
        ({"group": "a\0b"}, InvalidOption, "NUL or a lone surrogate"),
        ({"group": "g" * 101}, InvalidOption, "at most 100 characters"),
        ({"gate": "x"}, InvalidOption, "gate is 'x'; it must be a plain function"),
        ({"gate": async_gate}, InvalidOption, "it must be a plain function"),
        ({"gate": partial(async_gate)}, InvalidOption, "it must be a plain function"),
    ],
)
def test_a_wrong_schedule_or_option_fails_with_task_and_place(options, error, text, tasks):
    with pytest.raises(error, match=text) as caught:
        register("work", into=tasks, **options)(work)
    assert str(caught.value).startswith(f"Task 'work' at {HERE}:")
    assert len(tasks) == 0


def generator():
    yield


async def async_generator():
    yield


class Generates:
    def __call__(self):
        yield


@pytest.mark.parametrize("function", [generator, async_generator, Generates(), partial(generator)])
def test_a_function_of_which_a_call_runs_nothing_is_refused(function, tasks):
    with pytest.raises(InvalidOption, match=r"^Task 'work' at .* is a generator, of which a call runs nothing"):
        register("work", into=tasks)(function)


def test_a_wrapper_that_runs_a_generator_is_a_function_like_any_other(tasks):
    @wraps(generator)
    def exhausted():
        return list(generator())

    register("work", into=tasks)(exhausted)
    assert "work" in tasks


def test_a_gate_that_runs_async_code_is_a_plain_function(tasks):
    @wraps(async_gate)
    def gate():
        return True

    register("work", gate=gate, into=tasks)(work)
    assert "work" in tasks


def test_arguments_are_kept_as_a_database_gives_them_back(tasks):
    register("work", kwargs={"pair": (1, 2), "text": "a \\u0000 in words"}, into=tasks)(work)
    assert tasks.get("work").kwargs == {"pair": [1, 2], "text": "a \\u0000 in words"}


def test_a_function_without_a_name_of_its_own_needs_one(tasks):
    with pytest.raises(InvalidOption, match="has no name of its own"):
        register(into=tasks)(partial(work))


def test_an_interval_is_as_short_as_the_settings_allow(tasks, settings):
    settings.SCHEDULER_MIN_INTERVAL = 0.5
    register("work", schedule=Every(seconds=0.5), into=tasks)(work)
    assert "work" in tasks


def test_without_settings_a_task_can_be_registered_all_the_same():
    program = "from scheduler import Every, register; print(register('a', schedule=Every(seconds=0.1))(print))"
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.startswith("<built-in function print>"), done.stderr


def test_a_task_says_whether_and_why_a_run_by_hand_is_to_be_confirmed(tasks):
    register("plain", into=tasks)(work)
    register("mail", confirm="Sends a mail to everybody.", into=tasks)(work)
    assert (tasks.get("plain").confirm, tasks.get("mail").confirm) == (False, "Sends a mail to everybody.")


def test_a_field_of_a_wrong_schedule_is_still_known_after_the_place_was_added(tasks):
    with pytest.raises(InvalidSchedule) as caught:
        register("work", schedule="cron 61 * * * *", into=tasks)(work)
    assert caught.value.field == "minute"


@pytest.mark.parametrize("missing_brackets", [lambda: register(work), lambda: register("x")(5)])
def test_register_without_brackets_says_how_to_write_it(missing_brackets):
    with pytest.raises(InvalidOption, match=r'@register\("name"\)'):
        missing_brackets()


def test_a_bare_register_hears_that_brackets_are_missing_and_the_name_may_be_left_out():
    with pytest.raises(InvalidOption, match=r'has no brackets: write @register\(\) or @register\("name"\)'):
        register(work)


def test_an_unknown_task_gets_near_names(tasks):
    register("digest", into=tasks)(work)
    with pytest.raises(UnknownTask, match="Did you mean 'digest'"):
        tasks.get("digets")
    assert tasks.find("digets") is None


@pytest.mark.parametrize("name", [None, 5, [], work])
def test_what_is_no_name_names_no_task(name, tasks):
    with pytest.raises(UnknownTask):
        tasks.get(name)


def test_near_names_are_at_most_three_and_empty_when_nothing_is_near():
    assert did_you_mean("xyz", ["alpha"]) == ""
    assert did_you_mean("job0", [f"job{n}" for n in range(9)]).count("'") == 6


def test_tasks_are_listed_by_name_and_can_be_forgotten(tasks):
    for name in "ba":
        register(name, into=tasks)(work)
    assert [task.name for task in tasks] == tasks.names() == ["a", "b"]
    tasks.remove("a")
    assert "a" not in tasks


def test_why_a_task_is_missing(tasks):
    tasks.failures["app.tasks"] = "ImportError: x"
    assert tasks.why_missing("a", "app.tasks") == "app.tasks could not be imported: ImportError: x"
    assert "'b'" in tasks.why_missing("b", "other.tasks")


def test_tasks_are_frozen_values():
    task = Task(name="a", function=work)
    with pytest.raises(AttributeError):
        task.name = "b"


def test_a_schedule_may_follow_the_name(tasks):
    register("work", Every(60), into=tasks)(work)
    assert tasks.get("work").schedule == Every(60)


@pytest.mark.parametrize("first", [Every(60), timedelta(hours=1), {"type": "manual"}])
def test_a_schedule_in_the_place_of_the_name_is_told_what_to_write(first, tasks):
    with pytest.raises(InvalidOption, match=r'has its schedule first: write @register\("name", ') as caught:
        register(first, into=tasks)
    assert f"{HERE}:" in str(caught.value)


def test_a_gate_that_fails_with_an_error_that_cannot_be_shown_is_closed():
    class Unsayable(Exception):
        def __str__(self):
            raise ValueError("no")

    def gate():
        raise Unsayable

    assert Task(name="gated", function=print, gate=gate).closed_gate() == (
        "it failed with Unsayable: its text cannot be shown (ValueError)"
    )


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("schedul", "schedule"),
        ("kwarg", "kwargs"),
        ("takes_contxt", "takes_context"),
        ("gates", "gate"),
        ("retrys", "retries"),
    ],
)
def test_of_a_misspelt_option_every_parameter_may_have_been_meant(given, meant, tasks):
    with pytest.raises(InvalidOption, match=rf"Unknown option '{given}'. Did you mean .*'{meant}'"):
        register("work", into=tasks, **{given: 1})(work)


def test_of_an_option_that_is_near_to_none_all_are_listed(tasks):
    with pytest.raises(InvalidOption, match=r"Known options: .*backoff, .*schedule, .*timeout"):
        register("work", into=tasks, zzz=1)(work)
