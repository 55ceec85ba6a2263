"""Tests of tasks: the pytest plugin, and the conformance suite for stores.

The plugin runs a task again and again, kills it at each point where it touches the outside, delivers it again, and
compares what is left with one clean run. It works for tasks with and without a policy. Importing it imports none of
celery, sqlalchemy, redis and django: faults are put only into libraries that the tests have loaded.
"""

from effectonce.testing.verdict import Finding, NotOnce, Proof

__all__ = ["Finding", "NotOnce", "Proof"]
