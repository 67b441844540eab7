"""ARCHITECTURE.md names every message of the protocol, and only folders and files that exist."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAP = (ROOT / 'ARCHITECTURE.md').read_text()


def test_every_message_is_documented():
    source = (ROOT / 'executor/protocol/events.h').read_text()
    messages = []
    for kind in ('Event', 'Reply'):
        variant = re.search(r'using %s =\s*std::variant<([^>]*)>' % kind, source).group(1)
        messages += [name.strip() for name in variant.split(',')]
    assert len(messages) >= 31
    assert [name for name in messages if '`%s`' % name not in MAP] == []


def test_documented_paths_exist():
    folders = 'framework|operators|transpiler|executor|python|tools|tests'
    places = re.findall(r'(?<![\w/])((?:%s)/[\w/.]*\w)' % folders, MAP)
    assert len(places) >= 20
    assert [place for place in places if not (ROOT / place).exists() and not list(ROOT.glob(place + '.*'))] == []
