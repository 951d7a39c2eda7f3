"""Autodiscover: a module that cannot be imported takes nothing along, and leaves nothing half loaded behind."""

import sys

import pytest

from scheduler import autodiscover
from scheduler.registry import Registry


@pytest.fixture
def tasks(monkeypatch):
    """An empty registry in the place of this process's."""
    empty = Registry()
    for module in (autodiscover, sys.modules["scheduler.registry"]):
        monkeypatch.setattr(module, "registry", empty)
    return empty


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write modules that can be imported in this test only."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def write(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(f"from scheduler import register\n{text}")

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def task(name):
    return f'\n@register("{name}")\ndef {name}():\n    return LATER\n'


def test_tasks_above_the_line_that_fails_are_taken_back_and_other_modules_keep_theirs_I17(tasks, write):
    write(shop_tasks=f"{task('half')}\nraise ImportError('no reports')\nLATER = 1", mail_tasks=task("whole"))
    for module in ("shop_tasks", "mail_tasks"):
        autodiscover._import(module)
    assert (tasks.names(), tasks.failures) == (["whole"], {"shop_tasks": "ImportError: no reports"})


def test_of_a_package_the_modules_that_loaded_as_a_whole_keep_theirs(tasks, write, tmp_path):
    (tmp_path / "jobs").mkdir()
    write(
        **{
            "jobs/__init__": "from jobs import good, bad",
            "jobs/good": task("good"),
            "jobs/bad": f"{task('bad')}\nimport no_such_module",
        }
    )
    autodiscover._import("jobs")
    assert tasks.names() == ["good"]
    assert tasks.why_missing("bad", "jobs.bad").startswith("jobs could not be imported: ModuleNotFoundError")


def test_a_task_registered_through_a_helper_of_another_module_is_taken_back_too(tasks, write):
    write(
        helper="def nightly(function):\n    return register(function.__name__)(function)",
        shop_tasks="from helper import nightly\n\n@nightly\ndef half():\n    return LATER\n\nraise ValueError",
    )
    autodiscover._import("shop_tasks")
    assert tasks.names() == []


def test_a_second_import_that_fails_keeps_what_the_first_one_registered(tasks, write, tmp_path):
    """As when one file is imported under two names."""
    write(once=f"{task('job')}\nif __name__ == 'again':\n    raise ValueError('not twice')")
    autodiscover._import("once")
    first, path = tasks.get("job"), tmp_path / "once.py"
    with pytest.raises(ValueError, match="not twice"), tasks.all_or_nothing():
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "again"})
    assert tasks.get("job") is first


def test_a_module_that_was_mended_is_no_failure_any_more(tasks, write):
    write(shop_tasks=task("job"))
    tasks.failures["shop_tasks"] = "ValueError"
    autodiscover._import("shop_tasks")
    assert (tasks.names(), tasks.failures) == (["job"], {})


def test_who_asks_for_a_task_that_is_not_here_hears_which_modules_failed(tasks, write):
    write(shop_tasks="raise ValueError('no licence')")
    autodiscover._import("shop_tasks")
    with pytest.raises(LookupError, match=r"shop_tasks could not be imported: ValueError: no licence"):
        tasks.get("half")
