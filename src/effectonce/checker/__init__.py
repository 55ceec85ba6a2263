"""Finds the duplicates before they happen: reads code and deployment files, runs neither.

`Survey` is what is known of a project: its tasks with their settings, what each task reaches, where tasks are sent
from, which processes a deployment starts. A rule asks the survey and yields places. A run joins rules, options and
baselines; a report writes the findings down. Nothing here imports what it checks.
"""
