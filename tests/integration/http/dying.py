"""A process that serves one request and is killed at the point that EFFECTONCE_CRASH names: ``ledger kind form``."""

import sys

from sqlalchemy.orm import Session

from tests.integration.http.sites import AsgiSite, WsgiSite, orders


def main(ledger: str, kind: str, form: str) -> None:
    """Serve it; a process that lives ends with the answer's status."""
    site = (WsgiSite if kind == "wsgi" else AsgiSite)(ledger).using(lease_seconds=1)
    if form == "own":

        def endpoint(body: bytes) -> tuple[int, bytes]:
            with Session(site.engine) as session, session.begin():
                session.execute(orders.insert().values(number=int(body)))
            return 201, b"order 1"

        site.endpoint = endpoint
    sys.exit(site.post().status)


if __name__ == "__main__":
    main(*sys.argv[1:])
