"""Names: what schedules of others may be called, as names of jobs."""

from scheduler.schedules.linked import NAME_LENGTH


def job_name(name: str) -> tuple[str, list[str]]:
    """Return a name that a job may have, and a note where it is another one."""
    printable = "".join(char if char.isprintable() else " " for char in name)
    found = " ".join(printable.lstrip("/").replace("/", "-").split())[:NAME_LENGTH].strip()
    if found in (".", ".."):
        found = ""
    return found, [f"named {found} here: that name cannot be had"] if found != name and found else []
