"""The Lua scripts as a client runs them: by digest, sent in full only to a server that does not know them yet."""

from importlib.resources import files
from typing import Any

from redis.commands.core import Script

_FOLDER = files(__package__)
_PRELUDE = "entry"


class Scripts:
    """Each script of this folder, registered at one client; its file says its KEYS, ARGV and answers."""

    def __init__(self, client: Any) -> None:
        def script(name: str) -> Script:
            made: Script = client.register_script(_source(_PRELUDE) + _source(name))
            return made

        self.claim = script("claim")
        self.complete = script("complete")
        self.release = script("release")
        self.renew = script("renew")
        self.follow = script("follow")
        self.reserve = script("reserve")
        self.give_back = script("give_back")
        self.poison = script("poison")
        self.hold = script("hold")
        self.continued = script("continued")
        self.unknown = script("unknown")
        self.read = script("read")
        self.due = script("due")
        self.rescue = script("rescue")
        self.begin_step = script("begin_step")
        self.end_step = script("end_step")
        self.cancel_step = script("cancel_step")
        self.steps = script("steps")
        self.settle = script("settle")
        self.free = script("free")
        self.redact = script("redact")
        self.see = script("see")
        self.probe = script("probe")
        self.reading = frozenset({self.read, self.due, self.steps, self.probe})


class BeatScripts:
    """The scripts of terms and ticks."""

    def __init__(self, client: Any) -> None:
        def script(name: str) -> Script:
            made: Script = client.register_script(_source("term") + _source(name))
            return made

        self.win = script("term_win")
        self.renew = script("term_renew")
        self.resign = script("term_resign")
        self.claim = script("tick_claim")
        self.mark = script("tick_mark")


def _source(name: str) -> str:
    return _FOLDER.joinpath(f"{name}.lua").read_text("utf-8")
