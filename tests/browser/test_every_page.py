"""What holds on every page: the strict policy, no hostile text at work, nothing cut off at 320 px, accessible."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.browser.person import Person

pytestmark = pytest.mark.timeout(400)
"""Each test visits twenty pages, and a machine may be busy."""

NARROW = {"width": 320, "height": 900, "deviceScaleFactor": 1, "mobile": False}
LISTS = ["", "scheduler/", "scheduler/job/", "scheduler/job/overview/", "scheduler/job/failures/",
         "scheduler/job/enqueued/", "scheduler/job/groups/", "scheduler/job/add/", "scheduler/runlog/",
         "scheduler/instance/", "scheduler/notice/", "scheduler/job/?q=nothing-like-it"]  # fmt: skip
if find_spec("ninja"):
    LISTS += ["scheduler/apitoken/", "scheduler/apitoken/add/"]

SERIOUS = """
const ours = {include: [["#content"]], exclude: [["#changelist-search"]]}, done = arguments[0];
axe.run(ours, {resultTypes: ["violations"]}).then((result) => done(
  result.violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160))])));
"""
"""The faults axe finds in our part of the page, that matter; the search field is Django's own."""


def pages_of(person: Person) -> Iterator[str]:
    """Every page there is; those of a job for a hostile one and a busy one."""
    yield from LISTS
    for job in ("img", "often"):
        path = person.open_job(job)
        yield from (
            path,
            path + "runs/",
            path + "change/",
            path + "pause/",
            path + "run-with/",
            path + "clear/",
            path + "?why=02:00",
        )
        person.wait(lambda path=path: (person.go(path + "runs/"), person.all(".sched-table tbody a"))[1])
        yield person.all(".sched-table tbody a")[0].get_attribute("href")
    yield path + "history/"
    yield path + "runs/?status=failed"


@pytest.fixture
def narrow(browser):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", NARROW)
    yield
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_no_page_breaks_the_strict_policy_or_lets_a_hostile_text_act(boss):
    for page in list(pages_of(boss)):
        boss.console()
        boss.go(page)
        assert boss.console() == [], page
        assert not boss.run("return document.querySelector('img[src=x], #content b')"), page


def test_hostile_texts_are_read_as_text(boss):
    boss.open_job("img")
    assert "<img src=x onerror=alert(1)></script><b>" in boss.text("#content")


def test_no_page_is_wider_than_a_phone(boss, narrow):
    for page in list(pages_of(boss)):
        boss.go(page)
        wide = boss.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, page


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_fault_of_ours(boss, axe, theme):
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    boss.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    found = {}
    for page in list(pages_of(boss)):
        boss.go(page)
        boss.run(axe)
        faults = boss.browser.execute_async_script(SERIOUS)
        if faults:
            found[page] = faults
    assert found == {}


def test_in_a_right_to_left_language_the_pages_read_from_the_right(boss, narrow):
    boss.browser.add_cookie({"name": "django_language", "value": "ar"})
    for page in ("scheduler/job/", "scheduler/job/overview/"):
        boss.go(page)
        assert boss.run("return getComputedStyle(document.body).direction") == "rtl"
        assert boss.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth"), page


def test_the_list_is_used_by_keyboard_alone(boss):
    boss.go("scheduler/job/?q=often")
    reached = boss.run(
        """const all = [...document.querySelectorAll("#result_list a, #result_list button, #result_list input")];
        return all.every((one) => one.tabIndex >= 0) && all.length > 4"""
    )
    assert reached
