"""Write the simulated packs: `python -m tests.evals FOLDER [--shapes N] [--alarms N] [--odd]`."""

import argparse
from pathlib import Path

from tests.evals.alarms import write_alarms
from tests.evals.odd_names import write_odd
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
_parser.add_argument(
    "--odd",
    action="store_true",
    help="instead: five systems whose names say nothing, with faults that are easy to miss",
)
_asked = _parser.parse_args()
if _asked.odd:
    write_odd(_asked.folder)
elif _asked.alarms:
    write_alarms(_asked.folder, _asked.alarms)
elif _asked.shapes:
    write_shapes(_asked.folder, _asked.shapes)
else:
    for _name in CASES:
        write(_asked.folder, _name)
