"""DataFeedDesc: protobuf's text format, read and written without protobuf."""

import pytest
from penstock._src.dataset.text_format import parse, print_message

TEXT = """
# of a click model
name: "MultiSlotDataFeed"
batch_size: 2
multi_slot_desc {
  slots { name: 'words' type: "uint64" is_dense: false is_used: true }
  slots: < name: "label"; type: "float", shape: -1 shape: 1 >
}
"""


def written(tmp_path, text):
    path = tmp_path / "data.proto"
    path.write_text(text)
    return str(path)


def test_a_description_is_read_changed_and_written(tmp_path, fluid):
    feed = fluid.DataFeedDesc(written(tmp_path, TEXT))
    feed.set_batch_size(128)
    feed.set_dense_slots(["label"])
    feed.set_use_slots(["label"])
    assert (
        feed.desc()
        == """name: "MultiSlotDataFeed"
batch_size: 128
multi_slot_desc {
  slots {
    name: "words"
    type: "uint64"
    is_dense: false
    is_used: true
  }
  slots {
    name: "label"
    type: "float"
    is_dense: true
    is_used: true
    shape: -1
    shape: 1
  }
}
pipe_command: "cat"
"""
    )
    again = fluid.DataFeedDesc(written(tmp_path, feed.desc()))
    assert again.desc() == feed.desc()


def test_unknown_slots_are_reported(tmp_path, fluid):
    feed = fluid.DataFeedDesc(written(tmp_path, TEXT))
    with pytest.raises(ValueError, match="set_use_slots: there is no slot x; there are words, label"):
        feed.set_use_slots(["x"])
    other = fluid.DataFeedDesc(written(tmp_path, 'name: "Other"'))
    with pytest.raises(ValueError, match="set_dense_slots is for a MultiSlotDataFeed, not for 'Other'"):
        other.set_dense_slots(["x"])


FIELDS = {"name": str, "size": int, "flag": bool, "inner": {"slots": [{"name": str}]}}


@pytest.mark.parametrize(
    "text, message",
    [
        ('name: "a"\nnames: 5', "line 2: there is no field names; there are flag, inner, name, size"),
        ("name: 5", "field name must be a text, not 5"),
        ("size: 5.5", "field size must be an integer, not 5.5"),
        ("flag: yes", "field flag must be true or false, not yes"),
        ("size: 1 size: 2", "field size is given twice"),
        ('name "a"', "field name needs a colon and a value"),
        ("inner: 5", "field inner is a message: { is expected, not 5"),
        ("inner { slots {", "a field is expected, not the end"),
        ("inner { } }", "a field is expected, not }"),
        ('name: "a', """'"a' cannot be part of a message"""),
        ("name:", "field name must be a text, not the end"),
    ],
)
def test_invalid_text_format_is_refused(text, message):
    with pytest.raises(ValueError) as error:
        parse(text, FIELDS)
    assert message in str(error.value)


def test_descriptions_round_trip_through_text():
    message = {"name": 'a "quoted"\\\nname', "size": -5, "flag": False, "inner": {"slots": [{"name": "x"}, {}]}}
    assert parse(print_message(message, FIELDS), FIELDS) == message


def test_nesting_depth_is_bounded():
    deep = {}
    deep["inner"] = deep
    with pytest.raises(ValueError, match="more than 20 deep"):
        parse("inner {" * 1000, deep)
