"""Serves one model file over OpenAI's wire on loopback: `serve.py MODEL PORT CONTEXT`, until it is ended.

Run by the interpreter of the folder that `make test-model` fills, which alone has `xllamacpp`.
"""

import sys
import threading

import xllamacpp  # type: ignore[import-not-found, unused-ignore]


def main() -> None:
    """Blocks. The port is the one given, on 127.0.0.1."""
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.model_alias = "small"
    params.hostnames = ["127.0.0.1"]
    params.port = int(sys.argv[2])
    params.n_ctx = int(sys.argv[3])
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    params.use_jinja = True
    params.warmup = False
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
