"""Random settings of the transpiler, in the format of the corpus's case.json."""


def settings(dice):
    """One job."""
    pservers, trainers = dice.between(1, 4), dice.between(1, 4)
    made = {
        "kind": "pserver",
        "sync_mode": True,
        "pservers": pservers,
        "trainers": trainers,
        "split_method": "RoundRobin",
        "slice_var_up": dice.chance(0.8),
        "min_block_size": dice.pick([8, 16, 64, 8192]),
        "min_block_size_after_ctor": True,
        "runtime_split_send_recv": False,
        "half_async": False,
        "completely_not_async": False,
        "enable_dc_asgd": False,
        "config_sync_mode": None,
        "trainer_ids": [0] if trainers == 1 or dice.chance(0.5) else [0, trainers - 1],
    }
    mode = dice.pick(["sync", "sync", "sync", "async", "async_rt", "half_async", "geo", "not_async"])
    if mode != "sync":
        made.update(sync_mode=False, config_sync_mode=False)
    if mode in ("async_rt", "half_async", "not_async"):
        made["runtime_split_send_recv"] = True
    if mode == "half_async":
        made["half_async"] = True
    if mode == "not_async":
        made["completely_not_async"] = True
    if mode == "geo":
        made["kind"] = "geo"
        made["geo_sgd_need_push_nums"] = dice.pick([1, 5, 100])
    return made


def addresses(count):
    return [f"127.0.0.1:{6174 + i}" for i in range(count)]
