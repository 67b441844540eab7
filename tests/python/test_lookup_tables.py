"""What fluid.contrib.utils refuses of programs and folders; test_tables.py runs its functions in jobs."""

import pytest


def trainer_program(fluid, *tables, shape=(4, 1), **options):
    """The program of a trainer, and the transpiler that made it."""
    fluid.unique_name.switch()
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        ids = fluid.data("ids", [None, *shape], "int64", **options)
        rows = [
            fluid.layers.embedding(ids, [50, 8], is_sparse=True, is_distributed=True, param_attr=table)
            for table in tables
        ]
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.sums(rows)))
        t = fluid.DistributeTranspiler()
        t.transpile(0, program=main, startup_program=startup, pservers="127.0.0.1:1,127.0.0.1:2", trainers=2)
        return t.get_trainer_program(), t


def test_lookups_keep_shape_and_sequences(fluid):
    convert = fluid.contrib.utils.convert_dist_to_sparse_program

    def kinds(**options):
        program = convert(trainer_program(fluid, "table", **options)[0])
        assert program.global_block().var("table").type == fluid.core.VarDesc.VarType.SELECTED_ROWS
        return [op.type for op in program.global_block().ops[:3]]

    assert kinds(shape=(1,)) == ["lookup_sparse_table", "sum", "mean"]
    assert kinds() == ["lookup_sparse_table", "reshape2", "sum"]
    assert kinds(shape=(1,), lod_level=1) == ["lookup_sparse_table", "lod_reset", "sum"]
    assert kinds(lod_level=1) == ["lookup_sparse_table", "reshape2", "lod_reset"]


def test_invalid_conversions_are_refused(fluid):
    convert = fluid.contrib.utils.convert_dist_to_sparse_program
    main = fluid.Program()
    with pytest.warns(UserWarning, match="the program requests no rows from pservers"):
        assert convert(main) is main
    with pytest.raises(ValueError, match="before it is cloned or saved"):
        convert(trainer_program(fluid, "table")[0].clone())
    with pytest.raises(NotImplementedError, match="several tables with is_distributed=True: a, b"):
        convert(trainer_program(fluid, "a", "b")[0])
    with pytest.raises(ValueError, match="only the first extent of ids may be unknown"):
        convert(trainer_program(fluid, "table", shape=(None, 1))[0])


def test_invalid_loads_are_refused(fluid, tmp_path):
    utils, exe = fluid.contrib.utils.lookup_table_utils, fluid.Executor(fluid.CPUPlace())
    load, folder, nowhere = utils.load_persistables_for_inference, str(tmp_path), str(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="there is no folder"):
        load(nowhere, exe, None, "table")
    with pytest.raises(TypeError, match="takes a Program, not 3"):
        load(folder, exe, 3, "table")
    (tmp_path / "__lookup_table__").mkdir()
    for name in ("table2_0", "a_table_0", "table_x", "table"):
        (tmp_path / "__lookup_table__" / name).touch()
    with pytest.raises(ValueError, match="has no file with rows of table table"):
        load(folder, exe, fluid.Program(), "table")
    load = utils.load_persistables_for_increment
    main, t = trainer_program(fluid, "table")
    server = t.get_pserver_program("127.0.0.1:2")
    assert server._ps_endpoint == "127.0.0.1:2" and server._parameters_on_pservers is t.vars_overview
    for program, path, error, says in (
        (3, folder, TypeError, "takes a Program, not 3"),
        (server.clone(), folder, ValueError, "before it is cloned or saved"),
        (server, nowhere, ValueError, "there is no folder"),
        (server, folder, ValueError, "there is no file"),
    ):
        with pytest.raises(error, match=says):
            load(path, exe, program, "table", str(tmp_path / "no_file"))
