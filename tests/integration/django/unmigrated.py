"""The same settings, for those who switch migrations off in their tests."""

from tests.integration.django.settings import *  # noqa: F403 - that is what it is for

MIGRATION_MODULES = {"effectonce": None}
