"""Pictures as SVG text: no script, no style attribute, colours by class, each with a text alternative."""

from scheduler.admin.svg.bars import duration_bars
from scheduler.admin.svg.calendar import calendar_map
from scheduler.admin.svg.histogram import histogram
from scheduler.admin.svg.lanes import Band, Lane, lanes
from scheduler.admin.svg.load import load_map
from scheduler.admin.svg.sparkline import sparkline
from scheduler.admin.svg.trend import trend

__all__ = ["Band", "Lane", "calendar_map", "duration_bars", "histogram", "lanes", "load_map", "sparkline", "trend"]
