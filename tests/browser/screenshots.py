"""Make the pictures of the docs: `python -m tests.browser.screenshots`. Serves the demo, with its past, for a minute.

Pillow, where it is installed, makes each of them a third as large: the colours of a page fit into a palette.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from selenium.webdriver import Chrome

from tests.browser.conftest import CHROMEDRIVER, CHROMIUM
from tests.browser.person import Person, open_browser

ROOT = Path(__file__).resolve().parent.parent.parent
IMAGES = ROOT / "docs" / "images"
WARM_UP = 20
THEMES = ("light", "dark")
TALLEST = 1800
COLOURS = 200


def main() -> None:
    """Serve the demo, wait until something runs, and take the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        environment = os.environ | {"DATABASE_URL": f"sqlite:///{folder}/demo.sqlite3", "LOG_LEVEL": "ERROR"}
        environment["ASSISTANT_URL"] = f"http://127.0.0.1:{port}/assistant"
        manage = [sys.executable, "manage.py"]
        prepared = subprocess.run(
            [*manage, "demo", "--no-serve"], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
        )
        (password,) = re.findall(r"password: (\S+)", prepared.stdout)
        server = subprocess.Popen([*manage, "runserver", "--noreload", str(port)], cwd=ROOT, env=environment)
        browser = open_browser(str(CHROMIUM), str(CHROMEDRIVER), timezone="Europe/Berlin")
        try:
            time.sleep(WARM_UP)  # noqa: TID251 - the jobs run in that time
            take_all(Person(browser, f"http://127.0.0.1:{port}/admin/").log_in("admin", password))
        finally:
            browser.quit()
            server.terminate()
            server.wait(60)


def take_all(person: Person) -> None:
    """Every page that the tour shows, in light and dark."""
    run = run_that_goes_on(person)
    for theme in THEMES:
        take(person, f"run-{theme}", run, theme)
    pages = {
        "overview": "scheduler/job/overview/",
        "jobs": "scheduler/job/",
        "job": person.open_job("cleanup_old_events"),
        "editor": person.open_job("morning_report") + "change/",
        "run-with": person.open_job("ask_for_critical_events") + "run-with/",
        "failures": "scheduler/job/failures/?period=week",
        "failed": "scheduler/runlog/?outcome=failed",
        "groups": "scheduler/job/groups/",
        "instances": "scheduler/instance/",
    }
    for name, path in pages.items():
        for theme in THEMES:
            take(person, f"{name}-{theme}", path, theme)


def run_that_goes_on(person: Person) -> str:
    """Return the address of a run that has begun to log."""
    person.open_job("scan_archive")
    person.wait(lambda: (person.browser.refresh(), person.all("td progress"))[1], 90)
    run = person.find(".sched-table tr:has(progress) a[href*='/runlog/']").get_attribute("href") or ""
    person.go(run)
    person.wait(lambda: len(person.text("#sched-log").splitlines()) > 2, 60)
    return run


def take(person: Person, name: str, path: str, theme: str) -> None:
    """Take one picture of the page, without the list of apps at the side."""
    chrome: Chrome = person.browser
    chrome.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    )
    chrome.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    resize(person, 600)
    person.run("localStorage.setItem('django.admin.navSidebarIsOpen', 'false')")
    person.go(path)
    bottom = int(person.run("return document.querySelector('#content').getBoundingClientRect().bottom")) + 20
    resize(person, min(bottom, TALLEST))
    time.sleep(0.5)  # noqa: TID251 - the times are said in the zone of the browser
    IMAGES.mkdir(exist_ok=True)
    chrome.save_screenshot(str(IMAGES / f"{name}.png"))
    shrink(IMAGES / f"{name}.png")


def shrink(path: Path) -> None:
    """Give a picture a palette."""
    if find_spec("PIL") is None:
        return
    from PIL import Image

    with Image.open(path) as picture:
        whole = picture.convert("RGB")
    # The colours that most of it has stay what they are: grounds and texts keep their contrast.
    counted = sorted(whole.getcolors(whole.width * whole.height) or (), reverse=True)
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in counted[:COLOURS] for part in colour])
    whole.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)


def resize(person: Person, height: int) -> None:
    size = {"width": 1200, "height": height, "deviceScaleFactor": 1, "mobile": False}
    person.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


if __name__ == "__main__":
    main()
