"""Clients of the stand-ins for AWS: keys of the published examples, and no waiting."""

import httpx

from adapters.observe.aws import Aws
from adapters.sigv4 import AwsKey

KEY = AwsKey("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")


def cloudwatch_logs(client: httpx.AsyncClient) -> Aws:
    return Aws(
        "CloudWatch Logs", client, KEY, region="eu-central-1", service="logs",
        target="Logs_20140328", version="1.1", waits_s=(0.0, 0.0),
    )  # fmt: skip
