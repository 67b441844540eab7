"""The pictures of the concepts: each is drawn from what Penstock computes, when the documentation is built."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

from svg import Drawing

SERVERS = ["10.0.0.1:6174", "10.0.0.2:6174"]
CHUNK = 1 << 20


def _model(width):
    """A fresh linear model: (main program, startup program)."""
    import penstock.fluid as fluid

    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
        hidden = fluid.layers.fc(x, width, param_attr=fluid.ParamAttr(name="w"), bias_attr=False)
        scores = fluid.layers.fc(hidden, 1, param_attr=fluid.ParamAttr(name="v"), bias_attr=False)
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.square_error_cost(scores, y)))
    return main, startup


def _transpiled(width):
    import penstock.fluid as fluid

    main, startup = _model(width)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, program=main, pservers=",".join(SERVERS), trainers=2, startup_program=startup)
    return transpiler


def _kind(op):
    if op.type in ("send", "recv", "send_barrier", "fetch_barrier"):
        return "exchange"
    if op.type in ("sgd", "sum", "scale"):
        return "update"
    return "backward" if op.type.endswith("_grad") else "compute"


def role_programs():
    """The ops of trainer 0 and of both pservers, as the transpiler makes them, and what passes between them."""
    transpiler = _transpiled(4)
    trainer = transpiler.get_trainer_program().global_block().ops
    row, gap, width = 22, 26, 190
    drawing = Drawing(
        "roles",
        "The ops of a trainer's program and of two pservers' programs, and the messages between them",
        700,
        60 + gap * len(trainer),
    )
    drawing.text(20, 20, "trainer 0", kind="title")
    lines = {}
    for at, op in enumerate(trainer):
        y = 32 + gap * at
        drawing.box(20, y, width, row, _kind(op), op.type)
        if op.type in ("send", "recv"):
            lines[op.type, SERVERS.index(op.attr("epmap")[0])] = y + row / 2
    for server, address in enumerate(SERVERS):
        blocks = transpiler.get_pserver_program(address).blocks[1:]
        ops = [op for block in blocks for op in block.ops]
        top = 90 + server * 170
        drawing.text(460, top - 12, f"pserver {server}: block of {ops[-1].input('Param')[0]}", kind="title")
        for at, op in enumerate(ops):
            drawing.box(460, top + gap * at, width, row, _kind(op), op.type)
        drawing.arrow(20 + width, lines["send", server], 458, top + row / 2, "line out", 110)
        drawing.arrow(460, top + gap * (len(ops) - 1) + row / 2, 22 + width, lines["recv", server], "line back", -110)
    return drawing, (
        "Forward and backward ops stay on the trainer. Updates move to the pservers, where `sum` and `scale` make "
        "the mean of all trainers' gradients. Solid: gradients; dashed: new values."
    )


def slices():
    """Each parameter of a model, cut as the plan says, and the chunks of each slice."""
    transpiler = _transpiled(120000)
    params = re.findall(r"param (\S+) : f32\[(\d+), (\d+)\][^\n]*\n((?:  rows[^\n]*\n?)+)", transpiler.plan)
    drawing = Drawing(
        "slices",
        "Parameters cut into slices of rows on two pservers, and slices into chunks",
        700,
        40 + 84 * len(params),
    )
    for at, (name, rows, columns, cut) in enumerate(params):
        y, rows, columns = 44 + 84 * at, int(rows), int(columns)
        drawing.text(20, y - 8, f"{name} : f32[{rows:,}, {columns:,}]", kind="title")
        for begin, end, server in re.findall(r"rows \[(\d+), (\d+)\) on pserver (\d+)", cut):
            begin, end = int(begin), int(end)
            x, width = 20 + 660 * begin / rows, 660 * (end - begin) / rows
            drawing.box(x, y, width, 30, f"server{server}", f"rows {begin:,} to {end - 1:,}: pserver {server}")
            step = max(1, CHUNK // (4 * columns))
            for row in range(begin, end, step):
                right = min(row + step, end)
                drawing.box(20 + 660 * row / rows, y + 34, 660 * (right - row) / rows, 12, f"server{server} chunk")
    return drawing, "Top: slices. Bottom: the chunks of each slice, of at most 1 MiB."


def _sync(speeds, steps):
    """Simulates sync mode: (trainer, step, begin, end of its computation), (version, time)."""
    works, versions, start = [], [(0, 0.0)], 0.0
    for step in range(steps):
        ends = [start + speed[step] for speed in speeds]
        works += [(trainer, step, start, end) for trainer, end in enumerate(ends)]
        start = max(ends) + 0.5
        versions.append((step + 1, max(ends) + 0.25))
    return works, versions


def _async(speeds, steps):
    """Simulates async mode: each gradient makes a version, and no trainer waits."""
    works, ends = [], []
    for trainer, speed in enumerate(speeds):
        at = 0.0
        for step in range(steps):
            works.append((trainer, step, at, at + speed[step]))
            ends.append(at + speed[step] + 0.2)
            at += speed[step] + 0.4
    return works, [(0, 0.0)] + [(number + 1, time) for number, time in enumerate(sorted(ends))]


def versions():
    """The versions of a chunk over time, in sync and in async mode."""
    speeds = [[1.6, 1.5, 1.7, 1.6], [2.6, 1.9, 3.0, 1.8]]
    drawing = Drawing("versions", "Versions of a chunk over time in sync and async mode, with two trainers", 700, 330)
    unit = 50
    for top, (mode, run) in zip((30, 190), (("sync", _sync), ("async", _async))):
        works, made = run(speeds, 4)
        drawing.text(20, top - 8, mode, kind="title")
        for trainer in range(2):
            drawing.text(20, top + 22 + 36 * trainer, f"trainer {trainer}", small=True)
        drawing.text(20, top + 94, "pserver", small=True)
        for trainer, step, begin, end in works:
            x = 90 + unit * begin
            drawing.box(
                x, top + 4 + 36 * trainer, unit * (end - begin), 26, f"server{trainer}", f"step {step}", small=True
            )
            done = min(time for version, time in made if version and time >= end)
            drawing.arrow(x + unit * (end - begin), top + 30 + 36 * trainer, 90 + unit * done, top + 78, "line out")
        times = [time for _, time in made] + [11.6]
        for (version, begin), end in zip(made, times[1:]):
            drawing.box(90 + unit * begin, top + 80, unit * (end - begin), 22, "update", f"v{version}", small=True)
    return drawing, (
        "In sync mode a version contains the gradients of all trainers, and the faster trainer "
        "waits. In async mode each "
        "gradient makes a version, and nobody waits."
    )


def tables():
    """Which pserver has which rows of a table, and where the ids of a batch go."""
    rows, ids = 12, [1, 9, 4, 10]
    drawing = Drawing(
        "tables", "Rows of a table on two pservers, range-sliced and sharded by id, and the ids of a batch", 700, 250
    )
    owners = {
        "range-sliced (is_sparse)": lambda row: int(row >= rows // 2),
        "sharded by id (is_distributed)": lambda row: row % 2,
    }
    for at, (title, owner) in enumerate(owners.items()):
        left = 20 + 350 * at
        drawing.text(left, 20, title, kind="title")
        for number, id in enumerate(ids):
            drawing.box(left + 10 + 78 * number, 32, 56, 24, "compute", f"id {id}", small=True)
        for server in range(2):
            x = left + 165 * server
            mine = [row for row in range(rows) if owner(row) == server]
            drawing.text(x, 228, f"pserver {server}", small=True)
            for place, row in enumerate(mine):
                wanted = row in ids
                drawing.box(
                    x + 50 * (place % 3),
                    146 + 34 * (place // 3),
                    46,
                    28,
                    f"server{server}" + ("" if wanted else " chunk"),
                    f"row {row}",
                    small=True,
                )
                if wanted:
                    number = ids.index(row)
                    drawing.arrow(
                        left + 38 + 78 * number, 58, x + 50 * (place % 3) + 23, 144 + 34 * (place // 3), "line out"
                    )
    return drawing, (
        "Ids 1, 9, 4 and 10 of a batch go to the pservers that have their rows. A trainer asks each "
        "pserver once per "
        "step, and sends the gradients of these rows back."
    )


def _plan(folder, config):
    """The report of `penstock plan` on a dense model, as JSON."""
    (folder / "case.json").write_text(json.dumps(config))
    penstock = pathlib.Path(sys.executable).with_name("penstock")
    done = subprocess.run(
        [
            penstock,
            "plan",
            "--main",
            folder / "main.pb",
            "--startup",
            folder / "startup.pb",
            "--config",
            folder / "case.json",
            "--json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def _busiest(report):
    """The most bytes that a process sends or receives in a step."""
    if not report.get("pservers"):
        return max(one["ring"]["bytes"] for one in report["trainer_programs"])
    processes = [*report["pservers"], *report["trainer_programs"]]
    return max(one["traffic"][way]["bytes"] for one in processes for way in ("up", "down"))


def exchange():
    """The bytes that the busiest process sends or receives in a step, by pservers and by all-reduce."""
    counts, bars = (2, 4, 8), []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, program in zip(("main.pb", "startup.pb"), _model(80000)):
            (folder / file).write_bytes(program.desc.serialize_to_string())
        for trainers in counts:
            ranks = [f"10.1.0.{number + 1}:6170" for number in range(trainers)]
            for title, kind, servers in (
                ("1 pserver", "server0", 1),
                (f"{trainers} pservers", "server1", trainers),
                ("all-reduce", "update", 0),
            ):
                config = {
                    "pserver_endpoints": [f"10.0.0.{number + 1}:6174" for number in range(servers)],
                    "config": {"trainers": trainers},
                }
                if not servers:
                    config = {"trainer_endpoints": ranks, "config": {"kind": "nccl2", "trainers": trainers}}
                bars.append((trainers, title, kind, _busiest(_plan(folder, config))))
    top = max(load for *_, load in bars)
    drawing = Drawing(
        "exchange", "Bytes of the busiest process per step, by pservers and by all-reduce", 700, 64 + 24 * len(bars)
    )
    for at, (trainers, title, kind, load) in enumerate(bars):
        y = 26 + 24 * at + 10 * (at // 3)
        drawing.text(20, y + 14, f"{trainers} trainers, {title}", small=True)
        drawing.box(190, y, 400 * load / top, 18, kind)
        drawing.text(196 + 400 * load / top, y + 14, f"{load / 1e6:.1f} MB", small=True)
    size = sum(int(rows) * int(columns) for rows, columns in ((13, 80000), (80000, 1))) * 4
    return drawing, (
        f"What the busiest process sends or receives in a step, each way, for {size / 1e6:.1f} MB of "
        f"dense parameters, by "
        "`penstock plan --json`."
    )


PICTURES = {"roles": role_programs, "slices": slices, "versions": versions, "tables": tables, "exchange": exchange}


def write_pictures(folder):
    """Writes each picture as a page fragment, which a page includes."""
    folder.mkdir(parents=True)
    for name, draw in PICTURES.items():
        drawing, caption = draw()
        caption = re.sub(r"`([^`]*)`", r"<code>\1</code>", caption)
        (folder / f"{name}.txt").write_text(
            f'```{{raw}} html\n<figure class="picture"><div>{drawing.markup()}</div>'
            f"<figcaption>{caption}</figcaption></figure>\n```\n"
        )
