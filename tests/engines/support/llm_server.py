"""Child process of ``engines.llm``: serves a model on loopback until a signal.

Arguments: model file, port, API key, ``write`` or ``embed``. Prints a line with its URL when ready.
"""

from __future__ import annotations

import signal
import sys

import xllamacpp


def main(model: str, port: int, key: str, purpose: str) -> None:
    """Serve until SIGTERM."""
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.api_keys = [key]
    params.n_ctx, params.n_parallel = 4096, 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # its threads spin: leave a core free
    params.ui, params.offline, params.cache_prompt = False, True, False
    if purpose == "embed":
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        params.n_batch = params.n_ubatch = 1024
        params.n_parallel = 1  # in a shared batch, texts of this causal model get other vectors than alone
    stop = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    signal.sigwait(stop)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
