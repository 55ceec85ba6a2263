"""The app of a trial's workers and beats, as ``celery -A effectonce.lab.trials.worker_app`` loads it."""

from effectonce.lab.trials.app import open_laboratory
from effectonce.lab.trials.place import Place

app = open_laboratory(Place.from_environment()).app
