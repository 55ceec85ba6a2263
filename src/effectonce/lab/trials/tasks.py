"""The tasks of a trial: bodies, defined as its contender has it."""

from typing import Any

from effectonce.lab.contenders.contender import Contender
from effectonce.lab.trials.bodies import World, bound, faulty, named, ordinary
from effectonce.lab.trials.place import Place


def define_tasks(app: Any, place: Place, contender: Contender, world: World) -> dict[str, Any]:
    """Define them all; answers them by name."""

    def define(name: str, body: Any, fields: Any, **more: Any) -> Any:
        return contender.task(app, body, name=name, fields=fields, **{**place.task_options, **more})

    bodies = {**ordinary(world, place.edition), **faulty(world), **named(world)}
    tasks = {name: define(name, body, fields) for name, (body, fields) in bodies.items()}
    for name, body in bound(world, tasks["charge"]).items():
        tasks[name] = define(name, body, ["order"], bind=True, leased=name.startswith("hold"))
    tasks["hold"] = define("hold", bodies["slow"][0], ["order"], leased=True)

    def tick() -> str:
        with world.body("tick"):
            return world.act("tick")

    tasks["tick"] = define("tick", tick, [])
    return tasks
