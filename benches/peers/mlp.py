"""Steps of a dropout net 784-1024-1024-10, batch 100, by PyTorch: milliseconds for each, without the first ones.

usage: mlp.py DATA THREADS STEPS [compile]
"""
import gzip
import json
import sys
import time

import numpy as np
import torch

folder, threads, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
torch.manual_seed(0)
with gzip.open(f"{folder}/train-images-idx3-ubyte.gz") as f:
    images = np.frombuffer(f.read(), np.uint8, offset=16).reshape(-1, 784)
with gzip.open(f"{folder}/train-labels-idx1-ubyte.gz") as f:
    labels = np.frombuffer(f.read(), np.uint8, offset=8)
x = torch.from_numpy(images.astype(np.float32) / 255)
y = torch.from_numpy(labels.astype(np.int64))
nn = torch.nn
net = nn.Sequential(
    nn.Dropout(0.2), nn.Linear(784, 1024), nn.ReLU(),
    nn.Dropout(0.5), nn.Linear(1024, 1024), nn.ReLU(),
    nn.Dropout(0.5), nn.Linear(1024, 10),
)
limit = 2.0
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
loss = nn.CrossEntropyLoss()


def learn(n):
    order = torch.randperm(len(x))
    for step in range(n):
        rows = order[step * 100:(step + 1) * 100]
        optimizer.zero_grad(set_to_none=True)
        loss(net(x[rows]), y[rows]).backward()
        optimizer.step()
        with torch.no_grad():
            for layer in net:
                if isinstance(layer, nn.Linear):
                    layer.weight.renorm_(2, 0, limit)


learn(10)
start = time.perf_counter()
learn(steps)
print(json.dumps({"milliseconds": (time.perf_counter() - start) / steps * 1e3, "torch": torch.__version__}))
