"""Small tools of Fluid that scripts import: union-find, waiting for servers, tables of a program, slices, graphs."""

import socket

import pytest
from penstock.fluid import distribute_lookup_table, graphviz
from penstock.fluid.transpiler import details, distribute_transpiler


def test_sets_are_merged():
    sets = details.UnionFind("abcdea")
    for x, y in ("ab", "cd", "bd"):
        sets.union(x, y)
    assert sets.is_connected("a", "c") and not sets.is_connected("a", "e")
    assert len({sets.find(x) for x in "abcd"}) == 1 and sets.find("x") == -1
    assert not sets.is_connected("x", "x") and details.ufind.UnionFind().find("a") == -1
    with pytest.raises(ValueError, match="there is no element 'x'"):
        sets.union("a", "x")


def test_servers_are_waited_for(monkeypatch, capfd):
    with socket.create_server(("127.0.0.1", 0)) as late, socket.create_server(("127.0.0.1", 0)) as there:
        ports = [server.getsockname()[1] for server in (late, there)]
        late.close()
        rounds = []

        def start_late(seconds):
            rounds.append(socket.create_server(("127.0.0.1", ports[0])))

        monkeypatch.setattr(details.checkport, "_pause", start_late)
        details.wait_server_ready([f"127.0.0.1:{port}" for port in ports])
        assert len(rounds) == 1
        rounds[0].close()
    assert f"no server yet at 127.0.0.1:{ports[0]}\n" in capfd.readouterr().err


@pytest.mark.parametrize(
    "wrong, error",
    [("127.0.0.1:1", TypeError), (["127.0.0.1"], ValueError), ([":1"], ValueError), (["h:x"], ValueError)],
)
def test_invalid_address_lists_are_refused(wrong, error):
    with pytest.raises(error, match="wait_server_ready"):
        details.wait_server_ready(wrong)


def test_find_distributed_lookup_table_names_the_table(fluid):

    def look_up(ids, table, distributed, layer=fluid.layers.embedding):
        return layer(ids, [100, 8], is_sparse=True, is_distributed=distributed, param_attr=table)

    main = fluid.default_main_program()
    first, second = (fluid.data(name, [None, 1], "int64") for name in ("first", "second"))
    look_up(first, "local", False)
    assert distribute_lookup_table.find_distributed_lookup_table(main) is None
    rows = [look_up(first, "table", True), look_up(second, "table", True, fluid.embedding)]
    assert distribute_lookup_table.find_distributed_lookup_table(main) == "table"
    assert distribute_lookup_table.find_distributed_lookup_table_inputs(main, "table") == [first, second]
    assert distribute_lookup_table.find_distributed_lookup_table_outputs(main, "table") == rows
    with fluid.program_guard(main.clone()):
        look_up(first, "table", False)
        with pytest.raises(RuntimeError, match="table is also looked up without is_distributed"):
            distribute_lookup_table.find_distributed_lookup_table(fluid.default_main_program())
    look_up(first, "other", True)
    with pytest.raises(RuntimeError, match="one distributed table, but these are: table, other"):
        distribute_lookup_table.find_distributed_lookup_table(main)


def test_vars_distributed_finds_slices_by_name(fluid):
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 100]), 200, param_attr="w", bias_attr=False))
    fluid.optimizer.SGD(0.1).minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers="10.0.0.1:1,10.0.0.2:1", trainers=1)
    of_server = t.get_pserver_program("10.0.0.2:1").global_block().vars
    same = distribute_transpiler.same_or_split_var
    assert any(same(name, "w") for name in of_server)
    assert same("w", "w") and not same("w2", "w") and not same("w", "w.block0")
    block = distribute_transpiler.VarBlock("w", 1, 30)
    assert (block.varname, block.offset, block.size, str(block)) == ("w", 1, 30, "w:1:30")


def test_graphs_are_valid_graphviz(tmp_path, monkeypatch):
    graph = graphviz.Graph('a "b"', rankdir="LR")
    same = graph.rank_group("same", 1)
    x, y = graph.node("x", "arg", rank=same), graph.node("<<b>y</b>>", "arg", color="red", rank=same)
    edge = graph.edge(x, y, style="dotted")
    assert (x.name, y.name, str(edge)) == ("arg_0", "arg_1", 'arg_0 -> arg_1 [style="dotted"];')
    assert graph.code() == "\n".join(
        [
            "digraph G {",
            r'  label="a \"b\"";',
            '  rankdir="LR";',
            "  {rank=same; arg_0, arg_1}",
            '  arg_0 [label="x"];',
            '  arg_1 [label=<<b>y</b>>, color="red"];',
            '  arg_0 -> arg_1 [style="dotted"];',
            "}",
            "",
        ]
    )
    with pytest.raises(ValueError, match="no rank group other"):
        graph.node("z", "arg", rank="other")
    path = tmp_path / "graph.dot"
    monkeypatch.setattr(graphviz.shutil, "which", lambda command: None)
    assert graph.compile(str(path)) == str(tmp_path / "graph.pdf") and path.read_text() == graph.code()
    with pytest.raises(RuntimeError, match="whose command dot draws it, is not installed"):
        graph.show(str(path))


def test_a_drawing_is_made_and_opened(tmp_path, monkeypatch):
    commands, opened = [], []

    def draw(command, check):
        commands.append(command)
        (tmp_path / "net.pdf").write_text("drawn")

    monkeypatch.setattr(graphviz.shutil, "which", lambda command: "/usr/bin/dot")
    monkeypatch.setattr(graphviz.subprocess, "run", draw)
    monkeypatch.setattr(graphviz.webbrowser, "open", opened.append)
    preview = graphviz.GraphPreviewGenerator("net")
    op = preview.add_op("mul", highlight=True, tooltip="here")
    preview.add_edge(preview.add_param("w", "float32"), op, highlight=True)
    preview.add_edge(op, preview.add_arg("out"))
    preview(str(tmp_path / "net.dot"), show=True)
    assert commands == [["dot", "-Tpdf", str(tmp_path / "net.dot"), "-o", str(tmp_path / "net.pdf")]]
    assert opened == [(tmp_path / "net.pdf").as_uri()]
    text = (tmp_path / "net.dot").read_text()
    assert 'op_0 [label="mul", shape="box", style="filled", fillcolor="orange", tooltip="here"];' in text
    assert 'param_0 -> op_0 [color="orange"];' in text and 'op_0 -> arg_0 [color="black"];' in text
