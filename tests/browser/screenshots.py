"""Make the pictures of the docs anew: `python -m tests.browser.screenshots`. Serves the demo for five minutes."""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selenium.webdriver import Chrome

from tests.browser.conftest import CHROMEDRIVER, CHROMIUM
from tests.browser.person import Person, open_browser

ROOT = Path(__file__).resolve().parent.parent.parent
IMAGES = ROOT / "docs" / "images"
WARM_UP = 240


def main() -> None:
    """Serve the demo, wait until there is something to see, and take the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        environment = os.environ | {"DATABASE_URL": f"sqlite:///{folder}/demo.sqlite3", "LOG_LEVEL": "ERROR"}
        manage = [sys.executable, "manage.py"]
        prepared = subprocess.run(
            [*manage, "demo", "--no-serve"], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
        )
        (password,) = re.findall(r"password: (\S+)", prepared.stdout)
        server = subprocess.Popen([*manage, "runserver", "--noreload", str(port)], cwd=ROOT, env=environment)
        browser = open_browser(str(CHROMIUM), str(CHROMEDRIVER), timezone="Europe/Berlin")
        try:
            time.sleep(WARM_UP)  # noqa: TID251 - the jobs run meanwhile
            person = Person(browser, f"http://127.0.0.1:{port}/admin/").log_in("admin", password)
            take_all(person)
        finally:
            browser.quit()
            server.terminate()
            server.wait(60)


def take_all(person: Person) -> None:
    """Six pictures: the jobs in light and dark, and four pages of which two are dark."""
    take(person, "jobs-light", "scheduler/job/", "light")
    take(person, "jobs-dark", "scheduler/job/", "dark")
    take(person, "overview-light", "scheduler/job/overview/", "light")
    take(person, "job-light", person.open_job("notify_on_call"), "light")
    take(person, "editor-dark", person.open_job("morning_report") + "change/", "dark")
    person.open_job("scan_archive")
    person.wait(lambda: (person.browser.refresh(), person.all("td progress"))[1], 60)
    run = person.find(".sched-table tbody a").get_attribute("href") or ""
    person.go(run)
    person.wait(lambda: len(person.text("#sched-log").splitlines()) > 2, 60)
    take(person, "run-dark", run, "dark")


def take(person: Person, name: str, path: str, theme: str) -> None:
    """Take one picture of the whole page, without the list of apps at the side."""
    chrome: Chrome = person.browser
    chrome.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    )
    resize(person, 600)
    person.run("localStorage.setItem('django.admin.navSidebarIsOpen', 'false')")
    person.go(path)
    resize(person, int(person.run("return document.querySelector('#content').getBoundingClientRect().bottom")) + 20)
    time.sleep(0.5)  # noqa: TID251 - the times are said in the zone of the browser
    IMAGES.mkdir(exist_ok=True)
    chrome.save_screenshot(str(IMAGES / f"{name}.png"))


def resize(person: Person, height: int) -> None:
    size = {"width": 1200, "height": height, "deviceScaleFactor": 1, "mobile": False}
    person.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


if __name__ == "__main__":
    main()
