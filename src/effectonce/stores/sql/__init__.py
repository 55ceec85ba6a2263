"""A ledger in a SQL database, through SQLAlchemy Core.

Two connections of the same database may want one key. Who holds it is told by a *try-lock* of the database that
ends with its transaction and is never waited for: PostgreSQL's advisory lock of the key's digest, SQLite's one write
lock of the file. A first `Transactional` delivery inserts its entry as completed under the lock, in the work's own
transaction: nobody sees it before the commit, and a death leaves nothing. Everything else is a short transaction of
its own, whose statements are conditional on fence and attempt.

Time is the database's clock, as whole microseconds since 1970. `statements` holds every statement, `dialects` what
differs, `work` the transaction of a body, `escapes` how a body may not leave it.
"""
