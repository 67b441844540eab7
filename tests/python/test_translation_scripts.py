"""Translation as public scripts do it, alone and as two pservers and two trainers: a recurrent encoder and decoder are
trained, saved, and read again by a program that searches with beams. `classic` has DynamicRNN, While and beam_search,
`cells` has GRUCell, rnn, BeamSearchDecoder and dynamic_decode."""

import os
import subprocess
import sys
import textwrap

import pytest
from fleet_jobs import launch

SCRIPT = '''
    import os
    import sys
    import numpy as np
    import paddle
    import paddle.fluid as fluid

    L = fluid.layers
    START, END, WORDS = 0, 1, 14
    WIDTH, HIDDEN, BEAM, LONGEST = 16, 32, 3, 5

    def translate(source):
        """Two words for the first and the last one of the source, then the end."""
        return [source[0], source[-1], END]

    def pairs(random, rows):
        sources = [[int(w) for w in random.randint(2, WORDS, int(n))] for n in random.randint(2, 5, rows)]
        return [(source, translate(source)) for source in sources]

    def attr(name):
        return fluid.ParamAttr(name=name)

    class Classic:
        """Sequences without padding."""

        def word(self, name):
            return L.data(name=name, shape=[1], dtype='int64', lod_level=1)

        def embed(self, words, name):
            return L.embedding(words, size=[WORDS, WIDTH], dtype='float32', is_sparse=True, param_attr=attr(name))

        def encode(self):
            source = self.embed(self.word('source'), 'source_table')
            ahead = L.fc(source, size=4 * HIDDEN, act='tanh', param_attr=attr('ahead_w'), bias_attr=attr('ahead_b'))
            back = L.fc(source, size=4 * HIDDEN, act='tanh', param_attr=attr('back_w'), bias_attr=attr('back_b'))
            states, _ = L.dynamic_lstm(ahead, size=4 * HIDDEN, param_attr=attr('lstm_w'), bias_attr=attr('lstm_b'))
            others, _ = L.dynamic_lstm(back, size=4 * HIDDEN, is_reverse=True, param_attr=attr('other_w'),
                                       bias_attr=attr('other_b'))
            both = [L.sequence_last_step(states), L.sequence_first_step(others)]
            return L.fc(both, size=HIDDEN, act='tanh', param_attr=[attr('join_w0'), attr('join_w1')],
                        bias_attr=attr('join_b'))

        def step(self, word, state):
            return L.fc([state, word], size=HIDDEN, act='tanh', param_attr=[attr('step_w0'), attr('step_w1')],
                        bias_attr=attr('step_b'))

        def score(self, state):
            return L.fc(state, size=WORDS, act='softmax', param_attr=attr('score_w'), bias_attr=attr('score_b'))

        def loss(self):
            context = self.encode()
            target = self.embed(self.word('target'), 'target_table')
            decoder = L.DynamicRNN()
            with decoder.block():
                word = decoder.step_input(target)
                memory = decoder.memory(init=context, need_reorder=True)
                state = self.step(word, memory)
                decoder.update_memory(memory, state)
                decoder.output(self.score(state))
            return L.mean(L.cross_entropy(input=decoder(), label=self.word('following')))

        def feed(self, rows, place):
            def tensor(sequences):
                flat = np.concatenate(sequences).astype('int64').reshape(-1, 1)
                return fluid.create_lod_tensor(flat, [[len(each) for each in sequences]], place)
            return {'source': tensor([s for s, _ in rows]), 'target': tensor([[START] + t[:-1] for _, t in rows]),
                    'following': tensor([t for _, t in rows])}

        def search(self):
            context = self.encode()
            longest = L.fill_constant(shape=[1], dtype='int64', value=LONGEST)
            counter = L.zeros(shape=[1], dtype='int64', force_cpu=True)
            states, ids, scores = L.create_array('float32'), L.create_array('int64'), L.create_array('float32')
            L.array_write(context, array=states, i=counter)
            L.array_write(L.data('first_ids', [1], dtype='int64', lod_level=2), array=ids, i=counter)
            L.array_write(L.data('first_scores', [1], dtype='float32', lod_level=2), array=scores, i=counter)
            going = L.less_than(x=counter, y=longest)
            loop = L.While(cond=going)
            with loop.block():
                last, total = L.array_read(ids, i=counter), L.array_read(scores, i=counter)
                before = L.sequence_expand(L.array_read(states, i=counter), total)
                state = self.step(self.embed(last, 'target_table'), before)
                likely, words = L.topk(self.score(L.lod_reset(x=state, y=total)), k=BEAM)
                sums = L.elementwise_add(x=L.log(likely), y=L.reshape(total, shape=[-1]), axis=0)
                chosen, reached = L.beam_search(last, total, words, sums, BEAM, end_id=END, level=0)
                L.increment(x=counter, value=1, in_place=True)
                for value, array in ((state, states), (chosen, ids), (reached, scores)):
                    L.array_write(value, array=array, i=counter)
                L.logical_and(x=L.less_than(x=counter, y=longest), y=L.logical_not(L.is_empty(x=chosen)), out=going)
            return L.beam_search_decode(ids=ids, scores=scores, beam_size=BEAM, end_id=END)

        def best(self, exe, program, results, rows, place):
            """The best translation of each row."""
            each = [[1] * len(rows)] * 2
            feed = {'source': self.feed(rows, place)['source'],
                    'first_ids': fluid.create_lod_tensor(np.full((len(rows), 1), START, 'int64'), each, place),
                    'first_scores': fluid.create_lod_tensor(np.zeros((len(rows), 1), 'float32'), each, place)}
            found, = exe.run(program, feed=feed, fetch_list=[results[0]], return_numpy=False)
            of_source, of_branch = found.lod()
            words = np.array(found).ravel()
            return [list(words[of_branch[first]:of_branch[first + 1]])[1:] for first in of_source[:-1]]

    class Cells:
        """Padded batches with lengths."""

        def __init__(self):
            self.encoder = L.GRUCell(HIDDEN, name='encoder')
            self.decoder = L.GRUCell(HIDDEN, name='decoder')

        def embed(self, words, name):
            return fluid.embedding(words, size=[WORDS, WIDTH], is_sparse=True, param_attr=attr(name))

        def encode(self):
            source, lengths = fluid.data('source', [None, None], 'int64'), fluid.data('lengths', [None], 'int64')
            _, state = L.rnn(self.encoder, self.embed(source, 'source_table'), sequence_length=lengths)
            return state

        def score(self, states):
            return L.fc(states, size=WORDS, num_flatten_dims=len(states.shape) - 1, param_attr=attr('score_w'),
                        bias_attr=attr('score_b'))

        def loss(self):
            state = self.encode()
            target, following = (fluid.data(name, [None, 3], 'int64') for name in ('target', 'following'))
            states, _ = L.rnn(self.decoder, self.embed(target, 'target_table'), initial_states=state)
            cost = L.softmax_with_cross_entropy(self.score(states), L.unsqueeze(following, [2]))
            return L.reduce_mean(L.reduce_sum(cost, dim=[1]))

        def feed(self, rows, place):
            longest = max(len(s) for s, _ in rows)
            return {'source': np.array([s + [END] * (longest - len(s)) for s, _ in rows], 'int64'),
                    'lengths': np.array([len(s) for s, _ in rows], 'int64'),
                    'target': np.array([[START] + t[:-1] for _, t in rows], 'int64'),
                    'following': np.array([t for _, t in rows], 'int64')}

        def search(self):
            decoder = L.BeamSearchDecoder(self.decoder, START, END, BEAM,
                                          embedding_fn=lambda words: self.embed(words, 'target_table'),
                                          output_fn=self.score)
            return L.dynamic_decode(decoder, inits=self.encode(), max_step_num=LONGEST)

        def best(self, exe, program, results, rows, place):
            feed = self.feed(rows, place)
            found, = exe.run(program, feed={name: feed[name] for name in ('source', 'lengths')}, fetch_list=[results[0]])
            return [list(each[:, 0]) for each in found]    # [rows, words, branches]

    def cut(words):
        return words[:words.index(END) + 1] if END in words else words

    kind = {'classic': Classic, 'cells': Cells}[sys.argv[1]]
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup):
        with fluid.unique_name.guard():
            network = kind()
            loss = network.loss()
            fluid.optimizer.Adam(0.01).minimize(loss)
    trainer_id = int(os.getenv('PADDLE_TRAINER_ID', '0'))
    role = os.getenv('TRAINING_ROLE', 'ALONE')
    if role != 'ALONE':
        t = fluid.DistributeTranspiler()
        t.transpile(trainer_id, program=main, startup_program=startup,
                    pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=int(os.environ['PADDLE_TRAINERS_NUM']))
        main = t.get_trainer_program()
    if role == 'PSERVER':
        current = os.environ['PADDLE_CURRENT_ENDPOINT']
        program = t.get_pserver_program(current)
        exe.run(t.get_startup_program(current, program))
        exe.run(program)
        sys.exit(0)
    exe.run(startup)
    random = np.random.RandomState(trainer_id)
    losses = []
    for _ in range(int(sys.argv[2])):
        value, = exe.run(main, feed=network.feed(pairs(random, 32), place), fetch_list=[loss])
        losses.append(np.asarray(value).item())
    print('from %.4f to %.4f' % (losses[0], losses[-1]))
    assert losses[-1] < 0.3 * losses[0], losses
    if trainer_id == 0:
        fluid.io.save_persistables(exe, 'model', main)
        program = fluid.Program()
        with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard(), \\
                fluid.scope_guard(fluid.Scope()):
            network = kind()
            results = network.search()
            fluid.io.load_persistables(exe, 'model', program)
            rows = pairs(np.random.RandomState(99), 20)
            found = [cut([int(word) for word in words]) for words in network.best(exe, program, results, rows, place)]
        right = sum(words == target for words, (_, target) in zip(found, rows))
        print('%d of %d translations are right' % (right, len(rows)))
        assert right >= 16, list(zip(rows, found))
    exe.close()
'''
STEPS = {'classic': 150, 'cells': 150}


