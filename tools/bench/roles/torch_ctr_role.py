"""A process of tools/bench/torch_ctr: a worker, server or scheduler of penstock, or a rank of torch's DDP.

Its argument is the case in JSON: system, rows, width, fields, batch, steps, warm, prefetch, and for a rank rank, world
and address. A worker prints RESULT and its step times in milliseconds.
"""

import json
import sys
import time

import numpy as np
import torch

HIDDEN = 64


class Click(torch.nn.Module):
    """Whether a user clicks: embeddings of the fields, and two layers on them."""

    def __init__(self, embedding, case):
        super().__init__()
        self.embedding = embedding
        self.top = torch.nn.Sequential(
            torch.nn.Linear(case["fields"] * case["width"], HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1)
        )

    def forward(self, ids):
        return self.top(self.embedding(ids).flatten(1)).squeeze(1)


def batches(case, rank):
    """Ids of which some are frequent and most are rare, as of clicks."""
    random = np.random.RandomState(rank)
    for _ in range(case["warm"] + case["steps"]):
        shape = (case["batch"], case["fields"])
        ids = (case["rows"] * random.random_sample(shape) ** 3).astype("int64")
        yield torch.from_numpy(ids), torch.from_numpy((ids.sum(1) % 2).astype("float32"))


def train(case, model, optimizer, loader):
    times = []
    for ids, labels in loader:
        begin = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(model(ids), labels).backward()
        optimizer.step()
        times.append(1e3 * (time.perf_counter() - begin))
    print("RESULT " + json.dumps(times[case["warm"] :]), flush=True)


def penstock_worker(case):
    import penstock.torch
    from penstock import kv as keyed

    kv = keyed.create("dist_sync")  # servers and the scheduler end here
    sgd = keyed.optimizer.create("sgd", learning_rate=0.1)
    model = Click(penstock.torch.Embedding(keyed.Table("ads", case["width"], sgd, store=kv)), case)
    optimizer = penstock.torch.DistributedOptimizer(kv, model, "sgd", learning_rate=0.1)
    loader = batches(case, kv.rank)
    if case["prefetch"]:
        loader = penstock.torch.Prefetch(loader, {model.embedding: lambda batch: batch[0]})
    train(case, model, optimizer, loader)


def ddp_rank(case):
    address = f"tcp://{case['address']}"
    torch.distributed.init_process_group("gloo", init_method=address, rank=case["rank"], world_size=case["world"])
    model = Click(torch.nn.Embedding(case["rows"], case["width"]), case)
    model = torch.nn.parallel.DistributedDataParallel(model)
    train(case, model, torch.optim.SGD(model.parameters(), 0.1), batches(case, case["rank"]))
    torch.distributed.destroy_process_group()


def main():
    case = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    ddp_rank(case) if case["system"] == "ddp" else penstock_worker(case)


if __name__ == "__main__":
    main()
