"""penstock.torch.Embedding and Prefetch: rows on pservers are trained as those of torch.nn.Embedding in one process."""

import re
import subprocess
import textwrap

import pytest
from docs_pages import PAGES, write_files
from torch_python import check_training, run, torch_python, trained_alone

# Each process runs this script: workers, servers, and alone. `how` is a list of words.
SCRIPT = """
    import sys
    import numpy as np
    import torch
    import penstock
    from penstock import kv as keyed
    from penstock.torch import DistributedOptimizer, Embedding, Prefetch

    kind, how, out = sys.argv[1:]
    kv = keyed.create(kind)
    torch.set_num_threads(1)
    torch.manual_seed(kv.rank)
    table = keyed.Table('words', 4, keyed.optimizer.create('sgd', learning_rate=0.5), seed=9)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = Embedding(table)
            self.top = torch.nn.Linear(4, 3)

        def forward(self, ids):
            return self.top(torch.tanh(self.words(ids).sum(1) * 20))

    model = Model()
    values = np.random.RandomState(5)
    x = torch.from_numpy(values.randint(0, 40, size=(6, 8, 5)) * (2**40 + 1))    # [step, row, word]
    y = torch.from_numpy(values.randint(0, 3, size=(6, 8)))
    mine = slice(kv.rank * 8 // kv.num_workers, (kv.rank + 1) * 8 // kv.num_workers)
    if 'own' in how:
        optimizer = DistributedOptimizer(kv, model, torch.optim.SGD(model.parameters(), 0.1))
    else:
        optimizer = DistributedOptimizer(kv, model, 'sgd', learning_rate=0.1)
    batches = [(x[step][mine], y[step][mine]) for step in range(6)]
    if 'prefetch' in how:
        batches = Prefetch(batches, {model.words: lambda batch: batch[0]})
        assert len(batches) == 6
    asked = []
    lookup, model.words._ask = model.words._ask, lambda flat: asked.append(len(flat)) or lookup(flat)
    for rows, labels in batches:
        optimizer.zero_grad()
        if 'parts' in how:                                  # two lookups of a step
            half = len(rows) // 2
            logits = torch.cat([model(rows[:half]), model(rows[half:])])
        else:
            logits = model(rows)
        torch.nn.functional.cross_entropy(logits, labels).backward()
        with torch.no_grad():
            model(rows)                                     # leaves nothing to push
        optimizer.step()
    optimizer.synchronize()
    assert table.rounds() == 6
    assert list(model.state_dict()) == ['top.weight', 'top.bias'] and 'Table words' in repr(model)
    assert len(asked) == (18 if 'parts' in how else 12), asked      # one more without gradients
    got = {'words': table.lookup(np.arange(40) * (2**40 + 1))}
    got.update({name: one.detach().numpy() for name, one in model.named_parameters()})
    np.savez(f'{out}{kv.rank}.npz', **got)
"""

EXPECTED = """
    import sys
    import numpy as np
    import torch
    from penstock import kv as keyed

    torch.manual_seed(0)
    kv = keyed.create('local')
    rows = keyed.Table('words', 4, seed=9).lookup(np.arange(40) * (2**40 + 1))
    top = torch.nn.Linear(4, 3)
    words = torch.nn.Embedding.from_pretrained(torch.from_numpy(rows), freeze=False)
    values = np.random.RandomState(5)
    x = torch.from_numpy(values.randint(0, 40, size=(6, 8, 5)))
    y = torch.from_numpy(values.randint(0, 3, size=(6, 8)))
    optimizer = torch.optim.SGD([{'params': words.parameters(), 'lr': 0.5}, {'params': top.parameters()}], 0.1)
    for step in range(6):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(top(torch.tanh(words(x[step]).sum(1) * 20)), y[step]).backward()
        optimizer.step()
    np.savez(
        sys.argv[1], words=words.weight.detach().numpy(),
        **{'top.' + name: one.detach().numpy() for name, one in top.named_parameters()},
    )
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What PyTorch has trained alone with the joined batch."""
    return trained_alone(tmp_path_factory.mktemp("alone"), EXPECTED)


