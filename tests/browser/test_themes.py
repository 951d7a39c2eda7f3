"""Another theme names rows otherwise, and folds nothing: the form of a job stays usable."""

from tests.browser.conftest import ROOT

PLAIN = """
document.querySelectorAll("form .form-row").forEach((row) => { row.className = "form-row grp-row"; });
document.querySelectorAll("fieldset.sched-folded").forEach((group) => {
  const details = group.querySelector("details"), heading = group.querySelector("h2");
  details.replaceWith(heading, ...[...details.children].filter((one) => one.tagName !== "SUMMARY"));
});
"""
SHOWN = """
return [...document.querySelectorAll("form [name]")].filter((one) => one.checkVisibility()).map((one) => one.name);
"""
SCRIPT = ROOT / "scheduler" / "static" / "scheduler" / "admin.js"


def test_the_form_shows_one_kind_and_folds_policies_with_the_rows_of_another_theme(boss):
    boss.go("scheduler/job/add/")
    own = boss.run(SHOWN)
    boss.run(PLAIN)
    assert "policy_overlap" in boss.run(SHOWN), "the theme of the test is none"
    assert "expression" not in boss.run(SHOWN), "which fields a kind has is known without a script"
    boss.run(SCRIPT.read_text())
    assert boss.run(SHOWN) == own
    boss.click("[name=kind][value=cron]")
    assert "expression" in boss.run(SHOWN)
    assert "interval_preset" not in boss.run(SHOWN)
    boss.click(".sched-folded summary")
    assert "policy_overlap" in boss.run(SHOWN)
