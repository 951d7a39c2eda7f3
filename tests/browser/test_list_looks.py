"""How the lists look: the first job is in sight, rows are low, a menu holds what is needed less, phones get cards."""

from itertools import pairwise

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

WIDE = {"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
MENU = "#result_list tbody tr:first-child .sched-menu"
LABELS = """
return [...document.querySelectorAll(arguments[0])].map((cell) =>
  cell.querySelector(".sched-said")?.innerText ?? getComputedStyle(cell, "::before").content).join(" ");
"""
ITEM = f"{MENU} a[href$='/pause/']"


@pytest.fixture
def screen(browser):
    """Set the size of the screen, and whether scripts run."""

    def have(width: int, height: int = 900, *, scripts: bool = True) -> None:
        size = WIDE | {"width": width, "height": height}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})

    yield have
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("sidebar", ["true", "false"])
def test_the_first_job_is_in_sight_below_banner_and_numbers_and_rows_are_low(boss, screen, sidebar):
    screen(1400)
    boss.run("localStorage.setItem('django.admin.navSidebarIsOpen', arguments[0])", sidebar)
    boss.go("scheduler/job/")
    assert boss.all(".sched-notice")
    assert len(boss.all(".sched-number")) == 5
    rows = boss.run("return [...document.querySelectorAll('#result_list tbody tr')].map((one) => one.offsetHeight)")
    assert len(rows) > 5
    assert max(rows) <= 44
    last = boss.run("return document.querySelector('#result_list tbody tr').getBoundingClientRect().bottom")
    assert last < 900
    assert boss.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_the_filters_are_folded_until_one_is_set_and_count_the_jobs_in_each_state(boss, screen):
    screen(1400)
    boss.go("scheduler/job/")
    state = ".sched-filters a[href*='state=running']"
    assert not boss.find(state).is_displayed()
    boss.click(".sched-filters > details > summary")
    assert boss.find(state).is_displayed()
    boss.go("scheduler/job/?state=attention")
    chosen = boss.text(".sched-filters li.selected")
    listed = len(boss.all("#result_list tbody tr"))
    assert chosen == (f"needs attention ({listed})" if listed else "needs attention")
    boss.click(".sched-filters p a")
    boss.wait(lambda: not boss.find(state).is_displayed())


def test_the_menu_of_a_row_opens_by_mouse_and_closes_by_a_click_elsewhere(boss, screen):
    screen(1400)
    boss.go("scheduler/job/?q=to_pause")
    assert boss.find("#result_list button[formaction$='/run/']").is_displayed()
    assert not boss.find(ITEM).is_displayed()
    boss.click(f"{MENU} summary")
    assert boss.find(ITEM).is_displayed()
    menu, items = boss.find(f"{MENU} .sched-menu-items").rect, boss.all(f"{MENU} .sched-menu-items .sched-button")
    assert all(menu["x"] <= one.rect["x"] and one.rect["width"] <= menu["width"] for one in items)
    assert len({one.rect["y"] for one in items}) == len(items), "one below the other"
    assert boss.run("return document.documentElement.scrollWidth <= innerWidth")
    assert boss.text(f"{MENU} summary .sched-sr") == "More actions for to_pause"
    boss.click("#content h1")
    boss.wait(lambda: not boss.find(ITEM).is_displayed())
    boss.click(f"{MENU} summary")
    boss.click(ITEM)
    boss.wait(lambda: "/pause/" in boss.browser.current_url)


def test_the_menu_of_a_row_is_used_by_keyboard_and_escape_gives_the_focus_back(boss, screen):
    screen(1400)
    boss.go("scheduler/job/?q=to_pause")
    boss.run("document.querySelector(arguments[0]).focus()", f"{MENU} summary")
    press(boss, Keys.ENTER)
    boss.wait(lambda: boss.find(ITEM).is_displayed())
    press(boss, Keys.TAB)
    assert boss.run("return document.activeElement.matches('.sched-menu-items *')")
    press(boss, Keys.ESCAPE)
    boss.wait(lambda: not boss.find(ITEM).is_displayed())
    assert boss.run("return document.activeElement.matches('.sched-menu > summary')")
    press(boss, Keys.SPACE, Keys.TAB, Keys.ENTER)
    boss.wait(lambda: "/pause/" in boss.browser.current_url)


