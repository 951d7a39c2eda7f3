"""The URL of a Redis is right or refused at the start: nothing of it fails when the first run is due."""

import pytest
from redis.exceptions import RedisError

from scheduler.conf import conf
from scheduler.exceptions import ConfigurationError
from scheduler.redis_client import client_of
from scheduler.redis_url import OF_TLS, OPTIONS, is_redis_url, wrong_part

VALUES = {
    "db": "3", "protocol": "3", "socket_timeout": "1.5", "socket_connect_timeout": "2", "socket_keepalive": "true",
    "health_check_interval": "5", "max_connections": "5", "ssl_cert_reqs": "none", "ssl_check_hostname": "false",
}  # fmt: skip
WRONG = [
    "socket_timeout=abc", "socket_timeout=-1", "socket_timeout=0", "socket_timeout=nan", "socket_timeout=",
    "socket_timeout", "nonsense=1", "retry=3", "decode_responses=False", "protocol=9", "max_connections=0", "db=x",
    "max_connections=-1", "health_check_interval=x", "db=-1", "encoding=none-such", "credential_provider=x",
    "db=1&db=2", "retry_on_error=x", "socket_keepalive=maybe", "client_name=a%20b", "ssl_cert_reqs=none",
]  # fmt: skip


@pytest.mark.parametrize("start", ["redis://host", "rediss://:secret@host:6380/2", "unix:///run/redis.sock"])
@pytest.mark.parametrize("name", [*OPTIONS, *OF_TLS])
def test_what_the_rule_takes_is_what_makes_a_connection(start, name):
    url = f"{start}?{name}={VALUES.get(name, 'x')}"
    try:
        client_of(url).connection_pool.make_connection()
        made = True
    except (TypeError, ValueError, RedisError):
        made = False
    assert is_redis_url(url) is made


@pytest.mark.parametrize("query", WRONG)
def test_an_option_that_would_fail_at_use_is_refused(query):
    assert not is_redis_url(f"redis://host/0?{query}")


@pytest.mark.parametrize(
    "url", ["redis://host/abc", "redis://host/0/1", "redis://host/-1", "redis://host/0#1", "redis://:a#b@host"]
)
def test_a_path_that_a_client_would_take_for_database_0_is_refused(url):
    assert not is_redis_url(url)


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("http://:s3cret@host", "the scheme"),
        ("redis://:s3cret@", "the host is missing"),
        ("redis://:s3c#ret@host", "the port"),
        ("redis://:s3c?ret@host", "the port"),
        ("redis://u:s3c/ret@host", "the port"),
        ("redis://:s3c[ret@host", "the host cannot be read"),
        ("redis://:s3cret@host:99999", "the port"),
        ("redis://:s3cret@host/main", "the database number"),
        ("redis://:s3cret@host/0#x", "no #"),
        ("redis://:s3cret@host/0?db", "the options"),
        ("redis://:s3cret@host/0?db=s3cret", "the option 'db'"),
        ("redis://:s3cret@host/0?db=1&db=1", "the option 'db' is given twice"),
        ("redis://:s3cret@host/0?sockettimeout=1", "perhaps 'socket_timeout' is meant"),
        ("redis://host/0?s3cret=1", "an option after the ? is unknown"),
        ("unix://", "the path of the socket"),
    ],
)
def test_a_wrong_url_has_its_part_named_and_nothing_of_it_quoted(url, part, settings):
    settings.SCHEDULER_LOCK_URL = url
    with pytest.raises(ConfigurationError) as caught:
        conf.LOCK_URL  # noqa: B018 - reading it checks it
    text = str(caught.value)
    assert part in text
    assert "s3c" not in text
    assert "percent-encode" in text or part not in ("the host is missing", "the port", "the host cannot be read")


def test_a_right_url_has_no_wrong_part():
    assert wrong_part("redis://:s3c%23ret@host/0") == ""
