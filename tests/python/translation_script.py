"""The beginning and the end of scripts that translate words, for the tests of such scripts. Imports no test."""

HEAD = '''
    import os
    import sys
    import numpy as np
    import paddle
    import paddle.fluid as fluid
    import paddle.fluid.layers as layers

    START, END, WORDS, WIDTH, BEAM, MAX_LENGTH = 0, 1, 20, 32, 2, 6
    trainer_id = int(os.getenv('PADDLE_TRAINER_ID', '0'))

    def distribute(startup):
        """The program that trains. A pserver's process ends here."""
        endpoints = os.getenv('PADDLE_PSERVER_ENDPOINTS')
        if not endpoints:
            return fluid.default_main_program()
        t = fluid.DistributeTranspiler()
        t.transpile(trainer_id, pservers=endpoints, trainers=int(os.environ['PADDLE_TRAINERS_NUM']),
                    startup_program=startup)
        if os.getenv('TRAINING_ROLE') == 'TRAINER':
            return t.get_trainer_program()
        current = os.environ['PADDLE_CURRENT_ENDPOINT']
        exe, program = fluid.Executor(fluid.CPUPlace()), t.get_pserver_program(current)
        exe.run(t.get_startup_program(current, program, startup_program=startup))
        exe.run(program)
        sys.exit(0)

    def translated(word):
        return 2 + (word * 7 + 3) % (WORDS - 2)

    def sentences(seed, count):
        """A word some times, and its translation as many times."""
        random = np.random.RandomState(seed)
        for _ in range(count):
            word, length = int(random.randint(2, WORDS)), int(random.randint(2, 5))
            answer = [translated(word)] * length
            yield [word] * length, [START] + answer, answer + [END]

    def check(decoded, words):
        right = np.mean([found[:1] == [translated(word)] for found, word in zip(decoded, words)])
        print('translated %.2f of the first words, as in %s' % (right, decoded[:2]))
        assert right > 0.7, decoded
'''
TAIL = """
    fluid.default_startup_program().random_seed = 5
    losses = globals()[sys.argv[1]]()
    first, last = np.mean(losses[:5]), np.mean(losses[-5:])
    print('from %.4f to %.4f' % (first, last))
    assert last < 0.6 * first, losses
"""
