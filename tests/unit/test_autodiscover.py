"""Autodiscover: a module that cannot be imported takes nothing along, and leaves nothing half loaded behind."""

import sys
from types import SimpleNamespace

import pytest
from django.utils.autoreload import StatReloader, autoreload_started

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


def test_tasks_above_the_line_that_fails_are_taken_back_and_other_modules_keep_theirs_I17(tasks, write, tmp_path):
    write(shop_tasks=f"{task('half')}\nraise ImportError('no reports')\nLATER = 1", mail_tasks=task("whole"))
    for module in ("shop_tasks", "mail_tasks"):
        autodiscover._import(module)
    assert (tasks.names(), tasks.failures) == (
        ["whole"],
        {"shop_tasks": f"ImportError: no reports ({tmp_path / 'shop_tasks.py'}:7)"},
    )


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


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        ('Cron("61 * * * *")', "InvalidSchedule: minute"),
        ('Cron("0 9 * * *", timezone="Europe/Belrin")', "InvalidSchedule: "),
        ('"cron 61 * * * *"', "InvalidSchedule: "),
        ("Every(hour=1)", "TypeError: "),
    ],
)
def test_a_wrong_schedule_names_file_line_and_task(schedule, text, tasks, write, tmp_path):
    write(
        shop_tasks=f"""
from scheduler import Cron, Every

@register(
    "digest",
    schedule={schedule},
)
def send_digest():
    pass
"""
    )
    autodiscover._import("shop_tasks")
    failure, path = tasks.failures["shop_tasks"], tmp_path / "shop_tasks.py"
    assert failure.startswith(text)
    assert f"{path}:5" in failure or f"{path}:7" in failure
    assert "digest" in failure
    assert failure.count(str(path)) == 1


@pytest.mark.parametrize("line", ["import sys; sys.exit('not in this process')", "raise GeneratorExit", "1 / 0"])
def test_nothing_that_a_module_raises_at_import_ends_a_command_I17(line, tasks, write):
    write(shop_tasks=f"{task('half')}\n{line}")
    autodiscover._import("shop_tasks")
    assert tasks.names() == []
    assert "shop_tasks.py:7" in tasks.failures["shop_tasks"]


def test_but_ctrl_c_does(tasks, write):
    write(shop_tasks="raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        autodiscover._import("shop_tasks")


@pytest.mark.parametrize("left_out", ["django.contrib.auth", "django.contrib.auth.forms"])
def test_apps_and_modules_may_be_left_out(left_out, monkeypatch, settings):
    imported = []
    monkeypatch.setattr(autodiscover, "_import", imported.append)
    settings.SCHEDULER_AUTODISCOVER_MODULES = ["forms"]
    autodiscover.autodiscover()
    settings.SCHEDULER_AUTODISCOVER_EXCLUDE = [left_out]
    before, imported[:] = list(imported), []
    autodiscover.autodiscover()
    assert [module for module in before if module not in imported] == ["django.contrib.auth.forms"]


def test_of_an_app_that_is_installed_beside_the_project_a_failure_is_a_warning(tasks, write, monkeypatch, caplog):
    write(shop_tasks="import no_such_module")
    for is_own, level in ((True, "ERROR"), (False, "WARNING")):
        monkeypatch.setattr(autodiscover, "is_of_project", lambda module, is_own=is_own: is_own)
        caplog.clear()
        autodiscover._import("shop_tasks")
        assert [record.levelname for record in caplog.records] == [level]


@pytest.mark.parametrize("name", ["check", "list_tasks"])
def test_commands_that_list_the_failures_have_no_line_of_the_log_as_well(name, tasks, write, monkeypatch, caplog):
    write(shop_tasks="import no_such_module")
    monkeypatch.setattr(sys, "argv", ["manage.py", name])
    autodiscover._import("shop_tasks")
    assert caplog.records == []
    assert "shop_tasks" in tasks.failures


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A project that is deployed as a wheel, with two packages, beside an app of others."""
    folder = tmp_path / "site-packages"
    for name in ("site", "shop", "foreign"):
        (folder / f"wheel_{name}").mkdir(parents=True)
        (folder / f"wheel_{name}" / "__init__.py").touch()
    for wheel, packages in (("project", "wheel_site\nwheel_shop"), ("other", "wheel_foreign")):
        info = folder / f"{wheel}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {wheel}\nVersion: 1.0\n")
        (info / "top_level.txt").write_text(packages)
    monkeypatch.syspath_prepend(str(folder))
    found = SimpleNamespace(path=str(folder / "app"))
    monkeypatch.setattr(autodiscover.apps, "get_containing_app_config", lambda module: found)
    return folder


def test_the_apps_of_a_project_that_is_deployed_as_a_wheel_are_its_own(wheel, settings):
    settings.ROOT_URLCONF = "wheel_site.urls"
    modules = ("wheel_site.tasks", "wheel_shop.tasks", "wheel_foreign.tasks")
    assert [autodiscover.is_of_project(module) for module in modules] == [True, True, False]


def test_a_wheel_with_a_package_of_the_name_of_the_project_does_not_make_its_others_own(wheel, settings):
    (wheel.parent / "mine" / "wheel_site").mkdir(parents=True)
    (wheel.parent / "mine" / "wheel_site" / "__init__.py").touch()
    sys.path.insert(0, str(wheel.parent / "mine"))
    try:
        settings.ROOT_URLCONF = "wheel_site.urls"
        assert not autodiscover.is_of_project("wheel_shop.tasks")
    finally:
        sys.path.remove(str(wheel.parent / "mine"))


def test_who_asks_for_a_task_that_is_not_here_hears_which_modules_failed(tasks, write):
    write(shop_tasks="raise ValueError('no licence')")
    autodiscover._import("shop_tasks")
    with pytest.raises(LookupError, match=r"shop_tasks could not be imported: ValueError: no licence"):
        tasks.get("half")


@pytest.mark.parametrize(
    ("files", "broken"),
    [
        ({"shop_tasks": "1 / 0"}, "shop_tasks"),
        ({"shop_tasks": "def half(:"}, "shop_tasks"),
        ({"shop_tasks": "import prices", "prices": "1 / 0"}, "prices"),
        ({"shop_tasks": "import prices", "prices": "def half(:"}, "prices"),
    ],
)
def test_runserver_watches_the_files_of_a_module_that_failed(files, broken, tasks, write, tmp_path):
    write(**files)
    autodiscover._import("shop_tasks")
    reloader = StatReloader()
    autoreload_started.send(sender=reloader)
    watched = set(reloader.watched_files())
    assert {(tmp_path / f"{name}.py").resolve() for name in ("shop_tasks", broken)} <= watched


UNSAYABLE = """
class Unsayable(Exception):
    def __str__(self):
        raise ValueError("no")


raise Unsayable
"""


def test_an_error_that_cannot_be_shown_is_kept_in_words(tasks, write):
    write(odd_tasks=UNSAYABLE)
    autodiscover._import("odd_tasks")
    assert tasks.failures["odd_tasks"].startswith("Unsayable: its text cannot be shown (ValueError) (/")


def test_an_error_without_end_is_cut(tasks, write):
    write(long_tasks="raise ValueError('x' * 5_000_000)")
    autodiscover._import("long_tasks")
    assert len(tasks.failures["long_tasks"]) < 2500
    assert "long_tasks.py:2" in tasks.failures["long_tasks"]
