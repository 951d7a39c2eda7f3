"""What imports from other schedulers is loaded when it is asked for, and none of these are needed."""

import subprocess
import sys

from scheduler.management.transfer.foreign.names import job_name

PROBE = """
import sys
import django
django.setup()
assert not [name for name in sys.modules if name.startswith("scheduler.management")]
from scheduler.management.commands import export_schedules, import_schedules
assert not [name for name in sys.modules if name.startswith("scheduler.management.transfer.foreign")]
from scheduler.management.transfer.sources import SOURCES
from importlib import import_module
for one in SOURCES.values():
    import_module(one.reader.partition(":")[0])
others = ("celery", "django_celery_beat", "django_q", "apscheduler", "django_apscheduler", "pytz")
assert not [name for name in sys.modules if name.split(".")[0] in others]
"""


def test_setup_loads_nothing_of_it_and_no_source_needs_its_package():
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_name_that_a_job_cannot_have_is_changed_and_told():
    assert job_name("nightly") == ("nightly", [])
    assert job_name(" a/b\tc ") == ("a-b c", ["named a-b c here: that name cannot be had"])
    assert job_name("/usr/bin/x")[0] == "usr-bin-x"
    assert job_name("..") == ("", [])
    assert len(job_name("ü" * 300)[0]) == 255
