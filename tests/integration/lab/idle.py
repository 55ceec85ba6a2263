"""An app whose workers have nothing to do."""

import os

from celery import Celery

app = Celery("idle", broker=os.environ["LAB_BROKER"])
app.conf.broker_connection_retry_on_startup = True
