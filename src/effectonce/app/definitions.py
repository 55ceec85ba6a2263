"""A bad policy fails where its task is defined.

``@app.task`` is lazy: the class is made when the app is finalized, far from the mistake. So the app's own ``task``
looks at the policy first. Tasks of ``@shared_task`` and class-based ones are looked at when they are bound.
"""

import inspect
from functools import wraps
from typing import Any

from effectonce.domain.policies import Policy


def check_when_defined(app: Any) -> None:
    """Let ``app.task`` check a policy against the function at once; raises PolicyInvalid there."""
    plain = app.task
    if hasattr(plain, "_effectonce_checks"):
        return

    @wraps(plain)
    def task(*args: Any, **options: Any) -> Any:
        policy = options.get("once")
        if not isinstance(policy, Policy):
            return plain(*args, **options)
        if len(args) == 1 and callable(args[0]):
            _check(app, policy, args[0], options)
            return plain(*args, **options)
        decorate = plain(*args, **options)

        def checked(function: Any) -> Any:
            _check(app, policy, function, options)
            return decorate(function)

        return checked

    task._effectonce_checks = True  # type: ignore[attr-defined]  # noqa: SLF001 - our own mark
    app.task = task


def _check(app: Any, policy: Policy, function: Any, options: dict[str, Any]) -> None:
    signature = inspect.signature(function)
    if options.get("bind"):
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    name = options.get("name") or app.gen_task_name(function.__name__, function.__module__)
    policy.check(name, signature, body=function)
