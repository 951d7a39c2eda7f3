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


@pytest.mark.parametrize("folder", ["unit/engine", "contract", "integration/admin", "docs"])
def test_of_many_cases_that_the_readme_runs_one_in_three_is_taken(folder):
    assert taken(cases(MANY, folder)) == list(range(MANY))
    assert taken(cases(MANY + 4, folder)) == list(range(0, MANY + 4, 3))


@pytest.mark.parametrize(("outer", "inner", "fewer"), [(3, 4, 1), (7, 5, 3), (4, 11, 3), (12, 6, 5), (2, 9, 1)])
def test_of_several_parameters_each_value_is_met(outer, inner, fewer):
    numbers = taken(cases(outer * inner, "unit", range(outer), range(inner)))
    assert numbers == list(range(0, outer * inner, fewer)), "all of them where no step meets each value"
    assert {number // inner for number in numbers} == set(range(outer))
    assert {number % inner for number in numbers} == set(range(inner))


def test_a_mark_says_how_many_and_what_is_thorough_is_left_out():
    assert taken(cases(4, "acceptance", sweep=pytest.mark.sweep(2).mark)) == [0, 2]
    assert taken(cases(2, "acceptance", thorough=pytest.mark.thorough.mark)) == []
