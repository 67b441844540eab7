"""link.py CONFIG: one of four ranks that saturate the links between them, for tools/bench/netns.

CONFIG is JSON: what (stream: send bytes to the right neighbour and receive from the left one over TCP connections;
allreduce: penstock.hvd), rank, endpoints (of all ranks), bytes, rounds. Prints RESULT and JSON: the seconds of each
round, from when all ranks are ready until this rank is done.
"""

import json
import os
import socket
import sys
import threading
import time

import numpy as np

CHUNK = 1 << 20


def split(endpoint):
    host, port = endpoint.rsplit(":", 1)
    return host, int(port)


def connected(endpoint):
    while True:
        try:
            return socket.create_connection(split(endpoint))
        except ConnectionRefusedError:
            time.sleep(0.02)


def take(source, count):
    memory = memoryview(bytearray(CHUNK))
    while count > 0:
        got = source.recv_into(memory, min(CHUNK, count))
        if got == 0:
            raise SystemExit("link: the left neighbour has ended")
        count -= got


def give(target, count):
    chunk = bytes(CHUNK)
    for at in range(0, count, CHUNK):
        target.sendall(chunk[: min(CHUNK, count - at)])


def stream(config, rank, endpoints):
    with socket.create_server(split(endpoints[rank])) as server:
        right = connected(endpoints[(rank + 1) % len(endpoints)])
        left = server.accept()[0]
        for _ in range(config["rounds"]):
            for _ in endpoints:  # a token that passes once per rank has met all ranks
                right.sendall(b".")
                take(left, 1)
            began = time.perf_counter()
            sender = threading.Thread(target=give, args=(right, config["bytes"]))
            sender.start()
            take(left, config["bytes"])
            sender.join()
            yield time.perf_counter() - began


def allreduce(config, rank, endpoints):
    os.environ.update(
        PADDLE_TRAINER_ID=str(rank),
        PADDLE_TRAINER_ENDPOINTS=",".join(endpoints),
        PADDLE_CURRENT_ENDPOINT=endpoints[rank],
        PADDLE_TRAINERS_NUM=str(len(endpoints)),
    )
    import penstock.hvd as hvd

    hvd.init()
    values = np.ones(config["bytes"] // 4, "float32")
    for _ in range(config["rounds"]):
        hvd.barrier()
        began = time.perf_counter()
        hvd.allreduce_(values, op=hvd.Average)
        yield time.perf_counter() - began
    hvd.shutdown()


def main():
    config = json.loads(sys.argv[1])
    what = {"stream": stream, "allreduce": allreduce}[config["what"]]
    print("RESULT " + json.dumps(list(what(config, config["rank"], config["endpoints"]))), flush=True)


if __name__ == "__main__":
    main()
