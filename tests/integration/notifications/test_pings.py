"""Monitors elsewhere hear how jobs stand: once, in order, and again after they were away."""

import pytest

from scheduler import get_scheduler_status
from scheduler.exceptions import ConfigurationError
from scheduler.models import NoticeChannel, RunLog, Status
from scheduler.notifications import pings
from scheduler.notifications.channels.base import SendFailed
from scheduler.notifications.pings import configured_pings, send_pings, wrong_pings
from scheduler.problems import notices
from tests.factories import at, claim_one, finish, make_engine, make_job, make_registry, run_at

pytestmark = pytest.mark.django_db
URL = "https://hc-ping.com/0123-secret-uuid"


@pytest.fixture
def monitor(settings, monkeypatch, clock):
    """Return what the monitor heard since it was asked last; `monitor.away` is what it fails with."""
    settings.SCHEDULER_SECRET_PINGS = {"night": URL}
    engine, heard = make_engine(), []

    def request(method, address, body, headers):
        if listen.away:
            raise listen.away
        heard.append(address.url.removeprefix(URL) or "/")

    def listen(now):
        clock.move_to(now)
        heard.clear()
        send_pings("default", engine.instance_id, now, lambda name, call: call())
        return list(heard)

    monkeypatch.setattr(pings, "request", request)
    listen.away, listen.engine = None, engine
    return listen


@pytest.fixture
def night(monitor):
    make_job("night", retries=0, backoff=[1])
    assert monitor(at(1)) == []


def test_a_run_is_told_of_from_its_beginning_to_its_end(monitor, night):
    claimed = claim_one(monitor.engine, at(60))
    RunLog.objects.update(started_at=at(60))
    assert [monitor(at(61)), monitor(at(62))] == [["/start"], []]
    finish(monitor.engine, claimed, at(60), after=30)
    assert [monitor(at(91)), monitor(at(92))] == [["/"], []]


def test_a_failure_is_told_as_one_and_only_the_last_attempt_counts(monitor, settings):
    make_job("night", retries=1, backoff=[1])
    monitor(at(1))
    run_at(monitor.engine, at(60), Status.FAILED)
    assert monitor(at(61)) == []
    run_at(monitor.engine, at(70), Status.FAILED)
    assert monitor(at(71)) == ["/fail"]


def test_success_with_errors_is_a_failure(monitor, night):
    run_at(monitor.engine, at(60), totals={"errors": 1})
    assert monitor(at(61)) == ["/fail"]


def test_what_happened_before_the_first_look_is_not_told(monitor):
    make_job("night")
    run_at(monitor.engine, at(60))
    assert monitor(at(61)) == []


def test_a_monitor_that_is_away_hears_how_it_stands_when_it_is_back_and_health_says_so(monitor, night):
    monitor.away = SendFailed("hc-ping.com: HTTP 503")
    run_at(monitor.engine, at(60))
    for seconds in (61, 120, 240):
        assert monitor(at(seconds)) == []
        assert NoticeChannel.objects.get(name__startswith="ping:").next_at > at(seconds)
    (problem,) = [one for one in get_scheduler_status().problems if one.code == "ping_failing"]
    assert problem.text == "the monitor of night cannot be told how it stands: hc-ping.com: HTTP 503"
    monitor.away = None
    assert monitor(at(400)) == ["/"]
    assert [one.code for one in get_scheduler_status().problems if one.code == "ping_failing"] == []


def unknown():
    return [str(one) for one in get_scheduler_status().problems if one.code == "unknown_job"]


def test_a_name_that_no_job_has_is_told_and_one_of_the_code_that_has_no_row_yet_is_not(settings, monkeypatch):
    monkeypatch.setattr(notices, "registry", make_registry("coded"))
    settings.SCHEDULER_SECRET_PINGS = {"night": URL, "nihgt": URL, "coded": URL}
    settings.SCHEDULER_NOTIFY = [
        {"channel": "call", "function": print, "jobs": ["nigth", "night"]}, {"channel": "email", "jobs": "wrong"}
    ]  # fmt: skip
    make_job("night")
    assert unknown() == [
        "SCHEDULER_SECRET_PINGS names nihgt, and there is no such job",
        "SCHEDULER_NOTIFY names nigth, and there is no such job",
    ]
    make_job("nihgt")
    make_job("nigth")
    assert unknown() == []


def test_of_many_unknown_names_few_are_told_and_no_odd_one_breaks_health(settings):
    settings.SCHEDULER_SECRET_PINGS = {f"n{number:02}": URL for number in range(12)}
    settings.SCHEDULER_NOTIFY = [
        {"channel": "email", "jobs": ["a\0b", "\ud800", "n\x1b"]},
        {"channel": 5, "jobs": None},
    ]
    assert [line.split(" and ")[0] for line in unknown()] == [
        *(f"SCHEDULER_SECRET_PINGS names n{number:02}," for number in range(10)),
        "2 more jobs of the kind “unknown_job”",
        "SCHEDULER_NOTIFY names n\\u001b,",
    ]


def test_another_process_tells_nothing_twice_NT1(monitor, night):
    run_at(monitor.engine, at(60))
    assert monitor(at(61)) == ["/"]
    monitor.engine.instance_id = make_engine().instance_id
    assert monitor(at(62)) == []


def test_no_address_is_stored_or_shown(monitor, night):
    run_at(monitor.engine, at(60))
    monitor(at(61))
    stored = repr(list(NoticeChannel.objects.values()))
    shown = f"{configured_pings()['night'].label} {configured_pings()['night']!r}"
    assert "secret-uuid" not in stored + shown


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("ftp://x/y", r"SCHEDULER_SECRET_PINGS\['night'\]"),
        ({"begin": URL}, "has 'begin'"),
        ({"start": "nonsense"}, r"SCHEDULER_SECRET_PINGS\['night'\]"),
    ],
)
def test_a_wrong_one_is_named_by_its_job(settings, given, says):
    settings.SCHEDULER_SECRET_PINGS = {"night": given}
    with pytest.raises(ConfigurationError, match=says):
        configured_pings()
    assert len(wrong_pings()) == 1


def test_one_that_leads_into_the_own_network_is_refused_by_the_check_NT4(settings):
    settings.SCHEDULER_SECRET_PINGS = {"night": "http://127.1/x"}
    assert "not a public address" in wrong_pings()[0]


def test_other_services_have_their_own_addresses(settings):
    settings.SCHEDULER_SECRET_PINGS = {"night": {"success": URL, "fail": None}}
    ping = configured_pings()["night"]
    assert (ping.addresses["success"].url, ping.addresses["fail"], ping.addresses.get("start")) == (URL, None, None)
