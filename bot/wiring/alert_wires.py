"""The senders of alerts that are let in. Each is imported where its secret is set: few bots hear of more than one."""

from collections.abc import Iterator

from bot.alerts.wire import AlertWire
from bot.settings.model import Settings


def alert_wires(settings: Settings) -> tuple[AlertWire, ...]:
    """Those whose secret is set in `[http]`."""
    return tuple(_let_in(settings))


def _let_in(settings: Settings) -> Iterator[AlertWire]:
    http = settings.http
    if token := http.alertmanager_token.get_secret_value():
        from bot.alerts.alertmanager import ALERTMANAGER, GroupWire

        yield GroupWire(ALERTMANAGER, token)
    if token := http.grafana_token.get_secret_value():
        from bot.alerts.alertmanager import GRAFANA, GroupWire

        yield GroupWire(GRAFANA, token)
    if secret := http.pagerduty_secret.get_secret_value():
        from bot.alerts.pagerduty import PagerDutyWire

        yield PagerDutyWire(secret)
    if token := http.cloudevents_token.get_secret_value():
        from bot.alerts.cloudevents import CloudEventsWire

        yield CloudEventsWire(token)
