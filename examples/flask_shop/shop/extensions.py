"""What the app is made of, without an app."""

from flask_sqlalchemy import SQLAlchemy

from effectonce import EffectOnce

db = SQLAlchemy()
once = EffectOnce(ledger=db.session)
