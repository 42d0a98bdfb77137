"""ln Z and marginals of UAI files by the junction tree of dwave-samplers, one JSON object for each file.

The file is read and the model built before the clock starts.
"""

import json
import sys
import time

import dimod
from dwave.samplers import TreeDecompositionSampler


def read(path):
    """A binary quadratic model whose energy is minus the logarithm of the product of all factors."""
    words = iter(open(path).read().split())
    assert next(words).lower() == "markov"
    n = int(next(words))
    assert all(int(next(words)) == 2 for _ in range(n))
    scopes = []
    for _ in range(int(next(words))):
        size = int(next(words))
        scopes.append([int(next(words)) for _ in range(size)])
    model = dimod.BinaryQuadraticModel({i: 0.0 for i in range(n)}, {}, 0.0, "BINARY")
    from math import log

    for scope in scopes:
        energy = [-log(float(next(words))) for _ in range(int(next(words)))]
        model.offset += energy[0]
        if len(scope) == 1:
            model.add_linear(scope[0], energy[1] - energy[0])
        elif len(scope) == 2:
            i, j = scope
            model.add_linear(j, energy[1] - energy[0])
            model.add_linear(i, energy[2] - energy[0])
            model.add_quadratic(i, j, energy[3] - energy[2] - energy[1] + energy[0])
    return model


def main():
    import resource

    for path in sys.argv[1:]:
        model = read(path)
        started = time.perf_counter()
        try:
            found = TreeDecompositionSampler().sample(model, num_reads=1, marginals=True, seed=1)
        except Exception as error:  # what it says is part of the comparison
            print(json.dumps({"path": path, "error": str(error)}), flush=True)
            continue
        seconds = time.perf_counter() - started
        marginals = found.info["variable_marginals"]
        print(
            json.dumps(
                {
                    "path": path,
                    "seconds": seconds,
                    "log_z": found.info["log_partition_function"],
                    "marginals": [marginals[i] for i in range(len(marginals))],
                    "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                }
            ),
            flush=True,
        )


main()