@pytest.mark.parametrize(
    "kind, how", [("local", "prefetch"), ("dist_sync", "plain"), ("dist_sync", "prefetch"), ("dist_sync", "own,parts")]
)
def test_trains_as_one_process_with_the_joined_batch(tmp_path, alone, kind, how):
    check_training(tmp_path, SCRIPT, kind, how, alone, servers=2)


ASYNC = """
    import sys
    import torch
    from penstock import kv as keyed
    from penstock.torch import Embedding, Prefetch

    kv = keyed.create('dist_async')
    table = keyed.Table('t', 2, keyed.optimizer.create('sgd', learning_rate=1.0), initial=0.0)
    words = Embedding(table)
    batches = [torch.tensor([step % 3, 7, 2**40]) for step in range(30)]
    for batch in Prefetch(batches, {words: lambda batch: batch}):
        words(batch).sum().backward()
        words.step()
    kv.wait()
    kv.barrier()
    with open(f'{sys.argv[1]}{kv.rank}', 'w') as file:
        file.write(str(table.lookup([0, 1, 2, 7, 2**40])[:, 0].tolist()))
"""


def test_no_gradient_is_lost_in_an_asynchronous_store(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(ASYNC))
    launcher = ["-m", "penstock.distributed.launch", "--server_num", "2", "--worker_num", "2", "--log_dir", "log"]
    run(torch_python(), script, tmp_path / "rows", launcher=launcher)
    for rank in range(2):
        assert (tmp_path / f"rows{rank}").read_text() == "[-10.0, -10.0, -10.0, -30.0, -30.0]"


@pytest.mark.parametrize(
    "name, said",
    [("train.py", r"worker 1: 0\.\d"), ("ctr.py", r"worker 1: 0\.\d"), ("digits.py", r"test images: 0\.[89]")],
)
def test_the_examples_of_the_page_run(tmp_path, name, said):
    write_files(PAGES / "howto" / "pytorch.md", tmp_path)
    if name == "digits.py":
        code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('sklearn') is None)"
        if subprocess.run([torch_python(), "-c", code], check=False).returncode:
            pytest.skip("scikit-learn is not installed beside PyTorch")
    launcher = ["-m", "penstock.distributed.launch", "--server_num", "1", "--worker_num", "2", "--log_dir", "log"]
    printed = run(torch_python(), tmp_path / name, launcher=launcher)
    logs = "".join(path.read_text() for path in sorted((tmp_path / "log").rglob("*")) if path.is_file())
    assert re.search(said, printed + logs), printed + logs


WRONG = """
    import torch
    from penstock import kv as keyed
    from penstock.torch import Embedding, Prefetch

    def raises(kind, said, call):
        try:
            call()
        except kind as error:
            assert said in str(error), error
        else:
            raise AssertionError(said)

    kv = keyed.create('local')
    words = Embedding(keyed.Table('t', 2, initial=1.0))
    raises(TypeError, 'takes a penstock.kv.Table, not int', lambda: Embedding(3))
    raises(TypeError, 'ids are integers', lambda: words(torch.ones(2)))
    raises(TypeError, 'not list', lambda: words([1]))
    raises(TypeError, 'Prefetch takes', lambda: Prefetch([], {3: len}))
    assert list(Prefetch([], {words: len})) == []
    rows = words(torch.tensor([[1, 2], [3, 1]]))
    assert rows.shape == (2, 2, 2) and words.embedding_dim == 2 and words(torch.tensor(5)).shape == (2,)
    rows.sum().backward()
    words.zero_grad()
    words.step()
    assert words.table.lookup([1])[0, 0] == 1.0             # the gradients were forgotten
    words.prefetch(torch.tensor([8, 9]))
    words.prefetch(torch.tensor([7]))
    assert len(words._asked) == 2
    words(torch.tensor([7]))
    assert not words._asked                                 # the batch before was left out
    print('refused')
"""


def test_errors_and_details(tmp_path):
    script = tmp_path / "wrong.py"
    script.write_text(textwrap.dedent(WRONG))
    assert run(torch_python(), script) == "refused\n"
