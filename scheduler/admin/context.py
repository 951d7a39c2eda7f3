"""What every page of our own hands to its template."""

from typing import Any

from django.http import HttpRequest


def page_context(admin: Any, request: HttpRequest, title: str, **more: Any) -> dict[str, Any]:
    """Return the context of the admin site with title, media and model; `admin:` in templates means this site."""
    request.current_app = admin.admin_site.name
    return {
        **admin.admin_site.each_context(request),
        "title": title,
        "opts": admin.model._meta,
        "media": admin.media,
        **more,
    }
