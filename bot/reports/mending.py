"""What to do about a part that cannot be asked, by the fault that stands between it and us."""

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
    """Of one part: the settings that say where it is and how it knows us, as people find them.

    `right` is what to do where it knows us and allows too little, `trust` where its authority is not
    known here.
    """

    address: str
    credential: str
    right: str = "give it the right to read what is asked"
    trust: str = "name that in ca_file beside it"

    def of(self, fault: Fault) -> str:
        """A sentence or two, which begin with what is most likely."""
        return _SENTENCES[fault].format(**asdict(self))


SLACK: Final = Mending(
    "[slack] api_base_url",
    "slack.bot_token",
    right="compare the app's scopes with app-manifest.yml and reinstall it",
    trust="add that to those which this machine trusts",
)

# By the names of `bot.cli.check.parts.PARTS` that reach over a network.
BY_PART: Final[Mapping[str, Mending]] = {
    "slack": SLACK,
    "roles": Mending("[roles.*.oncall] url", "its token"),
    "database": Mending(
        "[database] url",
        "user and password of [database] url",
        right="let that user use that database (docs/deploying.md)",
        trust="name that in sslrootcert of the address",
    ),
    "audit places": Mending("that key of [audit]", "its token"),
    "providers": Mending(
        "the address of that [llm.providers.*]",
        "its api_key",
        right="choose a model that it may use, or ask its owner",
    ),
    "observe": Mending("url of that table below [observe]", "its token"),
    "kubernetes": Mending(
        "[kubernetes] or its kubeconfig",
        "the token or certificate of this identity",
        right="docs/operating.md has the role that it needs",
    ),
    "control plane": Mending("[control_plane] info_url", "[control_plane] token"),
    "platform": Mending("[platform] url", "that connection's token"),
    "deploys": Mending("url of that [deploys.*]", "its token"),
    "actions": Mending("the addresses of that [[actions]]", "its token"),
    "adapters": Mending("url of that [adapters.NAME]", "its token"),
    "oidc": Mending("[oidc] issuer or jwks_url", "[oidc]"),
    "otel": Mending("[otel] endpoint (OTLP over HTTP, port 4318)", "[otel] headers"),
    "plugins": Mending("endpoint.url of that manifest", "its auth"),
}


def mend_of_slack(error: BaseException) -> str:
    """Of a call that got no answer; empty for one that Slack answered and refused."""
    fault = fault_of(error)
    return SLACK.of(fault) if fault else ""
