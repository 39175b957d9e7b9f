"""How the commands print their help."""

import argparse

from django.core.management.base import DjangoHelpFormatter


class HelpLines(DjangoHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the epilog."""
