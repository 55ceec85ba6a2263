"""Which apps of this process are guarded, for whoever looks at all of them: a framework's checks and pages."""

from typing import TYPE_CHECKING

from celery._state import _get_active_apps

from effectonce.domain.policies import Transactional

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce


def installed() -> "list[EffectOnce]":
    """The EffectOnce of each Celery app that lives in this process, in the order of the apps' names."""
    found = [app.effectonce for app in _get_active_apps() if hasattr(app, "effectonce")]
    return sorted(found, key=lambda once: str(once.app.main))


def tasks_in_transactions(once: "EffectOnce") -> list[str]:
    """Names of the tasks known so far whose bodies run in a transaction of the ledger; none is loaded for it."""
    tasks = once.app._tasks.items()  # noqa: SLF001 - `tasks` would finalize the app; listed in test_celery_names
    return sorted(name for name, task in tasks if isinstance(getattr(task, "once", None), Transactional))
