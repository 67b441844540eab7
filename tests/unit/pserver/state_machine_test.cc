#include "executor/pserver/machine/state_machine.h"

#include <gtest/gtest.h>

#include "tests/unit/pserver/machine_driver.h"

namespace penstock::test {
namespace {

TEST(StateMachine, GradientsAreMergedInTrainerOrder) {
  Driver d(Config(3));
  EXPECT_EQ(d.Push(2, 0), "pushed t2");
  EXPECT_EQ(d.Push(1, 0), "pushed t1");
  EXPECT_EQ(d.machine.Lacks(0, 0), std::vector<int>{0});
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "merge t1 c0 s0");
  EXPECT_EQ(d.Merged(), "merge t2 c0 s0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Ran(), "");
  EXPECT_EQ(d.machine.version(0, 0), 1u);
  EXPECT_EQ(d.machine.version(0, 1), 0u);  // no barrier across chunks
}

TEST(StateMachine, InitialValuesAreWrittenOnceThenCompared) {
  Driver d(Config(2));
  EXPECT_EQ(d.PushInitial(1), "pushed t1; initial t1 c0 s0");
  EXPECT_EQ(d.PushInitial(1), "pushed t1");  // a repeat
  EXPECT_EQ(d.PushInitial(0), "pushed t0");  // one at a time
  EXPECT_EQ(d.Pull(0, 0), "");               // a parameter that is being written is not sent
  EXPECT_EQ(d.Merged(), "pulled t0 v0; initial t0 c0 s0");
  EXPECT_EQ(d.Push(0, 0), "pushed t0");
  EXPECT_EQ(d.Merged(), "merge t0 c0 s0");
  EXPECT_EQ(d.Push(1, 0), "pushed t1");
  EXPECT_EQ(d.Merged(), "merge t1 c0 s0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.PushInitial(0), "pushed t0");
  EXPECT_EQ(d.Ran(), "");
  EXPECT_EQ(d.PushInitial(1), "pushed t1");  // a late repeat changes nothing
}

TEST(StateMachine, AnInitialValueOfSomeTrainersOnlyIsAnError) {
  Driver d(Config(2));
  d.PushInitial(1);
  d.Merged();
  d.Push(0, 0);
  d.Push(1, 0);
  d.Merged();
  EXPECT_EQ(d.Merged(), "error t0 E-load-differs; error t1 E-load-differs; end E-load-differs");
}

TEST(StateMachine, AnEarlyDepartureIsReportedOnce) {
  Driver d(Config(3));
  for (int t = 0; t < 3; ++t) d.EndStep(t, 0, {0});
  EXPECT_EQ(d.Complete(1), "completed t1");  // perhaps all complete
  EXPECT_EQ(d.Push(0, 1), "left t1 s1; pushed t0");
  EXPECT_EQ(d.Push(2, 1), "pushed t2");
}

TEST(StateMachine, ADepartureBehindOthersIsEarly) {
  Driver d(Config(2));
  d.Push(0, 0);
  d.Push(1, 0);
  for (int t = 0; t < 2; ++t) d.EndStep(t, 0, {0});
  d.Push(0, 1);
  EXPECT_EQ(d.Complete(1).substr(0, 26), "completed t1; left t1 s1");
}

// One initial value of one chunk, in two parts.
pserver::MachineConfig StartConfig(int trainers) {
  return {.trainers = trainers,
          .part_bytes = 4,
          .params = {{.name = "mean", .bytes_of_chunks = {8}, .start = true}}};
}

std::string PushStart(Driver& d, std::uint32_t part) {
  return d.Do([&](pserver::Actions& out) {
    d.machine.Push({.trainer = 0, .param = 0, .chunk = 0, .step = 0, .part = part, .bytes = Gradient(4)},
                   out);
  });
}

TEST(StateMachine, PullsWaitForTheStartValue) {
  Driver d(StartConfig(2));
  EXPECT_EQ(d.Pull(1, 0), "");
  EXPECT_EQ(d.machine.Lacks(0, 0), std::vector<int>{0});
  EXPECT_EQ(PushStart(d, 1), "pushed t0");
  EXPECT_EQ(PushStart(d, 0), "merge t0 c0 s0; pushed t0");
  EXPECT_EQ(d.Pull(0, 0), "");
  EXPECT_EQ(d.Merged(), "pulled t0 v0; pulled t1 v0");
  EXPECT_EQ(d.machine.Lacks(0, 0), std::vector<int>());
  EXPECT_EQ(PushStart(d, 0), "pushed t0");  // a repeat
  EXPECT_EQ(PushStart(d, 1), "pushed t0");
  EXPECT_EQ(d.EndStep(1, 0, {}), "ended t1");  // nothing is missing
  EXPECT_EQ(d.Pull(1, 1), "pulled t1 v1");
  EXPECT_EQ(d.Complete(0), "completed t0");
  EXPECT_EQ(d.Complete(1), "completed t1; end ok");
}

TEST(StateMachine, AMissingStartValueFailsWaitingPulls) {
  Driver first(StartConfig(2));
  EXPECT_EQ(first.Pull(1, 0), "");
  EXPECT_EQ(first.Complete(0), "completed t0; error t1 E-start-missing; end E-start-missing");
  Driver second(StartConfig(2));
  EXPECT_EQ(second.Complete(0), "completed t0");
  EXPECT_EQ(second.Pull(1, 0), "error t1 E-start-missing; end E-start-missing");
}

TEST(StateMachine, AStartValueDoesNotHoldUpTheLearningRate) {
  pserver::MachineConfig config = Config(1, true);
  config.params = {{"w", {8}}, {.name = "mean", .bytes_of_chunks = {8}, .start = true}};
  Driver d(config);
  for (std::uint64_t step = 0; step < 2; ++step) {
    EXPECT_EQ(d.Push(0, step), StrCat("pushed t0; merge t0 c0 s", step));
    EXPECT_EQ(d.Merged(), StrCat("lr s", step));
    EXPECT_EQ(d.LrRan(), StrCat("run c0 s", step));
    EXPECT_EQ(d.Ran(), "");
  }
}

TEST(StateMachine, ARepeatIsAcknowledgedAndChangesNothing) {
  Driver d(Config(1));
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Push(0, 0), "pushed t0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Push(0, 0), "pushed t0");
  EXPECT_EQ(d.Ran(), "");
  EXPECT_EQ(d.Push(0, 0), "pushed t0");
  EXPECT_EQ(d.machine.version(0, 0), 1u);
  EXPECT_EQ(d.EndStep(0, 0), "ended t0");
  EXPECT_EQ(d.EndStep(0, 0), "ended t0");
  EXPECT_EQ(d.machine.steps_ended(0), 1u);
}

TEST(StateMachine, APullWaitsForItsVersion) {
  Driver d(Config(1));
  EXPECT_EQ(d.Pull(0, 0), "pulled t0 v0");
  EXPECT_EQ(d.Pull(0, 1), "");
  EXPECT_EQ(d.Pull(0, 1), "");
  d.Push(0, 0);
  d.Merged();
  EXPECT_EQ(d.Ran(), "pulled t0 v1");  // once, even if requested several times
  EXPECT_EQ(d.Pull(0, 0), "gone t0 v0");
}

TEST(StateMachine, WhileABlockRunsOnlyACopyIsSent) {
  Driver d(Config(1));
  d.Push(0, 0);
  d.Merged();
  EXPECT_EQ(d.Pull(0, 0), "gone t0 v0");  // not requested before, so there is no copy
  d.Ran();
  EXPECT_EQ(d.Pull(0, 1), "pulled t0 v1");
  d.Push(0, 1);
  d.Merged();
  EXPECT_EQ(d.Pull(0, 1), "pulled t0 v1");  // the copy made for the first
}

TEST(StateMachine, CreditBoundsHowFarATrainerRunsAhead) {
  Driver d(Config(2));
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Push(0, 1), "pushed t0");
  EXPECT_EQ(d.Push(0, 2), "error t0 E-rpc-credit; error t1 E-rpc-credit; end E-rpc-credit");
}

TEST(StateMachine, TheRateIsComputedOncePerStepForAllChunks) {
  Driver d(Config(1, true));
  d.Push(0, 0, 0);
  EXPECT_EQ(d.Merged(0), "lr s0");
  EXPECT_EQ(d.LrRan(), "run c0 s0");
  d.Ran(0);
  EXPECT_EQ(d.Push(0, 1, 0), "pushed t0; merge t0 c0 s1");
  EXPECT_EQ(d.Merged(0), "");  // chunk 1 still needs the rate of step 0
  d.Push(0, 0, 1);
  EXPECT_EQ(d.Merged(1), "run c1 s0");
  EXPECT_EQ(d.Ran(1), "lr s1");
  EXPECT_EQ(d.LrRan(), "run c0 s1");
}

TEST(StateMachine, AMissingGradientIsAnErrorAtTheEndOfTheStep) {
  Driver d(Config(2));
  EXPECT_EQ(d.EndStep(1, 0, {}),
            "error t0 E-step-incomplete; error t1 E-step-incomplete; end E-step-incomplete");
}

TEST(StateMachine, ACompletedTrainerCountsAsZeros) {
  Driver d(Config(2));
  EXPECT_EQ(d.Push(1, 0), "pushed t1");
  EXPECT_EQ(d.Complete(0), "completed t0; left t0 s0; merge t0 c0 s0 zeros; merge t0 c1 s0 zeros");
  EXPECT_EQ(d.Merged(0), "merge t1 c0 s0");
  EXPECT_EQ(d.Merged(0), "run c0 s0");
  EXPECT_EQ(d.Complete(1), "completed t1");  // not yet: the block runs
  EXPECT_EQ(d.Merged(1), "");                // no trainer pushed this step for chunk 1
  EXPECT_EQ(d.Ran(0), "end ok");
}

TEST(StateMachine, CompletionOfAllEndsTheJobAndIsRepeated) {
  Driver d(Config(2));
  EXPECT_EQ(d.Complete(0), "completed t0; merge t0 c0 s0 zeros; merge t0 c1 s0 zeros");
  d.Merged(0);
  d.Merged(1);
  EXPECT_EQ(d.Complete(1), "completed t1; end ok");
  EXPECT_EQ(d.Complete(1), "completed t1");
}

TEST(StateMachine, WrongSizesAndOffsetsAreErrors) {
  for (const auto& [chunk, part, bytes] :
       {std::tuple(2, 0u, 8), std::tuple(0, 1u, 8), std::tuple(0, 0u, 7)}) {
    Driver d(Config(1));
    const std::string got = d.Do([&, chunk = chunk, part = part, bytes = bytes](pserver::Actions& out) {
      d.machine.Push({.trainer = 0,
                      .param = 0,
                      .chunk = chunk,
                      .step = 0,
                      .part = part,
                      .bytes = Gradient(static_cast<std::size_t>(bytes))},
                     out);
    });
    EXPECT_EQ(got.rfind("error t0 E-rpc-", 0), 0u) << got;
  }
}

TEST(StateMachine, ABlocksErrorReachesEveryTrainer) {
  Driver d(Config(2));
  EXPECT_EQ(d.Do([&](pserver::Actions& out) { d.machine.BlockDone(0, 0, InternalError("E-x", "no"), out); }),
            "error t0 E-x; error t1 E-x; end E-x");
}

// A table: rows of 12 bytes with their ids, parts of 8.
pserver::MachineConfig TableConfig(int trainers) {
  return {.trainers = trainers,
          .part_bytes = 8,
          .params = {{.name = "emb", .bytes_of_chunks = {40}, .pushed_row_bytes = 12}}};
}

pserver::PushEvent RowsPush(int trainer, std::uint64_t step, std::uint64_t rows, std::uint32_t part = 0) {
  const std::size_t bytes = rows * 12;
  return {.trainer = trainer,
          .step = step,
          .part = part,
          .bytes = Gradient(std::min<std::size_t>(8, bytes - part * 8)),
          .rows = rows};
}

std::string PullRows(Driver& driver, int trainer, std::uint64_t version, std::uint64_t request) {
  return driver.Do([&](pserver::Actions& out) {
    driver.machine.PullRows({.trainer = trainer,
                             .param = 0,
                             .version = version,
                             .request = request,
                             .ids = pserver::RowIds::Of(Gradient(8))},
                            out);
  });
}

TEST(StateMachine, RowGradientsStateTheirLengthAndMayBeEmpty) {
  Driver driver(TableConfig(2));
  const auto push = [&](const pserver::PushEvent& event) {
    return driver.Do([&](pserver::Actions& out) { driver.machine.Push(event, out); });
  };
  EXPECT_EQ(push(RowsPush(0, 0, 1, 1)), "pushed t0");
  EXPECT_EQ(push(RowsPush(0, 0, 1, 1)), "pushed t0") << "a repeat";
  EXPECT_EQ(push(RowsPush(0, 0, 1, 0)), "pushed t0; merge t0 c0 s0 of 1");
  EXPECT_EQ(push(RowsPush(1, 0, 0)), "pushed t1");
  EXPECT_EQ(driver.Merged(), "merge t1 c0 s0");
  EXPECT_EQ(push(RowsPush(1, 0, 0)), "pushed t1") << "a repeat";
  EXPECT_EQ(driver.Merged(), "run c0 s0");
  EXPECT_EQ(driver.Ran(), "credit t0; credit t1") << "who looks nothing up has no other way to learn of it";
  EXPECT_EQ(driver.machine.version(0, 0), 1u);
  EXPECT_EQ(driver.machine.credit(0, 0, 0), 3u);
}

TEST(StateMachine, RefusesARowCountThatItsPartsContradict) {
  const auto push = [](const std::vector<pserver::PushEvent>& events) {
    Driver driver(TableConfig(2));
    std::string last;
    for (const pserver::PushEvent& event : events)
      last = driver.Do([&](pserver::Actions& out) { driver.machine.Push(event, out); });
    return last;
  };
  const std::string failed = "error t0 E-rpc-size; error t1 E-rpc-size; end E-rpc-size";
  pserver::PushEvent huge = RowsPush(0, 0, 1);
  for (const std::uint64_t rows : {~std::uint64_t{0}, std::uint64_t{1} << 40, std::uint64_t{0}}) {
    huge.rows = rows;
    EXPECT_EQ(push({huge}), failed) << rows;
  }
  EXPECT_EQ(push({RowsPush(0, 0, 2, 0), RowsPush(0, 0, 3, 1)}), failed) << "two gradients";
  pserver::PushEvent beyond = RowsPush(0, 0, 1, 1);
  beyond.part = 2;
  EXPECT_EQ(push({beyond}), failed);
}

TEST(StateMachine, RowsAreOfTheRequestedVersion) {
  Driver driver(TableConfig(1));
  EXPECT_EQ(PullRows(driver, 0, 0, 7), "rows t0 v0 r7");
  EXPECT_EQ(PullRows(driver, 0, 1, 8), "") << "waits";
  EXPECT_EQ(PullRows(driver, 0, 1, 8), "") << "a repeat";
  driver.Do([&](pserver::Actions& out) { driver.machine.Push(RowsPush(0, 0, 0), out); });
  EXPECT_EQ(driver.Merged(), "run c0 s0");
  EXPECT_EQ(PullRows(driver, 0, 0, 9), "rowsgone t0 v0 r9") << "its block runs";
  EXPECT_EQ(driver.Ran(), "credit t0; rows t0 v1 r8");
  EXPECT_EQ(PullRows(driver, 0, 0, 9), "rowsgone t0 v0 r9");
}

TEST(StateMachine, SavesATableOnceAtTheRequestedVersion) {
  Driver driver(TableConfig(1));
  const auto event = [](std::uint64_t version, std::uint32_t request, const std::string& file) {
    return pserver::SaveEvent{.trainer = 0, .param = 0, .version = version, .request = request, .file = file};
  };
  const auto save = [&](const pserver::SaveEvent& asked) {
    return driver.Do([&](pserver::Actions& out) { driver.machine.Save(asked, out); });
  };
  const auto saved = [&](const pserver::SaveEvent& done, const Status& status) {
    return driver.Do([&](pserver::Actions& out) { driver.machine.SaveDone(done, status, out); });
  };
  EXPECT_EQ(save(event(1, 0, "a")), "") << "waits for the step";
  driver.Do([&](pserver::Actions& out) { driver.machine.Push(RowsPush(0, 0, 0), out); });
  EXPECT_EQ(driver.Merged(), "run c0 s0");
  EXPECT_EQ(save(event(1, 0, "a")), "") << "a repeat";
  EXPECT_EQ(driver.Ran(), "credit t0; save t0 a");
  EXPECT_EQ(save(event(1, 0, "a")), "") << "a repeat while it is written";
  EXPECT_EQ(saved(event(1, 0, "a"), OkStatus()), "saved t0 r0 ");
  EXPECT_EQ(save(event(1, 0, "a")), "saved t0 r0 ") << "a repeat does not write again";
  EXPECT_EQ(save(event(1, 1, "b")), "save t0 b");
  EXPECT_EQ(driver.Do([&](pserver::Actions& out) { driver.machine.Complete(0, out); }), "completed t0")
      << "does not end while it writes";
  EXPECT_EQ(saved(event(1, 1, "b"), InvalidArgument("E-disk", "full")), "saved t0 r1 E-disk; end ok");
}

TEST(StateMachine, BoundsPendingRowRequestsPerTrainer) {
  Driver driver(TableConfig(1));
  std::string last;
  for (std::uint64_t request = 0; request < 2000 && last.empty(); ++request)
    last = PullRows(driver, 0, 1, request);
  EXPECT_EQ(last, "error t0 E-rpc-credit; end E-rpc-credit");
}

}  // namespace
}  // namespace penstock::test
