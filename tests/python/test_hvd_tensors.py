"""penstock.hvd on PyTorch tensors: two ranks as processes."""

from rank_processes import Ranks
from torch_python import environment, torch_python

SCRIPT = """
    import numpy as np
    import penstock
    import torch
    import penstock.hvd as hvd
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    same = torch.testing.assert_close

    def of(r, shape=(3, 2)):
        return torch.arange(6, dtype=torch.float32).reshape(shape) + 10 * r

    mean = (of(0) + of(1)) / 2
    mine = of(rank)
    same(hvd.allreduce(mine), mean)
    same(hvd.allreduce(tensor=mine, compression=hvd.Compression.fp16), mean)
    same(mine, of(rank))                                            # the argument is as it was
    assert hvd.allreduce_(mine) is mine
    same(mine, mean)
    handle = hvd.allreduce_async(of(rank), op=hvd.Sum)
    hvd.poll(handle)
    same(hvd.synchronize(handle), mean * 2)
    mine = of(rank)
    assert hvd.synchronize(hvd.allreduce_async_(mine)) is mine
    same(mine, mean)
    both = hvd.grouped_allreduce([of(rank), torch.tensor([rank], dtype=torch.float64)])
    same(both[0], mean)
    same(both[1], torch.tensor([0.5], dtype=torch.float64))
    same(hvd.allgather(of(rank)[: rank + 1]), torch.cat([of(0)[:1], of(1)[:2]]))
    same(hvd.broadcast(of(rank), root_rank=1), of(1))
    same(hvd.reducescatter(of(rank)), (mean[:2], mean[2:])[rank])
    rows, counts = hvd.alltoall(of(rank), splits=torch.tensor([1, 2]))
    same(rows, torch.cat([of(0)[:1], of(1)[:1]]) if rank == 0 else torch.cat([of(0)[1:], of(1)[1:]]))
    assert counts.tolist() == [1 + rank, 1 + rank]

    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    hvd.broadcast_parameters(model.state_dict(), root_rank=1)
    torch.manual_seed(1)
    for own, first in zip(model.parameters(), torch.nn.Sequential(torch.nn.Linear(3, 2)).parameters()):
        same(own.detach(), first.detach())
    gradient = torch.ones(2, requires_grad=True)                    # autograd takes no part
    same(hvd.allreduce(gradient), torch.ones(2))

    for wrong, said in ((torch.ones(2, dtype=torch.bfloat16), 'bfloat16'), (torch.ones(2, device='meta'), 'meta')):
        try:
            hvd.allreduce(wrong)
        except penstock.ProgramError as error:
            assert '[E-hvd-array]' in str(error) and said in str(error), error
        else:
            raise AssertionError(wrong)
    try:
        hvd.allreduce_(torch.ones(2, 2).t()[:1])
    except penstock.ProgramError as error:
        assert '[E-hvd-array]' in str(error), error
    else:
        raise AssertionError('a tensor with gaps')
    print('equal')
"""


def test_ranks_exchange_tensors(tmp_path):
    with Ranks(tmp_path, SCRIPT, 2, python=torch_python(), environment=environment()) as ranks:
        assert ranks.end_well() == ["equal\n"] * 2
