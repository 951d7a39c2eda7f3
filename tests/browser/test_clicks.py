"""What operators ask, each answered from the overview with two clicks at most."""

import pytest

MOST = 2
OVERVIEW = "scheduler/job/overview/"
NEXT_HOUR = "[data-sched-live=next-hour]"
BANDS = "[data-sched-live=pictures] figure:first-of-type svg a"
BAND_OF_RUN = f"{BANDS}[href*='/runlog/']"
FREE = """
for (const one of document.querySelectorAll(arguments[0])) {
  one.scrollIntoView({block: "center", inline: "center"});
  const box = one.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
  if (one.contains(document.elementFromPoint(x, y))) return one;
}"""
"""Find a link that nothing lies on: bands are drawn over each other."""


class Operator:
    """A person on the overview, whose clicks are counted."""

    def __init__(self, person):
        self.person, self.clicks = person, 0
        person.go(OVERVIEW)

    def click(self, selector):
        """Click as a person does, on what stands still; the page that comes is another one."""
        self.person.wait(lambda: self.person.find(selector).is_displayed())
        self.person.run("window.before = true")
        self.person.click(selector)
        self.clicks += 1
        self.person.wait(lambda: not self.person.run("return window.before"))

    def click_band(self, selector):
        """Click on one of some bands of a picture, or on the name beside them."""

        def is_clicked():
            band = self.person.run(FREE, selector)
            if band is not None:
                band.find_element("css selector", "rect, text").click()
            return band is not None

        self.person.run("window.before = true")
        self.person.wait(is_clicked)
        self.clicks += 1
        self.person.wait(lambda: not self.person.run("return window.before"))

    def reads(self, selector, *words):
        self.person.wait(lambda: all(word in self.person.text(selector) for word in words))

    def lane_of(self, name):
        """Return the selector of the name of a job beside its lane: one that runs just now is due at no time."""
        found = self.person.run(
            "return [...document.querySelectorAll('#content svg a')]"
            ".find((one) => one.querySelector('text') && one.querySelector('title')?.textContent === arguments[0])"
            "?.getAttribute('href')",
            name,
        )
        assert found, f"the overview does not name {name}"
        return f"#content svg a[href='{found}']:has(text)"


@pytest.fixture
def operator(boss):
    """An operator; nothing that is asked takes more clicks."""
    one = Operator(boss)
    yield one
    assert one.clicks <= MOST, f"{one.clicks} clicks"


@pytest.mark.parametrize(
    ("name", "path", "words"),
    [
        ("running", "/runlog/?outcome=running", ""),
        ("due in the next hour", "/job/?state=due", "often"),
        ("failed in 24 h", "/runlog/?outcome=failed", "failed"),
        ("missed in 24 h", "/runlog/?outcome=missed", "missed"),
        ("late in 24 h", "/runlog/?outcome=late", ""),
    ],
)
def test_each_number_leads_to_the_rows_behind_it(operator, name, path, words):
    part = path.partition("?")[2].partition("&")[0]
    operator.reads(".sched-numbers", name)
    operator.click(f".sched-number[href*='{part}']")
    assert path in operator.person.browser.current_url
    operator.reads("#changelist", words)
    assert operator.clicks == 1


def test_what_failed_most_and_the_runs_that_failed_with_this_error(operator):
    operator.person.wait(lambda: (operator.person.go(OVERVIEW), "failed" in operator.person.text(".sched-numbers"))[1])
    operator.click("a[href$='/failures/']")
    operator.reads("#content", "By job", "By error", "ValueError")
    operator.click("section:nth-of-type(2) tbody td:first-child a")
    operator.reads("#result_list", "failed")
    assert "outcome=failed" in operator.person.browser.current_url


def test_a_run_that_failed_is_run_again(operator):
    operator.click_band(f"{BAND_OF_RUN}:has(.sched-bad)")
    operator.reads("#content", "Run again", "Error")
    operator.click("form[action$='/again/'] button")
    operator.reads(".messagelist", "run")


def test_a_job_is_run_with_arguments(operator):
    """The second click opens the form; what is written into it is what was asked for."""
    operator.click_band(operator.lane_of("to_run_with"))
    operator.click("a[href$='/run-with/']")
    operator.reads("#content form", "Run now")
    assert operator.person.find("#content form [name$=days]").get_attribute("value") == "7"


def test_a_backfill_with_what_it_would_run(operator):
    """The second click opens the form; what would run is listed before anything is promised."""
    operator.click_band(operator.lane_of("often"))
    operator.click("a[href$='/backfill/']")
    operator.reads("#content form", "List")
    operator.person.click("form.sched-form [type=submit]")
    operator.reads(".sched-card", "would run")
    operator.person.go("scheduler/runlog/?trigger__exact=backfill")
    assert operator.person.all("#result_list tbody tr") == [], "nothing was promised"


def test_who_runs_what(operator):
    operator.click("a[href$='/instance/']")
    operator.reads("#content", "alive", "Who runs what")


def test_groups_and_who_waits(operator):
    operator.click("a[href$='/groups/']")
    operator.reads("#content", "narrow", "Holding a place".upper(), "Waiting are runs")


def test_a_group_is_paused(operator):
    """The second click opens the form, which asks for a reason and an end."""
    operator.click("a[href$='/groups/']")
    operator.click("a.sched-button[href$='group=narrow']")
    operator.reads("#content form", "Reason", "Pause")


def test_the_next_hour_is_on_the_page(operator):
    operator.person.wait(lambda: (operator.person.go(OVERVIEW), "often" in operator.person.text(NEXT_HOUR))[1])
    assert operator.clicks == 0
    operator.reads(NEXT_HOUR, "Takes as a rule".upper())


def test_durations_over_half_a_year(operator):
    operator.click_band(operator.lane_of("often"))
    operator.person.wait(lambda: operator.person.all("a[href='?days=180']"))
    operator.click("a[href='?days=180']")
    operator.reads("#content", "p50", "up to p95")
    assert operator.person.text("[aria-current=true]") == "180 days"


def test_why_it_did_not_run(operator):
    """The page of the job has its last slots as links, so that nothing is typed."""
    operator.click_band(operator.lane_of("often"))
    operator.click("#sched-why-asked .sched-passed a")
    operator.reads(".sched-answer", "20")


def test_what_a_bar_of_the_last_day_stands_for(operator):
    operator.click_band(f"{BANDS}[href*='/runs/'], {BAND_OF_RUN}")
    operator.reads("#content", "Run")
