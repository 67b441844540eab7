"""torch_worker.py CONFIG: trains a model by PyTorch for tools/bench/models; worker.py has the protocol.

CONFIG is JSON: model, batch, threads, mode (eager, channels_last, compile); and rank and endpoints (of all ranks,
separated by commas) for DistributedDataParallel over Gloo. channels_last is the memory format of images
and of the model.
"""

import json
import sys

import fluid_models
import torch
import torch.distributed
import torch_models
import worker


def main():
    config = json.loads(sys.argv[1])
    torch.set_num_threads(config["threads"])
    torch.manual_seed(7)
    imported_mb = worker.peak_mb()
    model, x, y = torch_models.build(config["model"], config["batch"], sparse=config["mode"] != "compile")
    if config["mode"] == "channels_last":
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), fluid_models.RATE)
    run = torch.compile(model) if config["mode"] == "compile" else model
    if "endpoints" in config:
        endpoints = config["endpoints"].split(",")
        torch.distributed.init_process_group(
            "gloo", init_method="tcp://" + endpoints[0], rank=config["rank"], world_size=len(endpoints)
        )
        run = torch.nn.parallel.DistributedDataParallel(run)

    def step(_):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(run(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    worker.serve(lambda: (None, x.shape[0]), step, imported_mb)


if __name__ == "__main__":
    main()
