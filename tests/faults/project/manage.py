"""The command line of the project that the fault suite runs."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rig.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
