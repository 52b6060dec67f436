"""The remedy for a part that does not answer, by the kind of fault."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from adapters.fault import Fault, fault_of

_SENTENCES: Final[Mapping[Fault, str]] = {
    Fault.NAME: "This machine cannot resolve the host name (try getent hosts NAME). Correct it in {address}.",
    Fault.CLOSED: "Connection refused. Start the server, or correct host and port in {address}.",
    Fault.CUT: "Check the network to {address}, whether it must be http or https, and whether it "
    "needs a proxy.",
    Fault.SILENT: "No answer. Check the server of {address}, the way to it (firewall, proxy), and the load of this machine.",
    Fault.TLS: "TLS failed. Check https and the host name in {address} against the certificate. "
    "For a private CA, {trust}.",
    Fault.CREDENTIAL: "The server rejects the credential. Put the current one into {credential}.",
    Fault.RIGHT: "The server denies access to {credential}: {right}.",
    Fault.ABSENT: "The server answers 'not found'. Correct path and name in {address}.",
    Fault.LIMIT: "The server limits requests. Wait a minute and check again.",
    Fault.BROKEN: "The server returns errors. Check its log; nothing needs to change here.",
}


@dataclass(frozen=True, slots=True)
class Mending:
    """The settings of one part that say where it is and how it knows us, by their names.

    `right` is what to do where it knows us and allows too little. `trust` is what to do where its
    certificate authority is not known here.
    """

    address: str
    credential: str
    right: str = "give it read access"
    trust: str = "set ca_file beside it"

    def of(self, fault: Fault) -> str:
        """A sentence or two, the most likely remedy first."""
        return _SENTENCES[fault].format(**asdict(self))


SLACK: Final = Mending(
    "[slack] api_base_url",
    "slack.bot_token",
    right="compare the app's scopes with app-manifest.yml and reinstall it",
    trust="add the CA to this machine's trust store",
)


def mend_of_slack(error: BaseException) -> str:
    """Of a call that got no answer; empty for one that Slack answered and refused."""
    fault = fault_of(error)
    return SLACK.of(fault) if fault else ""
