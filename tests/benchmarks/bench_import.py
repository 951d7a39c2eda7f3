"""What the app adds to `django.setup()`, in fresh processes with warm byte code."""

import os
import subprocess
import sys
from statistics import median

from tests.benchmarks.figures import Figure

ROUNDS = 20
APPS = ("admin", "auth", "contenttypes", "messages", "sessions", "staticfiles")
SCRIPT = """
import sys, time, django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=[app for app in sys.argv[1].split(",") if app],
    SECRET_KEY="x",
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
start = time.perf_counter()
django.setup()
print(time.perf_counter() - start)
"""


def setup_milliseconds(apps: list[str]) -> float:
    """Return what `django.setup()` took in a new process."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", SCRIPT, ",".join(apps)]
    return float(subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout) * 1000


def measure() -> list[Figure]:
    figures = []
    for name, base in (("a project with the admin", [f"django.contrib.{app}" for app in APPS]), ("bare Django", [])):
        pairs = [(setup_milliseconds(base), setup_milliseconds([*base, "scheduler"])) for _ in range(1 + ROUNDS)]
        without, with_app = (median(column) for column in zip(*pairs[1:], strict=True))
        note = f"{without:.0f} ms without, {with_app:.0f} ms with it"
        goal = 25.0 if base else None
        figures.append(Figure(f"django.setup() of {name}, added", with_app - without, "ms", goal, note=note))
    return figures
