"""penstock.torch: models of PyTorch that several workers train equal those of one process with the joined batch."""

import textwrap

import pytest
from torch_python import check_training, run, torch_python, trained_alone

# Each process runs this script: workers, servers, and alone.
SCRIPT = """
    import sys
    import numpy as np
    import torch
    import penstock
    from penstock import kv as keyed
    from penstock.torch import DistributedOptimizer

    kind, how, out = sys.argv[1:]
    kv = keyed.create(kind)
    torch.set_num_threads(1)
    torch.manual_seed(kv.rank)                      # rank 0's values count
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 10), torch.nn.Linear(10, 3)
    )
    model[4].bias.requires_grad_(False)
    unused = model.register_parameter('unused', torch.nn.Parameter(torch.ones(3)))
    values = np.random.RandomState(5)
    x = torch.from_numpy(values.normal(size=(4, 8, 1, 8, 8)).astype('float32'))      # [step, row, ...]
    y = torch.from_numpy(values.randint(0, 3, size=(4, 8)))
    mine = slice(kv.rank * 8 // kv.num_workers, (kv.rank + 1) * 8 // kv.num_workers)
    arguments = {}
    if how == 'store':
        arguments = dict(optimizer='sgd', learning_rate=0.1, momentum=0.9)
    elif how == 'worker':
        arguments = dict(optimizer=torch.optim.SGD(model.parameters(), 0.1, momentum=0.9))
    elif how == 'passes':
        arguments = dict(
            optimizer='sgd', learning_rate=0.1, momentum=0.9, backward_passes_per_step=2, overlap_forward=True
        )
    optimizer = DistributedOptimizer(kv, model, **arguments)
    for step in range(4):
        optimizer.zero_grad()
        rows, labels = x[step][mine], y[step][mine]
        parts = 2 if how == 'passes' else 1
        for part in range(parts):
            one = slice(part * len(rows) // parts, (part + 1) * len(rows) // parts)
            loss = torch.nn.functional.cross_entropy(model(rows[one]), labels[one])
            (loss / parts).backward()
        optimizer.step()
    optimizer.synchronize()
    np.savez(f'{out}{kv.rank}.npz', **{name: one.detach().numpy() for name, one in model.named_parameters()})
    print('trained', kv.rank, kv.num_workers)
"""

EXPECTED = """
    import sys
    import numpy as np
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 10), torch.nn.Linear(10, 3)
    )
    model[4].bias.requires_grad_(False)
    model.register_parameter('unused', torch.nn.Parameter(torch.ones(3)))
    values = np.random.RandomState(5)
    x = torch.from_numpy(values.normal(size=(4, 8, 1, 8, 8)).astype('float32'))
    y = torch.from_numpy(values.randint(0, 3, size=(4, 8)))
    optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], 0.1, momentum=0.9)
    for step in range(4):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x[step]), y[step]).backward()
        optimizer.step()
    np.savez(sys.argv[1], **{name: one.detach().numpy() for name, one in model.named_parameters()})
"""


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The parameters of a model that PyTorch has trained alone with the joined batch."""
    return trained_alone(tmp_path_factory.mktemp("alone"), EXPECTED)


@pytest.mark.parametrize("how", ["store", "worker", "passes"])
@pytest.mark.parametrize("kind", ["local", "dist_sync"])
def test_trains_as_one_process_with_the_joined_batch(tmp_path, expected, kind, how):
    check_training(tmp_path, SCRIPT, kind, how, expected, servers=1)


WRONG = """
    import torch
    import penstock
    from penstock import kv as keyed
    from penstock.torch import DistributedOptimizer

    def raises(kind, said, call):
        try:
            call()
        except kind as error:
            assert said in str(error), error
        else:
            raise AssertionError(said)

    def model():
        return torch.nn.Linear(2, 1)

    def of(one, *rest, **more):
        return lambda: DistributedOptimizer(keyed.create('local'), one, *rest, **more)

    raises(TypeError, 'must be a torch.nn.Module, not list', of([]))
    raises(TypeError, "backward_passes_per_step is 0", of(model(), backward_passes_per_step=0))
    raises(TypeError, 'not int', of(model(), 3))
    own = model()
    sgd = torch.optim.SGD(own.parameters(), 1)
    raises(TypeError, 'learning_rate: an optimizer of PyTorch', of(own, sgd, learning_rate=1))
    raises(penstock.ProgramError, 'in main memory   [E-torch-parameter]', of(model().to('meta')))
    one = model()
    optimizer = of(one, 'sgd', learning_rate=0.1)()
    one(torch.ones(1, 2)).sum().backward()
    raises(penstock.StateError, 'backward pass 2 of', lambda: one(torch.ones(1, 2)).sum().backward())
    one = model()
    optimizer = of(one, 'sgd', backward_passes_per_step=2)()
    one(torch.ones(1, 2)).sum().backward()
    raises(penstock.StateError, 'after 1 backward passes of weight', optimizer.step)
    print('refused')
"""


def test_errors(tmp_path):
    script = tmp_path / "wrong.py"
    script.write_text(textwrap.dedent(WRONG))
    assert run(torch_python(), script) == "refused\n"
