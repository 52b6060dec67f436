"""Clients of the fakes of AWS: keys of the published examples, and no waiting."""

import httpx

from adapters.aws.credentials import AwsCredentials, AwsKey
from adapters.observe.aws import CLOUDWATCH, CLOUDWATCH_LOGS, Aws

KEY = AwsKey("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
REGION = "eu-central-1"


def cloudwatch_logs(client: httpx.AsyncClient) -> Aws:
    return Aws(CLOUDWATCH_LOGS, client, AwsCredentials(REGION, KEY), REGION, waits_s=(0.0, 0.0))


def cloudwatch(client: httpx.AsyncClient) -> Aws:
    return Aws(CLOUDWATCH, client, AwsCredentials(REGION, KEY), REGION, waits_s=(0.0, 0.0))