@pytest.fixture
def paddle():
    """The environment in which `import paddle` is Penstock."""
    path = subprocess.run([sys.executable, '-m', 'penstock.compat', '--path'], check=True, capture_output=True,
                          text=True, timeout=60).stdout.strip()
    return {'PYTHONPATH': os.pathsep.join(filter(None, [path, os.environ.get('PYTHONPATH')]))}


@pytest.mark.parametrize('form', STEPS)
def test_servers_and_trainers_learn_to_translate(tmp_path, paddle, form):
    code, said, logs = launch(tmp_path, SCRIPT, form, STEPS[form], **paddle)
    assert code == 0, said + ''.join(text[-2000:] for text in logs.values())
    assert 'translations are right' in logs['workerlog.0'] and 'from ' in logs['workerlog.1']


@pytest.mark.parametrize('form', STEPS)
def test_the_script_translates_alone(tmp_path, form):
    (tmp_path / 'train.py').write_text(textwrap.dedent(SCRIPT))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(('PADDLE_', 'TRAINING_'))}
    done = subprocess.run([sys.executable, '-m', 'penstock.compat', 'train.py', form, str(STEPS[form])], cwd=tmp_path,
                          env={**kept, 'OMP_NUM_THREADS': '1'}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'translations are right' in done.stdout
