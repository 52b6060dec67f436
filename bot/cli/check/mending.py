"""The remedy for a part that does not answer, by the kind of fault."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from adapters.fault import Fault, fault_of

_SENTENCES: Final[Mapping[Fault, str]] = {
    Fault.NAME: "Correct the host in {address}: its name is not known here (getent hosts NAME).",
    Fault.CLOSED: "Start what should listen there, or correct host and port in {address}.",
    Fault.CUT: "Check the network between this machine and {address}, http against https in it, and "
    "a proxy if it needs one.",
    Fault.SILENT: "Look for a firewall, a proxy or a server that is stuck between here and {address}.",
    Fault.TLS: "Compare http and https and the host in {address} with its certificate; for an "
    "authority of your own {trust}.",
    Fault.CREDENTIAL: "Put the current one into {credential}: it answers, and does not take this one.",
    Fault.RIGHT: "It answers, and does not allow it to whoever comes with {credential}: {right}.",
    Fault.ABSENT: "Correct path and name in {address}: it answers, and has no such place.",
    Fault.LIMIT: "Wait a minute and check again: it answers, and counted too many requests.",
    Fault.BROKEN: "Look at its own log: it answers, and fails. Nothing is to be changed here.",
}


@dataclass(frozen=True, slots=True)
class Mending:
    """The settings of one part that say where it is and how it knows us, by their names.

    `right` is what to do where it knows us and allows too little. `trust` is what to do where its
    certificate authority is not known here.
    """

    address: str
    credential: str
    right: str = "give it the right to read what is asked"
    trust: str = "name that in ca_file beside it"

    def of(self, fault: Fault) -> str:
        """A sentence or two, the most likely remedy first."""
        return _SENTENCES[fault].format(**asdict(self))


SLACK: Final = Mending(
    "[slack] api_base_url",
    "slack.bot_token",
    right="compare the app's scopes with app-manifest.yml and reinstall it",
    trust="add that to those which this machine trusts",
)


def mend_of_slack(error: BaseException) -> str:
    """Of a call that got no answer; empty for one that Slack answered and refused."""
    fault = fault_of(error)
    return SLACK.of(fault) if fault else ""
