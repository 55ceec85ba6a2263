"""Tests that need no server and no second process."""
