"""Pause, reset, edit: what people change, and what they are told."""

from selenium.webdriver.support.ui import Select


def test_a_job_is_paused_with_a_reason_until_tomorrow_and_resumed(boss):
    boss.open_job("to_pause")
    boss.click("a[href$='/pause/']")
    boss.write("[name=reason]", "the disk is full")
    Select(boss.find("[name=until]")).select_by_value("tomorrow")
    boss.click("form.sched-form button")
    boss.wait(lambda: "paused" in boss.text(".sched-head"))
    assert "by boss until" in boss.text(".sched-head")
    assert boss.text(".sched-head").endswith(": the disk is full")
    boss.click("button[formaction$='/resume/']")
    boss.wait(lambda: "scheduled" in boss.text(".sched-head"))


def test_a_broken_job_is_red_in_list_and_page_and_reset(boss):
    path = boss.open_job("failing")
    boss.go(path + "change/")
    boss.write("[name=policy_breaker_threshold]", "1")
    boss.click(".submit-row [name=_save]")
    boss.wait(lambda: (boss.browser.refresh(), "broken" in boss.text(".sched-head"))[1], 60)
    boss.go("scheduler/job/?q=failing")
    badge = boss.find(".field-job_status .sched-bad")
    assert badge.text.startswith("✖")
    assert "broken" in badge.text
    red, green, blue = map(int, badge.value_of_css_property("color").strip("rgba()").split(",")[:3])
    assert red > 150 > max(green, blue)
    boss.go(path + "change/")
    boss.write("[name=policy_breaker_threshold]", "never")
    boss.click(".submit-row [name=_save]")
    boss.go(path)
    for reset in boss.all("button[formaction$='/reset/']")[:1]:
        reset.click()
    boss.wait(lambda: "broken" not in boss.text(".sched-head"))


def test_a_wrong_cron_is_explained_while_typing_and_on_saving_and_a_right_one_is_kept(boss):
    path = boss.open_job("to_edit")
    boss.go(path + "change/")
    assert boss.find("[name=expression]").is_displayed()
    assert not boss.find("[name=interval]").is_displayed()
    boss.write("[name=expression]", "0 0 31 2 *")
    boss.wait(lambda: "never" in boss.text(".sched-preview"))
    boss.click(".submit-row [name=_save]")
    boss.wait(lambda: "never" in boss.text(".field-expression .errorlist"))
    boss.write("[name=expression]", "30 2 * * *")
    boss.wait(lambda: len(boss.all(".sched-preview li")) == 5)
    boss.wait(lambda: "02:30" in boss.text(".sched-preview"))
    boss.click(".submit-row [name=_save]")
    boss.wait(lambda: "cron 30 2 * * * @ Europe/Berlin" in boss.text("[data-sched-live=head]"))
    boss.wait(lambda: "Changed by people" in boss.text("#content"))
    boss.click("form[action$='/follow-code/'] button")
    boss.wait(lambda: "cron 0 9 * * 1-5" in boss.text("[data-sched-live=head]"))
    boss.wait(lambda: "Changed by people" not in boss.text("#content"))


def test_the_editor_shows_the_fields_of_the_chosen_kind(boss):
    boss.go("scheduler/job/add/")
    for kind, shown in {"daily": "time", "weekly": "days", "monthly": "month_day", "once": "once_at", "text": "text",
                        "after_jobs": "jobs", "every": "interval_preset"}.items():  # fmt: skip
        boss.click(f"[name=kind][value={kind}]")
        assert boss.find(f".field-{shown}").is_displayed(), kind
        assert not boss.find(".field-expression").is_displayed()


def test_a_bulk_pause_needs_a_second_yes(boss):
    boss.go("scheduler/job/?q=quick")
    boss.click("#action-toggle")
    Select(boss.find("[name=action]")).select_by_value("pause")
    boss.click("[name=index]")
    boss.wait(lambda: "stop starting at once" in boss.text("#content"))
    boss.click("form.sched-form a")
    boss.wait(lambda: boss.all("#result_list"))
    assert "paused" not in boss.text("#result_list")


def test_a_marked_task_is_run_after_a_second_yes_also_without_javascript(boss):
    boss.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        boss.go("scheduler/job/?q=careful")
        boss.click("button[formaction$='/run/']")
        boss.wait(lambda: "Sends a mail to everybody." in boss.text("#content"))
        boss.click("form.sched-form a")
        boss.wait(lambda: boss.all("#result_list"))
        assert "never ran" in boss.text(".field-last_result")
        boss.click("button[formaction$='/run/']")
        boss.wait(lambda: boss.all("form.sched-form button"))
        boss.click("form.sched-form button")
        boss.wait(lambda: "Asked to run now." in boss.text(".messagelist"))
    finally:
        boss.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_an_option_is_written_in_its_folded_group_and_a_wrong_one_is_told_there(boss):
    path = boss.open_job("to_edit")
    boss.go(path + "change/")
    field = "[name=policy_timeout]"
    assert not boss.find(field).is_displayed()
    boss.click("fieldset:has([name=policy_timeout]) summary")
    boss.write(field, "soon")
    boss.click(".submit-row [name=_save]")
    boss.wait(lambda: "such as 30s, 5m or 1h30m" in boss.text(".field-policy_timeout .errorlist"))
    boss.write(field, "1h30m")
    boss.click(".submit-row [name=_save]")
    boss.wait(lambda: "Timeout" in boss.text("#content") and "1h30m" in boss.text("#content"))
    boss.click("form[action$='/follow-code/'] button")
    boss.wait(lambda: "Changed by people" not in boss.text("#content"))
