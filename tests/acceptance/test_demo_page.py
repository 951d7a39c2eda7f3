"""The demo: prepared by one command, served, and stopped by Ctrl-C."""

import re
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from tests.acceptance.servers import ROOT, free_port, wait_until

pytestmark = pytest.mark.acceptance


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"DATABASE_URL": f"sqlite:///{tmp_path / 'demo.sqlite3'}", "PATH": "", "PYTHONUNBUFFERED": "1"}


def manage(environ: dict[str, str], *words: str) -> str:
    command = [sys.executable, "manage.py", *words]
    ended = subprocess.run(command, cwd=ROOT, env=environ, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture
def demo(environ: dict[str, str], tmp_path: Path) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    port = free_port()
    command = [sys.executable, "manage.py", "demo", "--port", str(port)]
    with (tmp_path / "demo.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=log, stderr=log, preexec_fn=_heed_ctrl_c)
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _heed_ctrl_c() -> None:
    """Tests that run in the background of a shell have inherited that it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _page(url: str, having: str = "") -> str:
    """Return a page, empty while the server does not answer or the page does not have the text."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            assert response.headers["Content-Security-Policy"].startswith("default-src 'self'")
            text = str(response.read().decode())
            return text if having in text else ""
    except OSError:
        return ""


def test_it_prepares_everything_once(environ: dict[str, str]) -> None:
    first, second = (manage(environ, "demo", "--no-serve") for _ in range(2))
    assert re.search(r"Loaded 5000 events, \d{4} of them older than 30 days\.", first)
    assert re.search(r"Admin user: admin   password: \S{16}", first)
    assert "5000 events are there already" in second
    assert "password:" not in second
    assert "changepassword admin" in second


def test_the_cleanup_deletes_the_old_events_and_no_other(environ: dict[str, str]) -> None:
    old = re.findall(r"(\d+) of them", manage(environ, "demo", "--no-serve"))[0]
    assert old in manage(environ, "run_task", "cleanup_old_events")
    left = "from demo_project.alarms.models import Event; print(Event.objects.count())"
    assert manage(environ, "shell", "-v0", "-c", left).split()[-1] == str(5000 - int(old))


def test_the_start_page_shows_what_runs_and_ctrl_c_stops_it(
    demo: tuple["subprocess.Popen[bytes]", str],
) -> None:
    process, url = demo
    page = wait_until(lambda: _page(url, having="1 live instance"), what="its scheduler on the page")
    assert "heartbeat" in page
    assert re.search(r"\d visitors? waiting", page), "the visitor is told of"
    assert not re.search(r"<style|\sstyle=|<script>|\son\w+=", page), "inline style or script"
    for path in (
        "/health/live/",
        "/admin/login/",
        "/assistant/",
        "/reports/",
        "/api/scheduler/docs",
        "/static/alarms/start.css",
        "/static/alarms/start.js",
    ):
        assert _page(url + path), path
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 0


def test_the_reports_are_tasks_of_django_that_end_before_the_eyes_of_the_visitor(
    demo: tuple["subprocess.Popen[bytes]", str],
) -> None:
    _, url = demo
    visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def page(data: dict[str, str] | None = None) -> str:
        body = None if data is None else urllib.parse.urlencode(data).encode()
        with visitor.open(f"{url}/reports/", body, timeout=10) as response:
            return str(response.read().decode())

    wait_until(lambda: _page(url, having="1 live instance"), 90, what="its scheduler on the page")
    for machine in ("press", "reactor"):
        form = dict(re.findall(r'name="(csrfmiddlewaretoken|token)" value="([\w-]+)"', page())) | {"machine": machine}
        assert re.search(r'class="state (waiting|running)"', page(form))
        assert page(form).count(f'<th scope="row">{machine}') == 1, "a double click orders one"
    assert 'class="state succeeded"' not in page()
    wait_until(lambda: re.search(r"<progress max=\"5\" value=\"[1-4]\"", page()), 60, what="progress of the run")
    wait_until(lambda: 'class="state succeeded"' in page(), 60, what="the report")
    assert re.search(r"\d+ critical, \d+ info, \d+ warning", page()), "the return value"
    assert "LookupError: There is no machine &#x27;reactor&#x27;." in page()
    assert not re.search(r"<style|\sstyle=|<script>|\son\w+=", page()), "inline style or script"
    assert "count_by_week" not in _page(url), "what carries tasks is no job"
