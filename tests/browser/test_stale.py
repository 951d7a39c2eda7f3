"""A page that cannot refresh says so, instead of going on with what was true when the server last answered."""

from pathlib import Path

import pytest
from selenium.webdriver.support.ui import Select

import scheduler

NOTE = "[data-sched-stale]"
GREEN = "1 live instance runs the scheduler."


@pytest.fixture
def cut_off(browser):
    """Cut the browser off from the server, as when that has died; and connect it again."""

    def cut(offline: bool) -> None:
        conditions = {"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        browser.execute_cdp_cmd("Network.enable", {})
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)

    yield cut
    cut(False)


def watches(person):
    """Look at the list, which refreshes every five seconds."""
    person.go("scheduler/job/")
    Select(person.find("[data-sched-refresh]")).select_by_value("5")
    assert GREEN in person.text(".sched-banner")
    assert not person.find(NOTE).is_displayed()


def test_when_the_server_has_died_the_page_says_when_it_last_heard_from_it(boss, theme, cut_off, tmp_path):
    watches(boss)
    cut_off(True)
    boss.wait(lambda: boss.find(NOTE).is_displayed())
    assert "The server does not answer" in boss.text(NOTE)
    boss.wait(lambda: "Last heard from the server 8 sec. ago." in boss.text(NOTE), 15)
    assert boss.run("return getComputedStyle(document.querySelector('.sched-banner')).filter") == "grayscale(1)"
    assert boss.browser.save_screenshot(str(tmp_path / f"stale-{theme}.png"))
    cut_off(False)
    boss.wait(lambda: not boss.find(NOTE).is_displayed())
    assert boss.run("return getComputedStyle(document.querySelector('.sched-banner')).filter") == "none"


def test_when_the_session_has_ended_it_says_so_and_reload_leads_to_the_login(boss):
    watches(boss)
    boss.browser.delete_all_cookies()
    boss.wait(lambda: boss.find(NOTE).is_displayed())
    assert "You are signed out" in boss.text(NOTE)
    assert "Last heard from the server" in boss.text(NOTE)
    boss.click(f"{NOTE} a")
    boss.wait(lambda: "/login/" in boss.browser.current_url)


@pytest.mark.parametrize(("status", "says"), [(401, "signed out"), (403, "signed out"), (503, "does not answer")])
def test_any_answer_but_a_good_one_marks_it(boss, status, says):
    watches(boss)
    boss.run(
        "window.fetch = async () => new Response('', { status: arguments[0] })".replace("arguments[0]", str(status))
    )
    boss.wait(lambda: says in boss.text(NOTE))


def test_with_refresh_off_the_clock_marks_it_and_refresh_takes_the_mark_off(boss, theme):
    boss.go("scheduler/job/")
    Select(boss.find("[data-sched-refresh]")).select_by_value("0")
    boss.run("const now = Date.now; window.gone = 55000; Date.now = () => now() + window.gone")
    assert not boss.find(NOTE).is_displayed()
    boss.run("window.gone = 300000")
    boss.wait(lambda: boss.find(NOTE).is_displayed())
    assert "Refresh is off: what this page shows may not be true any more." in boss.text(NOTE)
    assert "It shows how things were 5 min. ago." in boss.text(NOTE)
    assert boss.run("return getComputedStyle(document.querySelector('.sched-banner')).filter") == "none"
    Select(boss.find("[data-sched-refresh]")).select_by_value("60")
    boss.wait(lambda: not boss.find(NOTE).is_displayed(), 5)


def test_a_page_that_has_nothing_to_refresh_grows_no_older(boss):
    boss.go("scheduler/job/add/")
    boss.run("localStorage.setItem('sched-refresh', '0'); const now = Date.now; Date.now = () => now() + 300000")
    boss.run("return new Promise((done) => setTimeout(done, 1500))")
    assert not [one for one in boss.all(NOTE) if one.is_displayed()]


def test_all_javascript_fits_in_two_hundred_lines():
    scripts = Path(scheduler.__file__).parent.rglob("*.js")
    assert sum(len(script.read_text().splitlines()) for script in scripts) < 200
