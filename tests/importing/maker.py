"""What the makers share: a database of a package in a folder, and the instants at which it would run what is in it."""

import json
import sqlite3
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

BEGIN = datetime(2026, 3, 2, 12, tzinfo=UTC)
"""From when on the instants are told: T0 of the tests."""
MONTH, YEAR = timedelta(days=31), timedelta(days=366)


def configured(folder: Path, *apps: str, **more: Any) -> Path:
    """Set Django up with a new database for some apps, and migrate it; returns its file."""
    import django
    from django.conf import settings
    from django.core.management import call_command

    path = folder / "db.sqlite3"
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)}},
        INSTALLED_APPS=["django.contrib.contenttypes", *apps],
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        **({"TIME_ZONE": "Europe/Berlin"} | more),
    )
    django.setup()
    call_command("migrate", verbosity=0)
    return path


def dumped(path: Path, tables: str) -> str:
    """Return the tables whose names begin so as SQL for SQLite."""
    connection = sqlite3.connect(path)
    lines = [line for line in connection.iterdump() if f'"{tables}' in line]
    connection.close()
    return (
        "\n".join(line for line in lines if line.startswith(("CREATE TABLE", "INSERT")) and "INDEX" not in line) + "\n"
    )


def runs_of(following: Callable[[datetime], datetime | None], span: timedelta) -> dict[str, Any]:
    """Return when something runs within `span` of BEGIN: what follows BEGIN, each instant from the one before."""
    found, at = [], following(BEGIN)
    while at is not None and at <= BEGIN + span:
        found.append(f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}")
        at = following(at)
    return {"until": (BEGIN + span).isoformat(), "runs": found}


def write(folder: Path, name: str, sql: str, runs: dict[str, Any]) -> None:
    """Write what was made: the tables, and by the name of each schedule when the package would run it."""
    if sql:
        (folder / f"{name}.sql").write_text(sql)
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in runs.items())
    (folder / f"{name}.json").write_text(f"{{{lines}}}\n")


def folder_given() -> Path:
    """Return the folder that the command line names."""
    return Path(sys.argv[1])