def test_the_menu_of_a_row_works_without_javascript(boss, screen):
    screen(1400, scripts=False)
    boss.go("scheduler/job/?q=to_pause")
    boss.find(f"{MENU} summary").click()
    boss.find(ITEM).click()
    boss.wait(lambda: "/pause/" in boss.browser.current_url)


@pytest.mark.parametrize("width", [600, 1000, 1400])
@pytest.mark.parametrize("page", ["scheduler/job/?q=to", "scheduler/runlog/?q=o"])
def test_how_many_were_found_is_said_on_one_line(boss, screen, width, page):
    screen(width)
    boss.go(page)
    assert boss.find("#changelist-search .quiet").rect["height"] < 30


def test_times_are_short_and_whole_on_focus_and_on_hover(boss, screen):
    screen(1400)
    boss.go("scheduler/job/?q=to_pause")
    short, whole = ".field-next_start .sched-when", ".field-next_start time"
    assert boss.text(f"{short} .sched-relative").startswith("in ")
    assert width_of(boss, whole) <= 1
    boss.run("document.querySelector(arguments[0]).focus()", short)
    assert width_of(boss, whole) > 100
    boss.run("document.activeElement.blur()")
    assert width_of(boss, whole) <= 1
    ActionChains(boss.browser).move_to_element(boss.find(short)).perform()
    boss.wait(lambda: width_of(boss, whole) > 100)


def test_only_what_needs_somebody_has_a_colour(boss, screen):
    screen(1400)
    boss.wait(lambda: (boss.go("scheduler/job/?q=often"), "succeeded" in boss.text("#result_list"))[1], 30)
    calm = boss.find(".field-last_result .sched-badge").value_of_css_property("color")
    assert calm == boss.find("#content").value_of_css_property("color")
    boss.wait(lambda: (boss.go("scheduler/job/?q=failing"), "failed" in boss.text("#result_list"))[1], 30)
    assert boss.find(".field-last_result .sched-badge").value_of_css_property("color") != calm


@pytest.mark.parametrize("width", [390, 320])
@pytest.mark.parametrize("page", ["scheduler/job/", "scheduler/runlog/", "runs/"])
def test_a_phone_shows_cards_with_labels_and_nothing_scrolls_sideways(boss, screen, width, page):
    screen(width)
    boss.go(boss.open_job("img") + page if page == "runs/" else page)
    table = ".sched-cards" if page == "runs/" else "#result_list"
    assert boss.find(f"{table} tbody tr").value_of_css_property("display") == "grid"
    words = boss.run(LABELS, f"{table} tbody tr:first-child td").lower()
    assert "status" in words
    assert ("next run" if page == "scheduler/job/" else "slot") in words
    wide = "return [...document.querySelectorAll(arguments[0])].filter((one) => one.scrollWidth > one.clientWidth + 1)"
    assert not boss.run(
        f"{wide}.map((one) => [one.tagName, one.scrollWidth, one.clientWidth, one.innerText.slice(0, 150)])",
        f"html, {table}, {table} :is(tr, td)",
    )


TABLES = {
    "scheduler/job/groups/": (".sched-groups", ["State", "At once", "Holding a place", "Waiting"]),
    "scheduler/job/enqueued/": (".sched-cards table", ["Queue", "Waiting", "Succeeded"]),
    "scheduler/job/failures/": (".sched-cards table", ["Failures", "Job", "Last"]),
    "scheduler/instance/": ("#result_list", ["process", "state", "workers"]),
    "scheduler/notice/": (".sched-cards table", ["Leads to", "State"]),
}


@pytest.mark.parametrize("width", [390, 320])
@pytest.mark.parametrize("page", TABLES)
def test_each_table_is_cards_with_the_words_of_its_heads_on_a_phone(boss, screen, width, page):
    table, heads = TABLES[page]
    row = f"{table} tbody tr:first-child"
    screen(width)
    boss.wait(lambda: (boss.go(page), boss.all(row))[1], 30)
    assert boss.find(row).value_of_css_property("display") == "grid"
    assert not boss.find(f"{table} thead").is_displayed() or table == "#result_list"
    words = boss.run(LABELS, f"{row} > *").lower()
    assert [head for head in heads if head.lower() not in words] == []


def test_a_schedule_is_whole_beside_an_open_side_bar(boss, screen):
    screen(1400)
    boss.run("localStorage.setItem('django.admin.navSidebarIsOpen', 'true')")
    boss.go("scheduler/job/?q=to_")
    cut = """return [...document.querySelectorAll(".field-job_schedule .sched-line:first-of-type")]
        .filter((one) => one.scrollWidth > one.clientWidth).map((one) => [one.innerText, one.title])"""
    assert "Every day at 03:00" in boss.text("#result_list")
    for words, title in boss.run(cut):
        assert len(words) > len("At 09:00, Monday through Friday"), "only what is longer is cut, and whole in its title"
        assert title == words


