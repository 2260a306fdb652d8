"""Rerunning, comparing and checking recorded runs."""
