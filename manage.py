#!/usr/bin/env python
"""Runs one management command: `manage.py COMMAND --help` tells what each does."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "snackops.settings")
    execute_from_command_line(sys.argv)
