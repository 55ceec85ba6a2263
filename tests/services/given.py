"""A server that somebody else runs, named by a URL in the environment: used as it is.

Nothing here can kill or stop it, and nothing that it holds is removed: tests get places that were found empty.
"""

import itertools
import os
from urllib.parse import urlsplit

import psycopg
import pymysql
import redis
from psycopg import sql
from sqlalchemy import make_url

from effectonce.lab.servers.faults import ServiceMissing


class Given:
    """A server at *url*; what would end it raises ``ServiceMissing``."""

    def __init__(self, url: str, *, variable: str) -> None:
        self.url = url
        self.variable = variable

    def fresh_url(self) -> str:
        """Return the URL itself: nothing better can be had from outside."""
        return self.url

    def put_back(self, url: str) -> None:
        """Leave everything as it is."""


class GivenRedis(Given):
    """A Redis of somebody else: tests get only numbered databases that were found empty."""

    def fresh_url(self) -> str:
        """Return the address of an empty database; never one that holds anything."""
        base = self.url.rpartition("/")[0] if urlsplit(self.url).path else self.url
        for number in itertools.count(1):
            url = f"{base}/{number}"
            with redis.Redis.from_url(url) as client:
                try:
                    if client.dbsize() == 0:
                        return url
                except redis.ResponseError as fault:
                    message = f"{self.variable}: every numbered database holds something; tests empty none"
                    raise ServiceMissing(message) from fault
        raise AssertionError

    def put_back(self, url: str) -> None:
        """Remove what a test left in a database that ``fresh_url`` gave."""
        with redis.Redis.from_url(url) as client:
            client.flushdb()


class GivenPostgreSQL(Given):
    """A PostgreSQL of somebody else: tests get databases that are made for them."""

    _numbers = itertools.count(1)

    def fresh_url(self) -> str:
        """Return the address of a new, empty database beside the given one."""
        name = f"once_{os.getpid()}_{next(self._numbers)}"
        self._run("create database {}", name)
        return urlsplit(self.url)._replace(path=f"/{name}", scheme="postgresql+psycopg").geturl()

    def put_back(self, url: str) -> None:
        """Remove a database that ``fresh_url`` gave."""
        self._run("drop database if exists {} with (force)", urlsplit(url).path.lstrip("/"))

    def _run(self, statement: str, name: str) -> None:
        plain = urlsplit(self.url)._replace(scheme="postgresql").geturl()
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(sql.Identifier(name)))


class GivenMariaDB(Given):
    """A MariaDB of somebody else: tests get databases that are made for them."""

    _numbers = itertools.count(1)

    def fresh_url(self) -> str:
        """Return the address of a new, empty database beside the given one."""
        name = f"once_{os.getpid()}_{next(self._numbers)}"
        self._run(f"create database {name}")
        url = make_url(self.url).set(database=name, drivername="mariadb+pymysql")
        return url.render_as_string(hide_password=False)

    def put_back(self, url: str) -> None:
        """Remove a database that ``fresh_url`` gave."""
        self._run(f"drop database if exists {make_url(url).database}")

    def _run(self, statement: str) -> None:
        url = make_url(self.url)
        with (
            pymysql.connect(
                host=url.host or "localhost",
                port=url.port or 3306,
                user=url.username,
                password=url.password or "",
                autocommit=True,
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
