"""Settings from the environment: in your settings module, `globals().update(scheduler_settings())`.

Every `SCHEDULER_*` variable is read by the type of its setting. What cannot be read stays text, so that `check` names
it, and so does a variable that is no setting.
"""

import json
from collections.abc import Mapping
from typing import Any

import environ

from scheduler.conf import SETTINGS

PREFIX = "SCHEDULER_"
YES, NO = ("true", "on", "ok", "y", "yes", "1"), ("false", "off", "n", "no", "0")


def scheduler_settings(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the settings that the environment gives, `os.environ` with what `Env.read_env` has read by default.

    Booleans are `true` or `false`, lists `a,b`, mappings `serial=1,other=2`; lists and mappings may be JSON too.
    """
    given = environ.Env.ENVIRON if environment is None else environment
    return {name: _read(name, text) for name, text in given.items() if name.startswith(PREFIX)}


def _read(name: str, text: str) -> Any:
    if name not in SETTINGS:
        return text
    try:
        return _as(type(SETTINGS[name].default), text.strip())
    except (ValueError, TypeError, IndexError):
        return text


def _as(kind: type, text: str) -> Any:
    if kind is bool:
        return True if text.lower() in YES else False if text.lower() in NO else text
    if kind is str:
        return text
    if text.startswith(("[", "{")):
        return json.loads(text)
    value = environ.Env.parse_value(text, list if kind is tuple else kind)
    return {key: int(most) for key, most in value.items()} if kind is dict else value
