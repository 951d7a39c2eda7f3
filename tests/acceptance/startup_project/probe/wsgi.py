"""The WSGI application; it goes on loading for a while after Django is ready, as slow projects do."""

import os
from threading import Event

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "probe.settings")
application = get_wsgi_application()
Event().wait(float(os.environ.get("STARTUP_SLOW_SECONDS", "0")))
