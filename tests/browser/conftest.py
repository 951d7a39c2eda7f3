"""A real server, a real Chromium. Without them these tests are skipped, with a line that says what is missing."""

import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

selenium = pytest.importorskip("selenium", reason="pip install django-inprocess-scheduler[browser]")

from tests.browser.person import Person, open_browser  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """The address of a server that runs the scheduler."""
    if not (CHROMIUM and CHROMEDRIVER):
        pytest.skip("no Chromium here: apt-get install chromium chromium-driver")
    database = tmp_path_factory.mktemp("browser") / "db.sqlite3"
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.browser.site.settings",
        "BROWSER_TEST_DATABASE": str(database),
        "PYTHONPATH": str(ROOT),
    }
    python = [sys.executable, "-m"]
    subprocess.run([*python, "django", "migrate", "-v0"], env=environment, cwd=ROOT, check=True)
    subprocess.run([*python, "tests.browser.site.prepare"], env=environment, cwd=ROOT, check=True)
    command = [*python, "django", "runserver", "--noreload", str(port)]
    with (database.parent / "server.log").open("w") as log:
        server = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}/admin/"
    try:
        wait_for_server(url, server)
        yield url
    finally:
        server.terminate()
        server.wait(60)


def wait_for_server(url: str, server: subprocess.Popen) -> None:
    import time

    deadline = time.monotonic() + 60  # noqa: TID251 - a real deadline
    while time.monotonic() < deadline and server.poll() is None:  # noqa: TID251
        try:
            urllib.request.urlopen(url + "login/", timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)  # noqa: TID251
    pytest.fail("the server of the browser tests did not start")


@pytest.fixture(scope="session")
def browser(address):
    """One Chromium in Tokyo for all tests."""
    driver = open_browser(CHROMIUM, CHROMEDRIVER, timezone="Asia/Tokyo")
    yield driver
    driver.quit()


@pytest.fixture
def boss(browser, address):
    """Somebody who may do everything, with a fresh session."""
    return Person(browser, address).log_in("boss")


@pytest.fixture
def viewer(browser, address):
    """Somebody who may only look."""
    return Person(browser, address).log_in("viewer")


@pytest.fixture(scope="session")
def axe(request) -> str:
    """The source of axe-core, fetched from npm once."""
    folder = request.config.cache.mkdir("axe-core")
    script = folder / "package" / "axe.min.js"
    if not script.exists():
        if not shutil.which("npm"):
            pytest.skip("no npm here to fetch axe-core with")
        done = subprocess.run(["npm", "pack", "axe-core@4"], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            pytest.skip("axe-core could not be fetched from npm")
        shutil.unpack_archive(folder / done.stdout.strip().splitlines()[-1], folder, "gztar")
    return script.read_text()


@pytest.fixture(params=["light", "dark"])
def theme(request, browser):
    """Each of the two, as the system of the person has it."""
    features = [{"name": "prefers-color-scheme", "value": request.param}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    yield request.param
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
