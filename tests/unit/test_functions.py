"""Whether two functions are one: a second one under a name must not replace the first unsaid."""

import importlib
import sys
from functools import lru_cache, partial, wraps

import pytest

from scheduler.exceptions import DuplicateTask
from scheduler.functions import same_function
from scheduler.registry import Registry, register


class Shop:
    def report(self): ...


def called(function): ...


class Options:
    """A value that is equal to itself only."""


def report(city, *, options=None): ...


def other(city): ...


def of_default(city):
    def named(city=city): ...

    return named


def of_keyword_default(city):
    def named(*, city=city): ...

    return named


def of_closure(city):
    def named():
        return city

    return named


def wrapped(function, city):
    @wraps(function)
    def named():
        return function(city)

    return named


def timed(function):
    def named():
        return function()

    return named


def later():
    def named():
        return unknown

    if not named:
        unknown = None
    return named


def itself():
    def named():
        return named

    return named


SHOP = Shop()
DIFFERENT = {
    "partials": (partial(report, "berlin"), partial(report, "paris")),
    "keywords of partials": (partial(report, city="berlin"), partial(report, city="paris")),
    "partials of partials": (partial(partial(report, "berlin")), partial(partial(report, "paris"))),
    "partials of functions": (partial(called, report), partial(called, other)),
    "a partial and what it is of": (report, partial(report, "paris")),
    "bound methods": (Shop().report, Shop().report),
    "a method and its function": (Shop().report, partial(Shop.report, SHOP)),
    "default arguments": (of_default("berlin"), of_default("paris")),
    "keyword-only defaults": (of_keyword_default("berlin"), of_keyword_default("paris")),
    "closures": (of_closure("berlin"), of_closure("paris")),
    "wrappers with other arguments": (wrapped(report, "berlin"), wrapped(report, "paris")),
    "other wrappers": (wrapped(report, "berlin"), partial(wrapped(report, "berlin"))),
    "one wrapper of two functions": (timed(report), timed(other)),
    "closures of themselves": (itself(), itself()),
    "closures of what is still to come": (later(), later()),
    "other functions": (report, other),
    "callable objects": (Options, Shop),
}
SAME = {
    "the same function": lambda: report,
    "a partial": lambda: partial(report, "berlin", options={"days": [1, 2]}),
    "a partial with functions in it": lambda: partial(report, of_default("berlin")),
    "a method of one object": lambda: SHOP.report,
    "a wrapper": lambda: wrapped(report, "berlin"),
    "a wrapper that hides what it wraps": lambda: timed(report),
    "defaults": lambda: of_default("berlin"),
    "a cached function": lambda: lru_cache(report),
}


@pytest.mark.parametrize("one", DIFFERENT)
def test_two_functions_of_one_name_are_refused(one):
    tasks = Registry()
    first, second = DIFFERENT[one]
    register("report", into=tasks)(first)
    with pytest.raises(DuplicateTask):
        register("report", into=tasks)(second)
    assert tasks.get("report").function is first


@pytest.mark.parametrize("one", SAME)
def test_what_is_made_twice_alike_is_one_function(one):
    assert same_function(SAME[one](), SAME[one]())


MODULE = """
from functools import partial, wraps

from tests.unit.test_functions import Options, report as elsewhere, timed, wrapped

class OwnShop:
    def report(self): ...

def report(city, options=Options()): ...

def made(city):
    def named(city=city, options=Options()):
        return city
    return named

def own_wrapper(function, options):
    @wraps(function)
    def named():
        return function(options)
    return named

def hidden(function):
    def named():
        return function()
    return named

FUNCTIONS = {
    "plain": report,
    "partial": partial(report, Options()),
    "method": OwnShop().report,
    "lambda": lambda: None,
    "factory": made("berlin"),
    "wrapped": wrapped(report, Options()),
    "own wrapper": own_wrapper(elsewhere, Options()),
    "hidden": hidden(made("berlin")),
    "hidden elsewhere": timed(report),
}
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Import the module of this name, from the one file that there is."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "tasks.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "app")
    names = ("app.tasks", "app", "tasks")
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)


KINDS = ["plain", "partial", "method", "lambda", "factory", "wrapped", "own wrapper", "hidden", "hidden elsewhere"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_imported_under_two_names_has_each_function_once_Q1(module, kind):
    assert same_function(module("app.tasks").FUNCTIONS[kind], module("tasks").FUNCTIONS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_that_is_loaded_again_has_the_same_functions(module, kind):
    first = module("tasks").FUNCTIONS[kind]
    assert same_function(first, importlib.reload(module("tasks")).FUNCTIONS[kind])
