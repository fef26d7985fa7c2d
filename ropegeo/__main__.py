"""`python -m ropegeo`."""

from ropegeo.cli import script

script()