CUT = """
return [...document.querySelectorAll(arguments[0])].filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => [one.innerText, one.scrollWidth, one.clientWidth]);
"""


@pytest.mark.parametrize("sidebar", ["true", "false"])
def test_german_words_are_whole_in_the_list(boss, screen, sidebar):
    screen(1400)
    boss.browser.add_cookie({"name": "django_language", "value": "de"})
    boss.run("localStorage.setItem('django.admin.navSidebarIsOpen', arguments[0])", sidebar)
    boss.go("scheduler/job/?q=careful")
    boss.run("document.querySelector('.field-next_start .sched-cell').innerHTML = arguments[0]",
             '<div class="sched-region"><div class="sched-line">nach diesem Lauf</div></div>')  # fmt: skip
    assert "Jetzt starten …" in boss.text(".field-buttons")
    assert boss.run(CUT, ".field-next_start .sched-line, .field-buttons, thead th") == []


@pytest.mark.parametrize("sidebar", ["true", "false"])
@pytest.mark.parametrize(("language", "words"), [("en", ["failing", "scheduled"]), ("de", ["schlägt fehl", "geplant"])])
def test_what_is_the_matter_and_the_state_are_whole_in_the_list(boss, screen, sidebar, language, words):
    screen(1400)
    boss.browser.add_cookie({"name": "django_language", "value": language})
    boss.run("localStorage.setItem('django.admin.navSidebarIsOpen', arguments[0])", sidebar)
    status = ".field-job_status .sched-cell"

    def is_told():
        boss.go("scheduler/job/?state=failing")
        return boss.all(status) and all(word in boss.text(status) for word in words)  # not while it runs

    boss.wait(is_told, 30)
    assert boss.run(CUT, ".field-job_status .sched-line") == []
    assert boss.run("return document.querySelector('#result_list tbody tr').offsetHeight") <= 44


@pytest.mark.parametrize("width", [390, 320])
def test_the_small_pictures_of_a_job_fit_a_phone(boss, screen, width):
    screen(width)
    path = boss.open_job("img")
    boss.wait(lambda: (boss.go(path), boss.all(".sched-wide"))[1], 30)
    assert boss.run(CUT, ".sched-scroll:has(.sched-wide, .sched-calendar)") == []


@pytest.mark.parametrize("width", [390, 320])
def test_names_stay_beside_their_lanes_on_a_phone(boss, screen, width):
    """The last day opens at its newest end, and both days may be scrolled to either."""
    screen(width)
    boss.go("scheduler/job/overview/")
    left = "return [...document.querySelectorAll('.sched-lane-names')].map((one) => one.getBoundingClientRect().left)"
    scroll = "document.querySelectorAll('.sched-scroll').forEach((one) => one.scrollBy(arguments[0], 0))"
    for way in (0, -600, 300, 600):
        boss.run(scroll, way)
        places = boss.run(left)
        assert len(places) == 2
        assert all(0 <= place < width / 4 for place in places), (way, places)


@pytest.mark.parametrize("width", [390, 320])
def test_pages_of_runs_are_numbers_and_not_letters_on_a_phone(boss, screen, width):
    screen(width)
    boss.go("scheduler/runlog/")
    high = boss.find("#changelist .paginator").size["height"]
    assert high < 120


@pytest.mark.parametrize("scripts", [True, False])
def test_nothing_lies_over_the_banner_or_the_numbers(boss, screen, scripts):
    for width in (1400, 700, 320):
        screen(width, scripts=scripts)
        boss.go("scheduler/job/")
        boxes = [
            (one.rect["y"], one.rect["y"] + one.rect["height"])
            for selector in (".sched-banner", ".sched-numbers", ".object-tools", ".sched-find", "#result_list")
            for one in boss.all(selector)
        ]
        assert len(boxes) == 5
        assert all(end <= start for (_, end), (start, _) in pairwise(boxes)), (width, boxes)


def press(person, *keys: str) -> None:
    ActionChains(person.browser).send_keys(*keys).perform()


def width_of(person, selector: str) -> float:
    return float(person.run("return document.querySelector(arguments[0]).parentElement.clientWidth", selector))
