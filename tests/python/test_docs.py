"""The documentation builds without a warning, its scripts run, links between Markdown files are valid, and each error
id is explained."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from penstock.fluid.transpiler.config import DistributeTranspilerConfig

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / 'python' / 'docs'
TUTORIAL = (DOCS / 'pages' / 'tutorial.md').read_text()
LIMIT_S = 300
LINK = re.compile(r'\[[^\]]*\]\(([^)\s]+)\)')
ID = re.compile(r'[\'"](E-[a-z]+(?:-[a-z0-9]+)*)[\'"]')
SETTINGS_OF_MODES = (
    'backup_trainers', 'bn_sync', 'chunk_bytes', 'clip', 'collective_mode', 'completely_not_async', 'compression',
    'enable_dc_asgd', 'exchange', 'geo_sgd_need_push_nums', 'half_async', 'local_sgd_adaptive', 'local_sgd_k_steps',
    'on_uneven', 'runtime_split_send_recv', 'staleness', 'sync_mode')
SOURCES = ('framework', 'operators', 'transpiler', 'executor', 'python/penstock', 'python/src', 'tools')


def test_the_pages_build_without_a_warning(tmp_path):
    done = subprocess.run([sys.executable, DOCS / 'build.py', '--out', tmp_path], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / 'html' / 'api' / 'penstock.fluid.layers.html').read_text()
    assert 'fully connected layer' in page and 'Example' in page
    assert 'elementwise_add' in (tmp_path / 'html' / 'operators.html').read_text()
    assert '--hang_timeout' in (tmp_path / 'html' / 'commands.html').read_text()
    for page in ('index', 'tutorial', 'moving', 'modes', 'commands', 'errors', 'operators', 'api/index'):
        assert (tmp_path / 'html' / (page + '.html')).exists(), page


def test_the_modes_page_lists_each_setting():
    page = (DOCS / 'pages' / 'modes.md').read_text()
    for field in SETTINGS_OF_MODES:
        assert hasattr(DistributeTranspilerConfig, field) and field in page, field


def test_each_mode_documents_its_guarantee_and_use():
    page = (DOCS / 'pages' / 'modes.md').read_text()
    with_servers = page.split('## With parameter servers')[1].split('### Fleet')[0]
    modes = dict(re.findall(r'^### ([^\n]+)\n(.*?)(?=^### |\Z)', with_servers, re.DOTALL | re.MULTILINE))
    assert len(modes) >= 9
    for mode, text in modes.items():
        assert '*Promise:* ' in text and '*Use it* ' in text, mode
    joint = page.split('## All-reduce and parameter servers together')[1].split('\n## ')[0]
    assert '*Promise:* ' in joint and '*Use it* ' in joint


def scripts(folder):
    """Writes the tutorial's scripts, which begin with their names."""
    for found in re.finditer(r'```python\n# (\w+\.py)\n(.*?)```', TUTORIAL, re.DOTALL):
        (folder / found[1]).write_text(found[2])


def run(folder, *command):
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S,
                          check=False, env=dict(os.environ, OMP_NUM_THREADS='1'))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def losses(text):
    return [float(number) for number in re.findall(r'loss after 200 steps: ([0-9.]+)', text)]


def test_the_tutorial_trains_on_one_machine_and_on_servers(tmp_path):
    scripts(tmp_path)
    alone, = losses(run(tmp_path, sys.executable, 'fit.py'))
    assert alone < 0.05
    shown = run(tmp_path, sys.executable, '-m', 'penstock.distributed.launch', '--server_num', '2', '--worker_num', '2',
                'train.py')
    assert losses(shown) and losses(shown)[0] < 0.05


def test_the_tutorial_looks_at_programs(tmp_path):
    scripts(tmp_path)
    penstock = pathlib.Path(sys.executable).with_name('penstock')
    run(tmp_path, sys.executable, 'look.py')
    commands = [line.split()[1:] for line in TUTORIAL.splitlines() if line.startswith('penstock ')]
    assert len(commands) == 4
    for command in commands:
        run(tmp_path, penstock, *command)


def markdown_files():
    listed = subprocess.run(['git', 'ls-files', '*.md'], cwd=ROOT, capture_output=True, text=True, check=False)
    return [ROOT / name for name in listed.stdout.split()] or pytest.fail('git lists no Markdown files')


def test_links_between_files_resolve():
    broken, seen = [], 0
    for path in markdown_files():
        if path.parent == DOCS / 'pages':    # links to pages that are generated; the build checks them
            continue
        for target in LINK.findall(re.sub(r'```.*?```|`[^`]*`', '', path.read_text(), flags=re.DOTALL)):
            if '://' in target or target.startswith(('#', 'mailto:')):
                continue
            seen += 1
            if not (path.parent / target.partition('#')[0]).exists():
                broken.append('%s: %s' % (path.relative_to(ROOT), target))
    assert not broken and seen > 0


def sources():
    """The text of each source file that may raise an error."""
    listed = subprocess.run(['git', 'ls-files', *SOURCES], cwd=ROOT, capture_output=True, text=True, check=False)
    return [(ROOT / name).read_text() for name in listed.stdout.split()
            if name.endswith(('.cc', '.h', '.cu', '.py')) and not name.startswith('tools/dev/')]


def test_each_error_is_explained():
    rows = [line.split('\t') for line in (DOCS / 'errors.tsv').read_text().splitlines()]
    assert all(len(row) == 3 and all(row) for row in rows), 'a row of errors.tsv has an id, a meaning and a remedy'
    listed = [row[0] for row in rows]
    assert listed == sorted(set(listed))
    texts = sources()
    ids = set().union(*map(ID.findall, texts))
    assert len(ids) > 300
    assert sorted(ids - set(listed)) == [], 'errors.tsv does not explain these'
    spelled = set(re.findall(r'\bE-[a-z0-9-]+', '\n'.join(texts)))
    assert sorted(set(listed) - spelled) == [], 'nothing raises these'
