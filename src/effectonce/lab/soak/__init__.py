"""The soak of `effectonce lab --soak`: random deaths for as long as one likes, on random systems, and then a count.

`plan` draws everything from a seed: which broker and store, which orders, which blows and when. `system` puts one
round's broker, store and workers up. `tasks` is its app (`soak_app` as workers load it) and `outside` what its bodies
do outside of every database. `caller` sends and repeats, `blows` strike, `course` lets one round take place. `judge`
counts effects where nothing hinders a second one, `report` adds the rounds up and says what follows.
"""

from effectonce.lab.soak.soak import run

__all__ = ["run"]
