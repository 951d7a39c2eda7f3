"""The command line of the project that the start-up tests run."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "probe.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
