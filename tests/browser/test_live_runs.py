"""Run now, and see the run finish without a reload."""


def stay(person) -> None:
    """Mark the document: a reload would lose the mark."""
    person.run("window.stayed = true")


def test_run_now_returns_at_once_and_the_list_shows_the_end_by_itself(boss):
    boss.go("scheduler/job/?q=quick")
    row = "#result_list tbody tr:has(a[href$='/runs/'])"
    boss.click(f"{row} button[formaction$='/run/']")
    boss.wait(lambda: "Asked to run now." in boss.text(".messagelist"))
    stay(boss)
    boss.wait(lambda: "succeeded" in boss.text(".field-last_result"), 30)
    assert boss.run("return window.stayed")


def test_progress_and_log_of_a_run_grow_until_it_ends_and_focus_stays(boss):
    boss.open_job("slow")
    boss.click("button[formaction$='/run/']")
    boss.go(boss.wait(lambda: boss.find(".sched-table tbody a").get_attribute("href")))
    stay(boss)
    boss.wait(lambda: "/ 12" in boss.text(".sched-progress ~ *, [data-sched-live=run]"))
    boss.run("document.querySelector('form[action$=\"/cancel/\"] button').focus()")
    first = boss.find("progress").get_attribute("value")
    boss.wait(lambda: boss.find("progress").get_attribute("value") != first)
    assert boss.run("return document.activeElement.closest('form')?.action.endsWith('/cancel/')")
    boss.wait(lambda: "succeeded" in boss.text(".sched-head"), 40)
    assert "parts 12, errors 0" in boss.text(".sched-facts")
    boss.wait(lambda: "part 12 is done" in boss.text("#sched-log"))
    assert boss.run("return window.stayed")
    assert not boss.all("form[action$='/cancel/']")


def test_a_run_is_cancelled_from_its_page(boss):
    boss.open_job("endless")
    boss.click("button[formaction$='/run/']")
    boss.go(boss.wait(lambda: boss.find(".sched-table tbody a").get_attribute("href")))
    boss.wait(lambda: "running" in boss.text(".sched-head"))
    boss.click("form[action$='/cancel/'] button")
    boss.wait(lambda: "cancelled" in boss.text(".sched-head"), 30)


def test_nothing_new_is_answered_without_a_body(boss):
    boss.go("scheduler/job/?q=to_pause")
    status = boss.browser.execute_async_script(
        """const done = arguments[0], live = {"X-Scheduler-Live": "1"};
        fetch(location.href, {headers: live, cache: "no-store"}).then(async (first) => {
          let second;
          for (let n = 0; n < 5 && second?.status !== 304; n++) {
            const etag = (await fetch(location.href, {headers: live, cache: "no-store"})).headers.get("ETag");
            second = await fetch(location.href, {headers: {...live, "If-None-Match": etag}, cache: "no-store"});
          }
          done(second.status);
        });"""
    )
    assert status == 304
