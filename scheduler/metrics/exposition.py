"""Exposition: the metrics in the format that a scraper asks for, collected for each request; no registry holds them."""

from collections.abc import Callable, Iterable, Iterator

from scheduler.exceptions import ConfigurationError
from scheduler.metrics import SchedulerCollector

try:
    from prometheus_client import Metric
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
    from prometheus_client.utils import floatToGoString
except ImportError as error:
    raise ConfigurationError(
        'Metrics need prometheus-client: pip install "django-inprocess-scheduler[metrics]".'
    ) from error

_number: Callable[[float], str] = floatToGoString
OPENMETRICS = CONTENT_TYPE_LATEST.partition(";")[0]
TOTAL = "_total"
ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def exposition(accept: str = "") -> tuple[bytes, str]:
    """Return the metrics, and their content type; `accept` is the header of the request."""
    _, content_type = choose_encoder(accept)
    is_open = content_type.startswith(OPENMETRICS)
    return "".join(_lines(SchedulerCollector().collect(), is_open=is_open)).encode(), content_type


def _lines(metrics: Iterable[Metric], *, is_open: bool) -> Iterator[str]:
    """Yield what an encoder of prometheus-client gives for these metrics, in a third of its time.

    It checks the name of each label of each sample: most of the work of a scrape. All names here are known.
    """
    quoted: dict[str, str] = {}
    for metric in metrics:
        name = metric.name if is_open or metric.type != "counter" else metric.name + TOTAL
        yield f"# HELP {name} {metric.documentation}\n# TYPE {name} {metric.type}\n"
        for sample in metric.samples:
            for value in sample.labels.values():
                if value not in quoted:
                    quoted[value] = f'="{value.translate(ESCAPED)}"'
            labels = ",".join([label + quoted[value] for label, value in sorted(sample.labels.items())])
            series = f"{sample.name}{{{labels}}}" if labels else sample.name
            yield f"{series} {_number(sample.value)}\n"
    if is_open:
        yield "# EOF\n"
