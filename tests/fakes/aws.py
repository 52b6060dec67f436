"""Clients of the stand-ins for AWS: keys of the published examples, and no waiting."""

import httpx

from adapters.observe.aws import CLOUDWATCH, CLOUDWATCH_LOGS, Aws
from adapters.sigv4 import AwsKey

KEY = AwsKey("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
REGION = "eu-central-1"


def cloudwatch_logs(client: httpx.AsyncClient) -> Aws:
    return Aws(CLOUDWATCH_LOGS, client, KEY, REGION, waits_s=(0.0, 0.0))


def cloudwatch(client: httpx.AsyncClient) -> Aws:
    return Aws(CLOUDWATCH, client, KEY, REGION, waits_s=(0.0, 0.0))
