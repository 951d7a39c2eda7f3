"""Tags for pages of the admin that are not ours: `{% scheduler_numbers %}` on the index page, say."""

from typing import Any

from django import template
from django.contrib import admin
from django.contrib.admin.sites import all_sites

from scheduler.admin.names import address_of
from scheduler.admin.overview.numbers import numbers_of

register = template.Library()


@register.inclusion_tag("admin/scheduler/includes/panel.html", takes_context=True)
def scheduler_numbers(context: Any) -> dict[str, Any]:
    """Show what runs, what is due and what went wrong, to people who may see it."""
    request = context["request"]
    name = getattr(request, "current_app", "")
    site = next((one for one in all_sites if one.name == name), admin.site)
    numbers = numbers_of(site, request)
    pages = ("overview", "groups") if numbers else ()
    return {"numbers": numbers} | {page: address_of(site.name, f"job_{page}") for page in pages}
