"""Where a trainer begins: after the steps that are complete."""

from __future__ import annotations

from penstock import _penstock
from penstock._src.base import environment
from penstock._src.dataset import position


def resume_step(readers: bool = True) -> int:
    """Returns the number of complete steps of this trainer: the step with which its training begins.

    They are those of the checkpoint from which the job continues. In a process that takes the place of a trainer that
    has died (`--on_trainer_loss wait` or `shrink`), they include the steps that are over for this trainer since then.
    Call it after the startup program has run, which connects the trainer with its pservers. They hold the parameters
    and the state of the optimizer as they were after so many steps, so training goes on with the step of that number.
    Values that a script loads belong in the first start only: `if penstock.resume_step() == 0`.

    Readers continue too: the passes of the reader that trains leave out the batches of complete steps. It is the
    dataset of train_from_dataset with a program that sends gradients, and else the first DataLoader, PyReader or
    py_reader that the process starts after the startup program.

    Args:
        readers (bool): False: the script itself chooses the batches of each step, so readers begin with their first
            batch. Say so before a reader starts.

    Returns:
        int: 0 in a new job, and in a job without pservers.

    Raises:
        penstock.StateError: the startup program has not run yet, in a job that continues or whose trainers may return
            (E-resume-early).
        penstock.PeerError: a pserver is gone.

    Example:
        import penstock
        import penstock.fluid as fluid
        x = fluid.data('x', [None, 4])
        loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        for step in range(penstock.resume_step(), 3):
            exe.run(feed={'x': np.ones((2, 4), 'float32')}, fetch_list=[loss])
    """
    if not readers:
        position.leave_to_script()
    try:
        return _penstock.first_step()
    except _penstock.StateError as error:
        returns = environment.value("PENSTOCK_ON_TRAINER_LOSS", "abort") != "abort"
        if error.id != "E-resume-early" or returns or environment.value("PENSTOCK_RESUME_STEP", 0):
            raise
        return 0
