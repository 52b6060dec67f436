"""Write the simulated packs: `python -m tests.evals FOLDER`."""

import sys
from pathlib import Path

from tests.evals.stacks import CASES, write

for _name in CASES:
    write(Path(sys.argv[1]), _name)
