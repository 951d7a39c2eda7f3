"""System checks of prompt sessions."""

from importlib.util import find_spec
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register

from scheduler.contrib.sessions.prompt import INSTALL


@register(Tags.compatibility)
def check_httpx(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """E020: the app is installed without its HTTP client."""
    if find_spec("httpx") is not None:
        return []
    text = "scheduler.contrib.sessions is installed and httpx is not."
    return [Error(text, hint=f"{INSTALL}; until then its runs fail.", id="scheduler.E020")]
