"""A deadlock in MariaDB, over a table ``pair (id, x)`` with the rows 1 and 2, that the body on *connection* loses."""

import threading
import time
from contextlib import suppress

import pytest
import sqlalchemy as sa


def deadlock(connection: sa.Connection, engine: sa.Engine) -> None:
    """Make the server roll a body's transaction back: the other one has written more, so it goes on."""
    with engine.connect() as other:
        other.exec_driver_sql("insert into pair select seq + 10, 0 from seq_1_to_200")
        other.exec_driver_sql("update pair set x = 1 where id = 2")
        connection.exec_driver_sql("update pair set x = 1 where id = 1")
        waiting = threading.Thread(target=_in_turn, args=(other,))
        waiting.start()
        _until_it_waits(engine)
        with suppress(sa.exc.OperationalError):
            connection.exec_driver_sql("update pair set x = 2 where id = 2")
            pytest.fail("the server saw no deadlock")
        waiting.join(30)
        other.rollback()


def _in_turn(other: sa.Connection) -> None:
    other.exec_driver_sql("update pair set x = 1 where id = 1")


def _until_it_waits(engine: sa.Engine) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with engine.connect() as asking:
            if asking.exec_driver_sql("select count(*) from information_schema.innodb_lock_waits").scalar():
                return
    pytest.fail("nobody waits")
