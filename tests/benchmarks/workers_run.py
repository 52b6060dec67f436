"""The service in workers, in a process of its own: `workers_run COUNT CONFIG SPEED`.

With `SPEED`, Slack's real limits on a clock that is so many times as fast; with 0, none.
"""

import sys
from pathlib import Path

from bot.cli.workers import run_workers
from bot.slack.delivery.pacing import Rates
from bot.upkeep.signals import Signals, heeding
from tests.fixtures_slack import faster

if __name__ == "__main__":
    count, config, speed = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    rates = faster(speed) if speed else Rates.unlimited()
    sys.exit(heeding(Signals(), lambda signals: run_workers(config, count, signals, rates=rates)))
