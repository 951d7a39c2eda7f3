"""What holds on every page: the strict policy, no hostile text at work, nothing cut off at 320 px, accessible."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from selenium.webdriver.support.ui import Select

from tests.browser.person import Person

pytestmark = pytest.mark.timeout(400)
"""Each test visits twenty pages, and a machine may be busy."""

NARROW = {"width": 320, "height": 900, "deviceScaleFactor": 1, "mobile": False}
LISTS = ["", "scheduler/", "scheduler/job/", "scheduler/job/overview/", "scheduler/job/failures/",
         "scheduler/job/enqueued/", "scheduler/job/groups/", "scheduler/job/add/", "scheduler/runlog/",
         "scheduler/instance/", "scheduler/notice/", "scheduler/job/?q=nothing-like-it",
         "scheduler/job/?state=attention", "scheduler/job/pause-all/", "scheduler/job/pause-all/?group=night",
         "scheduler/job/failures/?period=month", "scheduler/runlog/?outcome=failed"]  # fmt: skip
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
            path + "backfill/",
            path + "clear/",
            path + "?why=02:00",
            path + "?days=180",
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


WIDE = """
return [...document.querySelectorAll("html, #content table, #content .sched-scroll:has(table), #content .results")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1)
  .filter((one) => one.matches("html") || getComputedStyle(one).overflowX !== "visible")
  .map((one) => one.outerHTML.slice(0, 120));
"""
"""The page, or a table in it, where one has to scroll sideways; pictures may."""


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_page_and_no_table_is_wider_than_a_phone(boss, narrow, language):
    boss.browser.add_cookie({"name": "django_language", "value": language})
    for page in list(pages_of(boss)):
        boss.go(page)
        assert boss.run(WIDE) == [], page


def backfill_listed(person: Person) -> None:
    """What would run, and what is decided."""
    person.go(person.open_job("often") + "backfill/")
    person.click("form.sched-form [type=submit]")
    person.wait(lambda: person.all(".sched-card h2"))


def refused(person: Person, job: str, page: str, field: str, value: str) -> None:
    """A form with what is wrong at its fields, which a browser would not let through."""
    person.go(person.open_job(job) + page)
    person.run(f"document.querySelector('{field}').type = 'text'")
    person.write(field, value)
    person.click("form.sched-form [type=submit]")
    person.wait(lambda: person.all(".errorlist"))


def backfill_refused(person: Person) -> None:
    refused(person, "often", "backfill/", "[name=start]", "some day")


def run_with_refused(person: Person) -> None:
    refused(person, "to_run_with", "run-with/", "[name$=days]", "many")


def all_of_a_filter_again(person: Person) -> None:
    """The question before the failed runs of a filter run again."""
    address = "scheduler/runlog/?outcome=failed"
    person.wait(lambda: (person.go(address), person.all("#result_list .action-select"))[1])
    Select(person.find("[name=action]")).select_by_value("run_failed_again")
    person.click("#action-toggle")
    person.click("#changelist .actions [type=submit], #changelist .actions button")
    person.wait(lambda: "Run again?" in person.text("#content"))


def confirmed_run(person: Person) -> None:
    """The question before a job runs that its code asks to confirm."""
    person.open_job("careful")
    person.click("[formaction$='/run/'], a[href$='/run/']")
    person.wait(lambda: "Sends a mail" in person.text("#content"))


def groups_at_work(person: Person) -> None:
    """A group that is full, with a run that waits, and one that is paused."""
    for name in ("hold_place", "wait_place"):
        person.open_job(name)
        person.click("button[formaction$='/run/']")  # where it runs already that is refused
        person.wait(lambda: person.all(".messagelist"))  # or the answer would replace the next page
    person.go("scheduler/job/pause-all/?group=night")
    person.click("form.sched-form [type=submit]")
    person.wait(lambda: person.all(".messagelist"))
    person.wait(
        lambda: (
            person.go("scheduler/job/groups/"),
            all(word in person.text("#content") for word in ("full", "paused", "hold_place", "wait_place")),
        )[1]
    )


STATES = [backfill_listed, backfill_refused, run_with_refused, all_of_a_filter_again, confirmed_run, groups_at_work]
"""Pages that a click or two lead to, and states of pages."""


def faults_of(person: Person, axe: str) -> list[Any]:
    person.browser.set_script_timeout(120)
    person.run(axe)
    faults: list[Any] = person.browser.execute_async_script(SERIOUS)
    return faults


@pytest.mark.usefixtures("theme")
def test_axe_finds_no_serious_fault_of_ours(boss, axe):
    found = {}
    for page in list(pages_of(boss)):
        boss.go(page)
        if faults := faults_of(boss, axe):
            found[page] = faults
    assert found == {}


@pytest.mark.usefixtures("theme")
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_no_serious_fault_in_what_a_click_leads_to(boss, axe, state):
    state(boss)
    assert faults_of(boss, axe) == []


@pytest.mark.parametrize("state", STATES)
def test_what_a_click_leads_to_is_no_wider_than_a_phone_and_keeps_the_policy(boss, narrow, state):
    state(boss)
    assert boss.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert not [line for line in boss.console() if "Content Security Policy" in line]


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
