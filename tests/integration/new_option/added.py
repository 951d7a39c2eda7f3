"""The three places of an option, as docs/contributing/a-job-option.md names them."""

ADDED = {
    "scheduler/policy/base.py": ("    max_runs: int", "    patience: timedelta | None = None\n"),
    "scheduler/options.py": ("    max_runs: int", "    patience: Duration | None\n"),
    "scheduler/admin/jobs/policy_options.py": (
        '        Option("timeout"',
        '        Option("patience", _("Patience"), _("How long it waits.")),\n',
    ),
}
"""What is added to which file, before which line."""
