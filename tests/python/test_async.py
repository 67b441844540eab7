"""Asynchronous jobs of real processes."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

DIGITS = pathlib.Path(__file__).resolve().parents[2] / 'tools' / 'demo' / 'digits.py'
WAIT_S = 300


@pytest.mark.parametrize('arguments', [['async'], ['async', '--staleness', '1', '--epochs', '20'], ['dc_asgd']],
                         ids=['async', 'staleness', 'dc_asgd'])
def test_two_trainers_and_two_pservers_learn_digits(tmp_path, arguments):
    pytest.importorskip('sklearn')
    result = subprocess.run(
        [sys.executable, '-m', 'penstock.distributed.launch', '--server_num', '2', '--worker_num', '2', '--log_dir',
         str(tmp_path / 'logs'), str(DIGITS), '--out', str(tmp_path), '--mode', *arguments],
        env=dict(os.environ, OMP_NUM_THREADS='1'), text=True, capture_output=True, timeout=WAIT_S)
    assert result.returncode == 0, result.stderr
    for trainer in range(2):
        assert json.loads((tmp_path / f'trainer_{trainer}.json').read_text())['accuracy'] >= 0.97
