"""ARCHITECTURE.md names every message of the protocol, and only folders and files that exist."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAP = (ROOT / "ARCHITECTURE.md").read_text()


def test_every_message_is_documented():
    source = (ROOT / "executor/protocol/events.h").read_text()
    messages = []
    for kind in ("Event", "Reply"):
        variant = re.search(rf"using {kind} =\s*std::variant<([^>]*)>", source).group(1)
        messages += [name.strip() for name in variant.split(",")]
    assert len(messages) >= 31
    assert [name for name in messages if f"`{name}`" not in MAP] == []


def test_documented_paths_exist():
    folders = "framework|operators|transpiler|executor|python|tools|tests"
    places = re.findall(rf"(?<![\w/])((?:{folders})/[\w/.]*\w)", MAP)
    assert len(places) >= 20
    assert [place for place in places if not (ROOT / place).exists() and not list(ROOT.glob(place + ".*"))] == []
