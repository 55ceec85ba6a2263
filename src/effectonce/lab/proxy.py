"""A bad network between a client and a server: a proxy on the loopback interface that loses what it is told to lose.

Faults strike when the client sends certain bytes (``COMMIT``, a publish, the name of a script), or on command. One
thread serves all connections; commands are carried out by that thread and return when they are done.
"""

import contextlib
import ctypes
import enum
import re
import selectors
import socket
import struct
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Self
from urllib.parse import urlsplit

DEADLINE = 60.0
_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)
"""The one instruction of a packet filter: return 0, keep nothing."""


class Fault(enum.Enum):
    """What happens to a request that a rule waits for."""

    NOTHING = enum.auto()
    """It is counted."""

    LOST_REQUEST = enum.auto()
    """The server never sees it; both sides are cut."""

    LOST_REPLY = enum.auto()
    """The server does it; its reply is thrown away, and then both sides are cut."""

    LOST_CLIENT = enum.auto()
    """The client is cut at once; the server is left to finish."""

    LATE_REQUEST = enum.auto()
    """The client is cut at once; the server sees the request when the rule is let go."""

    LATE_REPLY = enum.auto()
    """Both connections stay; replies pass when the rule is let go."""


class Rule:
    """Strikes requests that hold *trigger*, *times* times; with *after*, only later in the same connection."""

    def __init__(self, proxy: "Proxy", trigger: bytes, fault: Fault, *, after: bytes | None, times: float) -> None:
        self.fault = fault
        self.count = 0
        self._proxy = proxy
        self._trigger = re.compile(trigger, re.DOTALL)
        self._after = re.compile(after, re.DOTALL) if after is not None else None
        self._times = times
        self._changed = threading.Condition()
        self.is_gone = False

    def strikes(self, link: "Link", chunk: bytes) -> bool:
        """Tell whether this request is one that the rule waits for, and count it."""
        if self._after is not None and self._after.search(chunk):
            link.armed.add(self)
        armed = self._after is None or self in link.armed
        if self.count >= self._times or not armed or not self._trigger.search(chunk):
            return False
        link.armed.discard(self)
        with self._changed:
            self.count += 1
            self._changed.notify_all()
        return True

    def wait(self, count: int = 1) -> None:
        """Return when it has struck *count* times."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.count >= count, DEADLINE):
                message = f"{self._trigger} was never sent"
                raise TimeoutError(message)

    def let_go(self) -> None:
        """Pass on what was held back, and hold nothing back from here on."""
        self._proxy.do(self._go)

    def _go(self) -> None:
        self.is_gone = True
        for link in [link for link in self._proxy.links if link.fate is self]:
            link.flush()


class Link:
    """One connection of a client and its connection to the server."""

    def __init__(self, proxy: "Proxy", client: socket.socket, server: socket.socket) -> None:
        self.armed: set[Rule] = set()
        self.fate: Rule | None = None
        self._proxy = proxy
        self._client: socket.socket | None = client
        self._server: socket.socket | None = server
        self._request = b""
        self._replies = b""
        proxy.selector.register(client, selectors.EVENT_READ, self._from_client)
        proxy.selector.register(server, selectors.EVENT_READ, self._from_server)

    def _from_client(self) -> None:
        chunk = _received(self._client)
        if not chunk:
            self.cut()
            return
        for rule in self._proxy.rules:
            if rule.strikes(self, chunk):
                self._strike(rule, chunk)
                return
        self._forward(chunk)

    def _strike(self, rule: Rule, chunk: bytes) -> None:
        if rule.fault is Fault.LOST_REQUEST:
            self.cut()
            return
        if rule.fault is not Fault.NOTHING:
            self.fate = rule
        if rule.fault in {Fault.LOST_CLIENT, Fault.LATE_REQUEST}:
            self._drop(self._client)
            self._client = None
        if rule.fault is Fault.LATE_REQUEST and not rule.is_gone:
            self._request = chunk
        else:
            self._forward(chunk)

    def _from_server(self) -> None:
        chunk = _received(self._server)
        late = self.fate is not None and self.fate.fault is Fault.LATE_REPLY
        if not chunk or (self.fate is not None and not late):
            self.cut()
            return
        self._replies += chunk
        if self.fate is None or self.fate.is_gone:
            self.flush()

    def flush(self) -> None:
        """Send on what is held."""
        self._forward(self._request)
        replies, self._request, self._replies = self._replies, b"", b""
        self._send(self._client, replies)

    def _forward(self, chunk: bytes) -> None:
        self._send(self._server, chunk)

    def _send(self, to: socket.socket | None, chunk: bytes) -> None:
        try:
            if to is not None and chunk:
                to.sendall(chunk)
        except OSError:
            self.cut()

    def cut(self, *, reset: bool = False) -> None:
        """End both connections, politely or not."""
        self._proxy.links.discard(self)
        self._drop(self._client, reset=reset)
        self._drop(self._server, reset=reset)
        self._client = self._server = None

    def forget(self) -> None:
        """Lose each packet from here on, in both directions; neither side is told."""
        for side in (self._client, self._server):
            if side is not None:
                self._proxy.selector.unregister(side)
                _deafen(side)
        self._proxy.forgotten += [side for side in (self._client, self._server) if side is not None]
        self._client = self._server = None
        self._proxy.links.discard(self)

    def _drop(self, side: socket.socket | None, *, reset: bool = False) -> None:
        if side is not None:
            self._proxy.selector.unregister(side)
            _close(side, reset=reset)


class Proxy:
    """Stands before the server of *url*; its own ``url`` is what the client gets."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        if place.port is None:
            message = "the URL names no port"
            raise ValueError(message)
        self._place = (place.hostname, place.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.url = url.replace(f":{place.port}/", f":{self.port}/")
        self.selector = selectors.DefaultSelector()
        self.rules: list[Rule] = []
        self.links: set[Link] = set()
        self.forgotten: list[socket.socket] = []
        self.refused = 0
        self._refusing = self._closing = False
        self._commands: list[tuple[Callable[[], None], Future[None]]] = []
        self._bell, self._ear = socket.socketpair()
        self.selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self.selector.register(self._ear, selectors.EVENT_READ, self._obey)
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cut everything and end."""
        self.do(self._end)
        self._thread.join(DEADLINE)

    def when(self, trigger: bytes, fault: Fault, *, after: bytes | None = None, times: float = 1) -> Rule:
        """Let *fault* strike the next *times* requests that match *trigger*."""
        rule = Rule(self, trigger, fault, after=after, times=times)
        self.do(lambda: self.rules.append(rule))
        return rule

    def heal(self) -> None:
        """Drop all rules and let connections in again."""
        self.do(self._heal)

    def refuse(self) -> None:
        """Let no new connection in."""
        self.do(self._refuse)

    def cut(self, *, reset: bool = False) -> None:
        """End all connections that there are."""
        self.do(lambda: self._each(lambda link: link.cut(reset=reset)))

    def forget(self) -> None:
        """Lose each packet of the connections that there are, as a firewall does with those it has forgotten."""
        self.do(lambda: self._each(Link.forget))

    def do(self, command: Callable[[], None]) -> None:
        """Carry *command* out in the proxy's thread, and return when it is done."""
        done: Future[None] = Future()
        self._commands.append((command, done))
        self._bell.send(b"!")
        done.result(DEADLINE)

    def _each(self, command: "Callable[[Link], None]") -> None:
        for link in list(self.links):
            command(link)

    def _run(self) -> None:
        while not self._closing:
            for key, _ in self.selector.select():
                if isinstance(key.fileobj, socket.socket) and key.fileobj.fileno() >= 0:  # not closed meanwhile
                    key.data()

    def _obey(self) -> None:
        self._ear.recv(1)
        command, done = self._commands.pop(0)
        try:
            command()
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            done.set_exception(error)
        else:
            done.set_result(None)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if self._refusing:
            self.refused += 1
            _close(client, reset=True)
            return
        try:
            server = socket.create_connection(self._place, timeout=5)
        except OSError:
            _close(client, reset=True)
            return
        for side in (client, server):
            side.settimeout(5)
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.links.add(Link(self, client, server))

    def _refuse(self) -> None:
        self._refusing = True

    def _heal(self) -> None:
        self.rules.clear()
        self._refusing = False

    def _end(self) -> None:
        for link in list(self.links):
            link.cut()
        for side in [*self.forgotten, self._listener, self._ear, self._bell]:
            _close(side, reset=False)
        self.selector.close()
        self._closing = True


def _received(side: socket.socket | None) -> bytes:
    try:
        return side.recv(65536) if side is not None else b""
    except OSError:
        return b""


def _close(side: socket.socket, *, reset: bool) -> None:
    if reset:
        with contextlib.suppress(OSError):
            side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    side.close()


def _deafen(side: socket.socket) -> None:
    """Have the system drop each packet that arrives, unacknowledged (Linux)."""
    program = ctypes.create_string_buffer(_DROP_ALL)
    side.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(program)))
