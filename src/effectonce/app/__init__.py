"""The only part that knows Celery.

A guarded task has two doors. ``__call__`` is the outer one: it makes the plan of an attempt and decides what Celery
sees at the end (a result, `Retry`, `Ignore`, `Reject` or a failure). ``run`` is the inner one, inside
``autoretry_for`` and the user's own ``__call__``: it claims, opens the transaction, and runs the body. Both are set on
the task's class when it is bound, by one annotation object; tasks without ``once=`` are left as they are.

Every message that the app publishes passes one seam, an instance attribute over ``app.amqp.send_task_message``. There
keys given at the call become headers, links get lasting ids, and a retry is kept back until the body is unwound.

Names of Celery that this package relies on, beyond its documented ones, are listed in
``tests/unit/test_celery_names.py``, which fails when a version changes them.
"""
