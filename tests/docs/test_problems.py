"""The reference of problems has each kind with its severity, and no other."""

from scheduler.problems import SEVERITIES
from scheduler.runtime.service import FAILED_ROUNDS
from tests.docs.pages import in_code, page, rows


def test_every_problem_is_documented_with_its_severity_and_no_other() -> None:
    documented = {in_code(row[0])[0]: row[1] for row in rows("reference/problems.md")}
    assert documented == {code: str(severity) for code, severity in SEVERITIES.items()}


def test_how_often_a_thread_fails_before_it_is_told_is_the_real_number() -> None:
    assert FAILED_ROUNDS == 4
    assert "failed four times or more in a row" in page("reference/problems.md")
