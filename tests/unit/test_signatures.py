"""What a function cannot be called with is said before a run, with the name that was meant."""

from functools import partial, wraps

import pytest

from scheduler.exceptions import InvalidOption
from scheduler.registry import Registry, register
from scheduler.schedules import Every, Manual, OnActivity
from scheduler.signatures import why_not_called


class Mailer:
    def send(self, to="all"):
        pass

    @staticmethod
    def plain(to="all"):
        pass


def nothing():
    pass


def days_back(days, *, dry_run=False):
    pass


def with_context(context, days=1):
    pass


def anything(*args, **kwargs):
    pass


def by_position(days, /):
    pass


@wraps(days_back)
def wrapped(*args, **kwargs):
    pass


@pytest.mark.parametrize(
    ("function", "names", "takes_context"),
    [
        (nothing, (), False),
        (days_back, ("days",), False),
        (days_back, ("days", "dry_run"), False),
        (with_context, (), True),
        (with_context, ("days",), True),
        (anything, ("x",), False),
        (anything, ("x",), True),
        (partial(days_back, days=3), (), False),
        (Mailer().send, ("to",), False),
        (Mailer.plain, ("to",), False),
        (wrapped, ("days",), False),
        (print, ("end",), False),
        (dict, ("a",), False),
    ],
)
def test_a_call_that_works_is_not_refused(function, names, takes_context):
    assert why_not_called(function, names, takes_context=takes_context) == ""


@pytest.mark.parametrize(
    ("function", "names", "takes_context", "text"),
    [
        (days_back, (), False, "needs 'days', missing in kwargs"),
        (days_back, ("days", "dryrun"), False, "takes no argument 'dryrun'. Did you mean 'dry_run'?"),
        (days_back, ("x",), False, "takes no argument 'x'. It takes days, dry_run"),
        (nothing, ("x",), False, "takes no argument 'x'. It takes none"),
        (nothing, (), True, "takes no context"),
        (with_context, ("context",), True, "is given 'context', the context, by the scheduler"),
        (with_context, (), False, "Add takes_context=True"),
        (Mailer.send, (), False, "is a method, whose 'self' is missing"),
        (by_position, ("days",), False, "takes no argument 'days'"),
        (by_position, (), False, "takes 'days' by position only"),
        (wrapped, (), False, "needs 'days'"),
    ],
)
def test_a_call_that_would_raise_is_told_with_what_is_wrong(function, names, takes_context, text):
    assert text in why_not_called(function, names, takes_context=takes_context)


@pytest.mark.parametrize(
    ("function", "options", "text"),
    [
        (days_back, {}, "needs 'days'"),
        (days_back, {"kwargs": {"dayz": 3}}, "Did you mean 'days'"),
        (nothing, {"takes_context": True}, "takes no context"),
        (Mailer.send, {}, "is a method"),
        (Mailer.send, {"schedule": Manual()}, "is a method"),
        (days_back, {"schedule": Manual(), "kwargs": {"dayz": 3}}, "Did you mean 'days'"),
    ],
)
def test_a_task_whose_runs_would_raise_is_refused_at_import_with_its_place(function, options, text):
    with pytest.raises(InvalidOption, match=text) as caught:
        register("job", into=Registry(), **{"schedule": Every(60), **options})(function)
    assert f"{__file__}:" in str(caught.value)
    assert "'job'" in str(caught.value)


def test_a_task_without_a_schedule_is_given_its_arguments_later():
    register("job", into=(tasks := Registry()))(days_back)
    with pytest.raises(InvalidOption, match="needs 'days'"):
        tasks.get("job").refuse_call({})
    tasks.get("job").refuse_call({"days": 3})


def test_the_ids_of_a_user_count_as_given():
    def summary(user_id, device_id, agent_id, style="short"):
        pass

    register("job", schedule=OnActivity(), kwargs={"style": "long"}, into=Registry())(summary)
    with pytest.raises(InvalidOption, match="Did you mean 'style'"):
        register("job", schedule=OnActivity(), kwargs={"stile": "long"}, into=Registry())(summary)
