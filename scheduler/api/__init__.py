"""REST API on django-ninja (extra `[api]`): `router` for a NinjaAPI of your own, `scheduler.api.urls` ready to include.

Nothing of it is loaded until you import it.
"""

from importlib.util import find_spec

if find_spec("ninja") is None:
    raise ImportError("scheduler.api needs django-ninja: pip install 'django-inprocess-scheduler[api]'")

from scheduler.api.router import router
from scheduler.api.routes import act, activity, change, groups, jobs, ledger, preview, runs, status

__all__ = ["act", "activity", "change", "groups", "jobs", "ledger", "preview", "router", "runs", "status"]
