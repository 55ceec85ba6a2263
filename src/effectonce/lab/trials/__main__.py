"""One trial in this process: reads what to do from its first argument, and writes what came out as its last line."""

import json
import sys
from pathlib import Path

from effectonce.lab.trials.one import carry_out

if __name__ == "__main__":
    task = json.loads(sys.argv[1])
    Path(task["folder"], "out.json").write_text(json.dumps(carry_out(**task)))
