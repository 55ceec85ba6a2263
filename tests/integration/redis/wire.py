"""What is sent to Redis."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from redis.connection import Connection


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Each time that something is sent."""
    sent: list[object] = []
    send = Connection.send_packed_command

    def counting(connection: Connection, command: object, *, check_health: bool = True) -> None:
        sent.append(command)
        send(connection, command, check_health)  # type: ignore[no-untyped-call]

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "send_packed_command", counting)
        yield sent
