"""Write the simulated packs: `python -m tests.evals FOLDER [--shapes N] [--alarms N]`."""

import argparse
from pathlib import Path

from tests.evals.alarms import write_alarms
from tests.evals.shapes import write_shapes
from tests.evals.stacks import CASES, write

_parser = argparse.ArgumentParser(description=__doc__)
_parser.add_argument("folder", type=Path)
_parser.add_argument(
    "--shapes",
    type=int,
    default=0,
    metavar="N",
    help="instead: N cases of eight series with one changed shape, and N quiet ones",
)
_parser.add_argument(
    "--alarms",
    type=int,
    default=0,
    metavar="N",
    help="instead: systems with one fault of any age, and healthy ones, each by N seeds",
)
_asked = _parser.parse_args()
if _asked.alarms:
    write_alarms(_asked.folder, _asked.alarms)
elif _asked.shapes:
    write_shapes(_asked.folder, _asked.shapes)
else:
    for _name in CASES:
        write(_asked.folder, _name)
