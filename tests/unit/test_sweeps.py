"""Which cases of a test are run: all that `.ci/run` plays elsewhere, and of what the README's command runs a sample."""

from types import SimpleNamespace

import pytest

from tests.sweeps import MANY, QUICK_FLOORS, chosen

ROOT = QUICK_FLOORS[0].parent


class Item(SimpleNamespace):
    """A case of a test, as far as it is looked at."""

    __hash__ = object.__hash__

    def get_closest_marker(self, name):
        return self.marks.get(name)

    def iter_markers(self, name):
        return self.parametrized


def cases(count, folder, *parametrized, **marks):
    """The cases of a test in a folder, in their order."""
    path = ROOT / folder / "test_one.py"
    found = [pytest.mark.parametrize("one", values).mark for values in parametrized]
    return [Item(nodeid=f"{path}::test[{n}]", path=path, marks=marks, parametrized=found) for n in range(count)]


def taken(items):
    sample = chosen(items)
    return [number for number, item in enumerate(items) if item in sample]


@pytest.mark.parametrize("folder", ["acceptance", "browser", "faults", "importing", "simulation"])
def test_what_the_readme_does_not_run_is_never_sampled(folder):
    assert taken(cases(30, folder)) == list(range(30))


@pytest.mark.parametrize("folder", ["unit/engine", "contract", "docs"])
def test_of_many_cases_that_the_readme_runs_one_in_three_is_taken(folder):
    assert taken(cases(MANY, folder)) == list(range(MANY))
    assert taken(cases(MANY + 4, folder)) == list(range(0, MANY + 4, 3))


@pytest.mark.parametrize(("count", "ends"), [(1, [0]), (2, [0, 1]), (3, [0, 2]), (30, [0, 29])])
def test_of_an_integration_test_the_two_ends_are_taken(count, ends):
    """The last case differs from the first in each parameter."""
    assert taken(cases(count, "integration/admin")) == ends


def test_of_cases_of_which_some_are_thorough_the_ends_of_the_others_are_taken():
    some = cases(3, "integration") + cases(4, "integration", thorough=pytest.mark.thorough.mark)
    assert taken(some) == [0, 2]


def test_a_mark_says_that_an_integration_test_takes_more():
    assert taken(cases(9, "integration", sweep=pytest.mark.sweep(2).mark)) == [0, 2, 4, 6, 8]


def test_how_much_a_test_plays_is_asked_by_the_option(request, size):
    assert size(1000, quick=40) == (1000 if request.config.getoption("full") else 40)


@pytest.mark.parametrize(("outer", "inner", "fewer"), [(3, 4, 1), (7, 5, 3), (4, 11, 3), (12, 6, 5), (2, 9, 1)])
def test_of_several_parameters_each_value_is_met(outer, inner, fewer):
    numbers = taken(cases(outer * inner, "unit", range(outer), range(inner)))
    assert numbers == list(range(0, outer * inner, fewer)), "all of them where no step meets each value"
    assert {number // inner for number in numbers} == set(range(outer))
    assert {number % inner for number in numbers} == set(range(inner))


def test_a_mark_says_how_many_and_what_is_thorough_is_left_out():
    assert taken(cases(4, "acceptance", sweep=pytest.mark.sweep(2).mark)) == [0, 2]
    assert taken(cases(2, "acceptance", thorough=pytest.mark.thorough.mark)) == []
