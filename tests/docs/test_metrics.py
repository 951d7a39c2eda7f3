"""The metrics that the docs name are those that there are, with their types, labels and the values of these."""

import json
import re
from typing import Any

import pytest

from scheduler.conf import conf
from scheduler.models import JobState, Trigger
from scheduler.problems import Severity
from tests.docs.pages import ROOT, in_code, page, table

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
pytestmark = pytest.mark.django_db
PAGE = "reference/metrics.md"
LABELS = {row[0].strip("`"): in_code(row[1]) for row in table(PAGE, "Labels")[1:]}


def families() -> dict[str, tuple[str, list[str]]]:
    """Return the type and the labels of each metric, by its name with the suffix of counters."""
    from scheduler.metrics.families import families as made
    from scheduler.metrics.figures import figures

    found: list[Any] = list(made(figures()))
    return {one.name + "_total" * (one.type == "counter"): (one.type, list(one._labelnames)) for one in found}


def test_every_metric_is_documented_with_its_type_and_labels_and_no_other() -> None:
    documented = {row[0].strip("`"): (row[1], in_code(row[2])) for row in table(PAGE, "Metrics")[1:]}
    assert documented == families()


def test_every_value_of_a_label_is_documented_and_no_other() -> None:
    from scheduler.engine.db.tally import OTHER, REASONS
    from scheduler.metrics.families import UNKNOWN
    from scheduler.metrics.sums import STATUSES

    assert sorted(LABELS["status"]) == sorted(STATUSES.values())
    assert LABELS["trigger"] == [*Trigger.values, UNKNOWN]
    assert LABELS["reason"] == [*REASONS, OTHER, UNKNOWN]
    assert LABELS["state"] == JobState.values
    assert sorted(LABELS["severity"]) == sorted(Severity)


def test_the_limit_that_the_page_repeats_is_the_real_one() -> None:
    assert f"`SCHEDULER_METRICS_MAX_JOBS` jobs ({conf.METRICS_MAX_JOBS})" in page(PAGE)


EXAMPLES = ("how-to/metrics-alerts.yml", "how-to/metrics-dashboard.json", "how-to/metrics.md")
OF_HISTOGRAM = re.compile("_(bucket|sum|count)$")
SERIES = re.compile(r"\b(scheduler_(?!metrics)[a-z_]+)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~?|!=|!~)\\?"([^"\\]*)\\?"')


def expressions(name: str) -> list[str]:
    """Return the queries of an example: PromQL, one each."""
    if name.endswith(".json"):
        dashboard = json.loads(page(name))
        found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        return [*found, *(one["definition"] for one in dashboard["templating"]["list"] if "definition" in one)]
    return re.findall(r"^\s*expr: (.*)$", page(name), re.MULTILINE) or re.findall(
        "`([^`]*scheduler_[^`]*)`", page(name)
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_dashboard_and_rules_name_only_metrics_and_labels_that_exist_MX6(name: str) -> None:
    known = families()
    queries = expressions(name)
    assert queries
    for metric, matchers in (found for query in queries for found in SERIES.findall(query)):
        base = OF_HISTOGRAM.sub("", metric)
        assert metric in known or known.get(base, ("",))[0] == "histogram", metric
        labels = known[metric if metric in known else base][1]
        for label, _, value in MATCHER.findall(matchers):
            assert label in labels, f"{metric} has no label {label}"
            assert label == "task" or set(value.split("|")) <= set(LABELS[label]), f"{label} is never {value}"


@pytest.mark.parametrize("name", EXAMPLES[:2])
def test_what_a_query_adds_up_by_is_a_label_of_its_metric(name: str) -> None:
    known = families()
    for query in expressions(name):
        of_metrics = {label for metric, _ in SERIES.findall(query) for label in known[_family(metric, known)][1]}
        grouped = {label.strip() for group in re.findall(r"by \(([^)]*)\)", query) for label in group.split(",")}
        assert grouped <= of_metrics | {"le"}, query


def _family(metric: str, known: dict[str, Any]) -> str:
    return metric if metric in known else OF_HISTOGRAM.sub("", metric)


def test_the_dashboard_has_panels_of_their_own_places() -> None:
    panels = json.loads((ROOT / "docs" / EXAMPLES[1]).read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
