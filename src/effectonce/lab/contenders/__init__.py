"""The columns of the lab: who tries to make a task take effect once."""

from typing import Final

from effectonce.lab.contenders.contender import Contender
from effectonce.lab.contenders.guarded import Guarded
from effectonce.lab.contenders.locks import CeleryOnce, CeleryOnceTask, CelerySingleton, Heimdall
from effectonce.lab.contenders.plain import Deduplicating, LeasedBeat, Plain, RedBeat

OURS: Final = "effectonce"

CONTENDERS: Final[dict[str, Contender]] = {
    each.name: each
    for each in (
        Plain(),
        Deduplicating(),
        Guarded(),
        CeleryOnce(),
        CelerySingleton(),
        Heimdall(),
        CeleryOnceTask(),
        RedBeat(),
        LeasedBeat(),
    )
}
