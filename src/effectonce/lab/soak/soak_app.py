"""The app of a soak's workers, as ``celery -A effectonce.lab.soak.soak_app worker`` loads it."""

from effectonce.lab.soak.tasks import Site, open_app

app = open_app(Site.from_environment())[0]
