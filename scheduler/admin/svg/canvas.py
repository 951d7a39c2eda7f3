"""The frame of a picture and the few shapes all of them are made of."""

from collections.abc import Iterable
from datetime import UTC, datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe


def picture(
    width: float, height: float, label: str, shapes: Iterable[SafeString], css: str = "", role: str = "img"
) -> SafeString:
    """Return `<svg>` with its text alternative; one that has links in it is a `group`."""
    return format_html(
        '<svg class="sched-svg {}" role="{}" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">{}</svg>',
        css,
        role,
        label,
        _n(width),
        _n(height),
        _n(width),
        _n(height),
        join(shapes),
    )


def join(shapes: Iterable[SafeString]) -> SafeString:
    """Return the shapes one after the other."""
    return format_html_join("", "{}", ((shape,) for shape in shapes))


def rect(
    x: float, y: float, width: float, height: float, css: str, title: str = "", at: datetime | None = None
) -> SafeString:
    """Return a rectangle; the title is shown when the pointer rests on it, `at` is the instant that stands in it."""
    shape = mark_safe(f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"')
    if not title:
        return format_html('{} class="{}"/>', shape, css)
    return format_html('{} class="{}"><title{}>{}</title></rect>', shape, css, _said(at), title)


def text(
    x: float, y: float, words: object, css: str = "", anchor: str = "start", at: datetime | None = None
) -> SafeString:
    """Return a label; `at` is the instant that it says in UTC, which the browser may say in another zone."""
    return format_html(
        '<text x="{}" y="{}" class="sched-label {}" text-anchor="{}"{}>{}</text>',
        _n(x), _n(y), css, anchor, _said(at), words,
    )  # fmt: skip


def _said(at: datetime | None) -> SafeString:
    return mark_safe(f' data-sched-at="{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"' if at else "")


def link(url: str, shapes: Iterable[SafeString], title: str = "") -> SafeString:
    """Return the shapes as a link, where there is an address that it leads to."""
    named = format_html("<title>{}</title>", title) if title else SafeString()
    if not url:
        return format_html("<g>{}{}</g>", named, join(shapes)) if title else join(shapes)
    return format_html('<a href="{}">{}{}</a>', url, named, join(shapes))


def line(x1: float, y1: float, x2: float, y2: float, css: str = "sched-grid") -> SafeString:
    """Return a straight line."""
    return format_html('<line x1="{}" y1="{}" x2="{}" y2="{}" class="{}"/>', _n(x1), _n(y1), _n(x2), _n(y2), css)


def hatch(name: str) -> SafeString:
    """Return the pattern of hatched shapes: what should have happened and did not."""
    return format_html(
        '<defs><pattern id="{}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="6" height="6" class="sched-hatch-ground"/><rect width="2.5" height="6" class="sched-hatch"/>'
        "</pattern></defs>",
        name,
    )


def _n(number: float) -> str:
    """A number as short as it can be; a dot whatever the language."""
    return f"{number:.1f}".rstrip("0").rstrip(".")
