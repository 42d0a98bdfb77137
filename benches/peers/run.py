"""One peer does one piece of work and prints one JSON object.

    python run.py PEER ITEM --data FOLDER --model FILE [--epochs N] [--betas N]

`seconds` is the time of the work alone: data and parameters are in memory, in the form the peer wants, and
whatever is compiled has been compiled. `check` is what the work produced, to be held against the others'.
"""

import argparse
import importlib
import json
import sys

import work

PEERS = {
    "sklearn-f64": ("peer_sklearn", "float64"),
    "sklearn-f32": ("peer_sklearn", "float32"),
    "numpy": ("peer_numpy", "float32"),
    "torch": ("peer_torch", "float32"),
    "jax": ("peer_jax", "float32"),
    "rbms": ("peer_rbms", "float32"),
    "learnergy": ("peer_learnergy", "float32"),
    "harmonium": ("peer_harmonium", "float32"),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("item", choices=["train", "sample", "features", "score", "ais", "dbm"])
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--made", help="what harmonium wrote, to be checked; of a peer that learns a DBM, where to write it")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--betas", type=int, default=1000)
    args = parser.parse_args()

    module, dtype = PEERS[args.peer]
    peer = importlib.import_module(module)
    do = getattr(peer, args.item)
    seconds, check = do(work.Work(args, dtype))
    json.dump({"seconds": seconds, "check": check}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
