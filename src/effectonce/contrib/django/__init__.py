"""Django: the ledger in a project's own database, on the connection that a task's body uses anyway.

``ledger="django"`` (or ``"django://alias"``) keeps entries in the database of that alias. A `Transactional` body runs
inside ``transaction.atomic(using=alias)``, and the entry is inserted on the same connection: plain ORM writes commit
together with it, and nothing in the body changes. Put ``"effectonce.contrib.django"`` into ``INSTALLED_APPS`` and run
``manage.py migrate``.

`blocks` has the transaction of a body and the ways out of it, `host` what the SQL ledger asks of Django, `checks` the
system checks; `models` and ``migrations/`` are made from the tables of the SQL ledger, so that they cannot differ.
"""
