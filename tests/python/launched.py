"""The script that launchers start in tests."""

# Trains a small model in as many steps as the first argument says; trainer RAISES fails in its fourth.
TRAIN = """
    import numpy as np
    import penstock.fluid as fluid
    x = fluid.data('x', [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    t = fluid.DistributeTranspiler()
    endpoints = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"]
    trainer = os.environ["TRAINING_ROLE"] == "TRAINER"
    index = int(os.environ["PADDLE_TRAINER_ID"]) if trainer else 0
    t.transpile(index, pservers=endpoints, trainers=int(os.environ["PADDLE_TRAINERS_NUM"]))
    if not trainer:
        main, startup = t.get_pserver_programs(os.environ["PADDLE_CURRENT_ENDPOINT"])
        exe.run(startup)
        exe.run(main)
        sys.exit(0)
    exe.run(fluid.default_startup_program())
    for step in range(int(sys.argv[1] if len(sys.argv) > 1 else 5)):
        if os.environ.get("RAISES") == str(index) and step == 3:
            raise ValueError("the data ran out")
        exe.run(t.get_trainer_program(), feed={'x': np.ones((2, 4), 'float32')}, fetch_list=[loss])
    exe.close()
"""
