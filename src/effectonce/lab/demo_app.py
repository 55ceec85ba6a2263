"""The app of the demo's workers, as ``celery -A effectonce.lab.demo_app worker`` loads it."""

from effectonce.lab.place import Place
from effectonce.lab.shop import open_shop

app = open_shop(Place.from_environment()).app
