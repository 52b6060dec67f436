"""AWS credentials and request signing, by botocore (the extra `kortex[aws]`)."""
