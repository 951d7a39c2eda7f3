"""The run log in its dialog, the zone switch, what a viewer sees, and life without JavaScript."""

import re

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select


def test_the_run_log_opens_in_a_dialog_and_escape_closes_it_and_gives_the_focus_back(boss):
    boss.wait(lambda: (boss.go("scheduler/job/?q=often"), "succeeded" in boss.text("#result_list"))[1], 30)
    boss.find("[data-sched-dialog]").send_keys(Keys.ENTER)
    boss.wait(lambda: boss.all("dialog[open] .sched-table tbody tr"))
    assert boss.text("dialog h2") == "often"
    header = boss.text("dialog thead").lower()
    for word in ("status", "slot", "duration", "totals", "trigger"):
        assert word in header
    slots = [slot.get_attribute("datetime") for slot in boss.all("dialog tbody time")]
    assert slots == sorted(slots, reverse=True)
    boss.find("dialog").send_keys(Keys.ESCAPE)
    boss.wait(lambda: not boss.all("dialog[open]"))
    assert boss.run("return document.activeElement.hasAttribute('data-sched-dialog')")


def test_times_are_said_in_the_zone_the_reader_chose_and_the_choice_is_kept(boss):
    boss.go("scheduler/job/?q=to_edit")
    time = ".field-next_start time"
    at = boss.find(time).get_attribute("datetime")
    assert boss.run("return Intl.DateTimeFormat().resolvedOptions().timeZone") == "Asia/Tokyo"
    said = {"utc": at[11:19], "browser": shifted(at, 9)}
    assert said["browser"] in boss.text(time)
    assert "GMT+9" in boss.text(time)
    assert boss.text("[data-sched-zone-name]") == "Asia/Tokyo"
    Select(boss.find("[data-sched-zone]")).select_by_value("utc")
    assert boss.text(time).replace("\n", " ").endswith(f"{said['utc']} UTC")
    Select(boss.find("[data-sched-zone]")).select_by_value("job")
    assert "09:00:00" in boss.text(time)
    assert boss.find(time).get_attribute("title") == "Europe/Berlin"
    boss.browser.refresh()
    assert "09:00:00" in boss.text(time)


def test_sentences_are_said_in_the_zone_of_the_job_where_the_reader_wants_that(boss):
    path = boss.open_job("to_edit")
    boss.go(path + "?why=2026-03-02 02:00")
    Select(boss.find("[data-sched-zone]")).select_by_value("job")
    assert "2026-03-02 02:00:00 GMT+1" in boss.text(".sched-answer")
    for time in boss.all("#content time.sched-time"):
        assert time.get_attribute("title") == "Europe/Berlin"
    boss.go("scheduler/job/overview/")
    assert {one.get_attribute("title") for one in boss.all("#content time.sched-time:not([data-zone])")} <= {"UTC"}


def test_the_zone_reaches_pictures_and_answers(boss):
    path = boss.open_job("to_edit")
    boss.go(path + "?why=2026-03-02 02:00")
    assert "2026-03-02 10:00:00 GMT+9" in boss.text(".sched-answer")
    boss.go("scheduler/job/overview/")
    label = "[data-sched-live=pictures] svg text[data-sched-at]"
    at = boss.find(label).get_attribute("data-sched-at")
    assert boss.text(label) == shifted(at, 9)[11:16]
    assert boss.text("[data-sched-zone-said]") == "Asia/Tokyo"
    boss.wait(lambda: boss.all("[data-sched-drawn-in='Asia/Tokyo']"))
    drawn = "return document.querySelector('.sched-load rect title').textContent"
    assert " 00:00 JST: " in boss.run(drawn)
    Select(boss.find("[data-sched-zone]")).select_by_value("utc")
    assert boss.text(label) == at[11:16]
    assert boss.text("[data-sched-zone-said]") == "UTC"
    boss.wait(lambda: boss.all("[data-sched-drawn-in='UTC']"))
    assert " 00:00 UTC: " in boss.run(drawn)


def shifted(instant: str, hours: int) -> str:
    from datetime import datetime, timedelta

    return f"{datetime.fromisoformat(instant) + timedelta(hours=hours):%Y-%m-%d %H:%M:%S}"


def test_a_viewer_sees_no_buttons_and_gets_403_on_post(viewer):
    viewer.go("scheduler/job/?q=often")
    assert not viewer.all("#result_list button, #result_list a.sched-button, [name=action]")
    path = viewer.open_job("often")
    assert not viewer.all("#content form[method=post]")
    status = viewer.browser.execute_async_script(
        """const token = document.cookie.match(/csrftoken=(\\w+)/)?.[1] ?? "";
        fetch(arguments[0] + "run/", {method: "POST", headers: {"X-CSRFToken": token}})
          .then((response) => arguments[1](response.status));""",
        viewer.address + path,
    )
    assert status == 403


def test_everything_works_without_javascript(boss):
    boss.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        boss.go("scheduler/job/?q=quick")
        assert not boss.find("[data-sched-toolbar]").is_displayed()
        boss.find("[data-sched-dialog]").click()
        boss.wait(lambda: "/runs/" in boss.browser.current_url)
        boss.go("scheduler/job/?q=quick")
        boss.find("#result_list button[formaction$='/run/']").click()
        boss.wait(lambda: re.search("Asked to run now|is busy", boss.text(".messagelist")))
        boss.go("scheduler/job/add/")
        boss.find("[name=kind][value=cron]").click()
        boss.write("[name=expression]", "15 10 * * *")
        boss.find("[name=_preview]").click()
        boss.wait(lambda: "10:15" in boss.text(".sched-preview"))
        assert len(boss.all(".sched-preview time")) == 5
    finally:
        boss.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("seconds", ["0", "60"])
def test_the_pace_of_the_refresh_is_remembered(boss, seconds):
    boss.go("scheduler/job/")
    Select(boss.find("[data-sched-refresh]")).select_by_value(seconds)
    boss.browser.refresh()
    assert boss.find("[data-sched-refresh]").get_attribute("value") == seconds


def test_what_is_ticked_stays_ticked_while_the_list_refreshes(boss):
    boss.go("scheduler/job/?q=often")
    Select(boss.find("[data-sched-refresh]")).select_by_value("5")
    boss.click("#result_list .action-select")
    before = boss.find(".field-next_start time").get_attribute("datetime")
    boss.wait(lambda: boss.find(".field-next_start time").get_attribute("datetime") != before)
    assert boss.find("#result_list .action-select").is_selected()
