"""What can be read of products, of recorded metrics; real servers keep the same contract."""

import pytest

from adapters.recorded.player.metrics import RecordedMetrics
from adapters.recorded.simulator.backends import SimulatedSeries
from tests.fakes.set_clock import SetClock
from tests.fixtures_metrics_contract import contract_dataset
from tests.fixtures_signals_contract import SignalsContract
from tools.capabilities import Metrics


class TestRecordedSignals(SignalsContract):
    @pytest.fixture
    def metrics(self) -> Metrics:
        return RecordedMetrics(
            SimulatedSeries(contract_dataset(self.NOW), SetClock(self.NOW)), SetClock(self.NOW)
        )
