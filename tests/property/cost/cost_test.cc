// Properties of the cost of every job: nothing is lost or counted twice, and the model agrees with an
// independent count.
#include "transpiler/cost/cost.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "operators/all_ops.h"
#include "tests/property/cost/role_jobs.h"
#include "transpiler/cost/choose_exchange.h"
#include "transpiler/cost/choose_pservers.h"
#include "transpiler/cost/expect.h"

namespace penstock {
namespace {

using test::CorpusJobs;
using test::CostedJob;
using test::RandomCostedJob;

constexpr unsigned kSeeds = 60;

std::vector<CostedJob> AllJobs() {
  std::vector<CostedJob> jobs = CorpusJobs();
  for (unsigned seed = 0; seed < kSeeds; ++seed) jobs.push_back(RandomCostedJob(seed));
  return jobs;
}

struct Costed {
  const CostedJob* source;
  cost::Job job;
  cost::CostReport cost;
};

const std::vector<Costed>& AllCosted() {
  static const std::vector<CostedJob> jobs = AllJobs();
  static const std::vector<Costed> costed = [] {
    std::vector<Costed> out;
    for (const CostedJob& source : jobs) {
      Result<cost::Job> job = source.Read();
      EXPECT_TRUE(job.ok()) << source.name << ": " << job.status().ToString();
      if (!job.ok()) continue;
      const Result<cost::CostReport> cost = cost::EstimateCost(*job, {.rows_per_step = 37});
      EXPECT_TRUE(cost.ok()) << source.name << ": " << cost.status().ToString();
      if (cost.ok()) out.push_back({&source, *std::move(job), *cost});
    }
    return out;
  }();
  return costed;
}

// Each variable's size fits an integer, but their sum does not.
TEST(JobSize, OverflowIsRefused) {
  Program trainer;
  Op sum("sum");
  std::vector<std::string> large;
  for (int i = 0; i < 1025; ++i) {
    large.push_back(StrCat("v", i));
    Var var = TensorVar(large.back(), DType::kFp32, {Dim{1} << 24, Dim{1} << 24});
    var.persistable = true;
    trainer.MutableBlock(0).SetVar(std::move(var));
  }
  trainer.MutableBlock(0).Append(sum.AddInput("X", large).AddOutput("Out", {"v0"}));
  Program pserver;
  pserver.MutableBlock(0).Append(Op("listen_and_serv").Set("endpoint", "a:1").Set("Fanin", 1));
  const Result<cost::Job> job = cost::ReadJob(AllOps(), {.trainers = {{"trainer.pb", &trainer}},
                                                         .trainer_startups = {},
                                                         .pservers = {{"pserver_0.pb", &pserver}}});
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.status().id(), "E-job-size") << job.status().ToString();
}

TEST(CostOfAnyJob, IsComputedForEveryCase) {
  EXPECT_GE(AllCosted().size(), kSeeds + (test::CorpusFolder().empty() ? 15 : 110));
}

TEST(CostOfAnyJob, PserversHoldEachParameterOnce) {
  for (const Costed& one : AllCosted()) {
    std::int64_t held = 0, whole = 0;
    for (const cost::PserverCost& pserver : one.cost.pservers) held += pserver.parameter_bytes;
    for (const cost::JobParam& param : cost::ParamsOf(one.job)) {
      whole += param.shape.Count() * static_cast<std::int64_t>(SizeOf(param.dtype));
    }
    EXPECT_EQ(held, whole) << one.source->name;
    for (std::size_t i = 0; i < one.cost.pservers.size(); ++i) {
      const cost::JobMemory& memory = one.job.pserver_memory[i];
      EXPECT_EQ(memory.parameters, one.cost.pservers[i].parameter_bytes) << one.source->name;
    }
  }
}

TEST(CostOfAnyJob, EachMessageIsCountedOncePerSide) {
  for (const Costed& one : AllCosted()) {
    cost::Traffic trainers, pservers;
    int count = 0;
    for (const cost::TrainerCost& trainer : one.cost.trainers) {
      trainers += trainer.total.Times(trainer.count);
      count += trainer.count;
    }
    for (const cost::PserverCost& pserver : one.cost.pservers) pservers += pserver.traffic;
    EXPECT_EQ(trainers.up, pservers.up) << one.source->name;
    EXPECT_EQ(trainers.down, pservers.down) << one.source->name;
    EXPECT_EQ(count, std::max<int>(one.job.trainers, static_cast<int>(one.cost.trainers.size())))
        << one.source->name;
  }
}

TEST(CostOfAnyJob, TableRowsAddUpForAnySlicing) {
  int tables = 0;
  for (const Costed& one : AllCosted()) {
    for (std::size_t t = 0; t < one.cost.tables.size(); ++t) {
      std::int64_t up = 0, down = 0, messages = 0;
      for (const cost::JobMessage& message : one.job.present.front().messages) {
        if (message.table != static_cast<int>(t)) continue;
        const std::int64_t rows =
            37 * message.row_end / one.cost.tables[t].rows - 37 * message.row_begin / one.cost.tables[t].rows;
        (message.up ? up : down) += rows * message.bytes_per_row;
        ++messages;
      }
      EXPECT_EQ(up, 37 * one.cost.tables[t].up_bytes_per_row) << one.source->name;
      EXPECT_EQ(down, 37 * one.cost.tables[t].down_bytes_per_row) << one.source->name;
      EXPECT_GT(messages, 0) << one.source->name;
      ++tables;
    }
  }
  EXPECT_GE(tables, test::CorpusFolder().empty() ? 0 : 30);
}

// Counts from the ops of the programs: the variables of trainer 0's sends and recvs, and those that the
// pserver's listen_and_serv receives.
TEST(CostOfAnyJob, AgreesWithSynchronousOps) {
  int compared = 0;
  for (const Costed& one : AllCosted()) {
    if (one.job.exchange != cost::Exchange::kSync || !one.cost.tables.empty() || one.source->pservers.empty())
      continue;
    if (one.source->name.find("@sync_p1t1") != std::string::npos) continue;  // Fluid's sides do not match
    std::int64_t sent = 0, received = 0, up = 0, down = 0, taken = 0, barriers = 0;
    const Block& main = one.source->trainers[0].main();
    for (const OpEntry& entry : main.ops()) {
      const Op& op = *entry.op;
      for (const std::string& name : op.type() == "send" ? op.Input("X") : ArgList()) {
        up += 1;
        sent += main.FindVar(name)->shape().Count() * 4;
      }
      for (const std::string& name : op.type() == "recv" ? op.Output("Out") : ArgList()) {
        down += 1;
        received += main.FindVar(name)->shape().Count() * 4;
      }
      if (op.type() == "send_barrier" || op.type() == "fetch_barrier") {
        barriers += static_cast<std::int64_t>(op.Get<std::vector<std::string>>("endpoints")->size());
      }
    }
    for (const Program& pserver : one.source->pservers) {
      const auto& ops = pserver.main().ops();
      taken += static_cast<std::int64_t>(ops.back().op->Input("X").size());
    }
    if (barriers == 0) continue;  // Fluid's trainers and pservers have different modes
    const cost::Traffic& total = one.cost.trainers[0].total;
    EXPECT_EQ(total.up, (cost::Volume{up + barriers, sent})) << one.source->name;
    EXPECT_EQ(total.down, (cost::Volume{down, received})) << one.source->name;
    EXPECT_EQ(taken, up * one.job.trainers) << one.source->name;
    ++compared;
  }
  EXPECT_GE(compared, static_cast<int>(kSeeds));
}

TEST(CostOfAnyJob, AgreesWithThePlan) {
  for (const Costed& one : AllCosted()) {
    if (!one.source->plan) continue;
    const plan::PlacementPlan& plan = *one.source->plan;
    std::vector<std::int64_t> bytes(plan.pservers.size(), 0);
    for (const plan::ParamPlacement& param : plan.params) {
      for (const plan::Slice& slice : param.slices) {
        bytes[static_cast<std::size_t>(slice.pserver)] += param.ShapeOf(slice).Count() * 4;
      }
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_EQ(one.cost.pservers[i].parameter_bytes, bytes[i]) << one.source->name;
      EXPECT_EQ(one.cost.pservers[i].address, plan.pservers[i]) << one.source->name;
    }
  }
}

// Slicing a job again for its own number of pservers gives the same job.
TEST(CostOfAnyJob, ReslicingForTheSameCountGivesTheSameJob) {
  int compared = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const CostedJob source = RandomCostedJob(seed);
    const Result<cost::Job> job = source.Read();
    ASSERT_TRUE(job.ok());
    plan::TranspileConfig like = cost::ConfigLike(*job);
    if (!like.slice_params) continue;
    const Result<cost::Job> again = cost::WithPservers(*job, static_cast<int>(job->pservers.size()), like);
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    const Result<cost::CostReport> a = cost::EstimateCost(*job, {}), b = cost::EstimateCost(*again, {});
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a->trainers[0].total.up.bytes, b->trainers[0].total.up.bytes) << source.name;
    EXPECT_EQ(a->trainers[0].total.down.bytes, b->trainers[0].total.down.bytes) << source.name;
    ++compared;
  }
  for (const Costed& one : AllCosted()) {
    if (one.source->plan || one.job.pservers.empty() || one.source->name.find("@sync_p") == std::string::npos)
      continue;
    // Fluid slices parameters that need a whole update, and drops adadelta.
    const auto params = cost::ParamsOf(one.job);
    const bool cut_alike = std::all_of(params.begin(), params.end(),
                                       [](const cost::JobParam& param) { return param.elementwise; });
    if (!cut_alike || params.empty()) continue;
    const Result<cost::Job> again =
        cost::WithPservers(one.job, static_cast<int>(one.job.pservers.size()), cost::ConfigLike(one.job));
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    const Result<cost::CostReport> b = cost::EstimateCost(*again, {.rows_per_step = 37});
    ASSERT_TRUE(b.ok());
    for (std::size_t i = 0; i < one.cost.pservers.size(); ++i) {
      EXPECT_EQ(one.cost.pservers[i].traffic.up, b->pservers[i].traffic.up)
          << one.source->name << " pserver " << i;
      EXPECT_EQ(one.cost.pservers[i].traffic.down, b->pservers[i].traffic.down)
          << one.source->name << " pserver " << i;
    }
    ++compared;
  }
  EXPECT_GE(compared, 40);
}

TEST(CostOfAnyJob, IsMonotonicInNetworkSpeed) {
  for (const Costed& one : AllCosted()) {
    double before = 0;
    for (const double rate : {1e12, 1e10, 1e9, 1e7}) {
      const Result<cost::Expectation> e =
          cost::Expect(one.job, one.cost, {.bits_per_second = rate, .step_ms = 7});
      ASSERT_TRUE(e.ok()) << e.status().ToString();
      EXPECT_GE(e->step_ms, 7) << one.source->name;
      EXPECT_GE(e->step_ms, before) << one.source->name;
      EXPECT_LE(e->speedup, one.job.trainers + 1e-9) << one.source->name;
      before = e->step_ms;
    }
  }
}

// The published measurements that expect.h names: no expected time is below that of the wire, or three times
// as long.
TEST(CostModel, IsCloseToAndBelowMeasurements) {
  constexpr std::int64_t kBytes = 400'000'000;
  const cost::Network network{.bits_per_second = 1e10, .step_ms = 1, .message_us = 0};
  const std::vector<std::pair<int, double>> measured = {{8, 1.2}, {4, 2.0}, {2, 3.4}, {1, 6.5}};
  for (const auto& [pservers, seconds] : measured) {
    cost::Job job;
    job.trainers = 8;
    job.present.emplace_back();
    for (int i = 0; i < pservers; ++i) {
      job.pservers.push_back(StrCat(i));
      job.pserver_memory.emplace_back();
      cost::JobMessage message{.pserver = i, .bytes = kBytes / pservers};
      job.present[0].messages.push_back(message);
      message.up = false;
      job.present[0].messages.push_back(message);
    }
    const cost::CostReport cost = *cost::EstimateCost(job, {});
    const cost::Expectation e = *cost::Expect(job, cost, network);
    EXPECT_LT(e.exposed_ms / 1000, seconds);
    EXPECT_GT(e.exposed_ms / 1000, seconds / 3);
  }
  cost::Job ring;
  ring.exchange = cost::Exchange::kAllReduce;
  ring.trainers = 8;
  ring.present.emplace_back();
  ring.present[0].reductions.push_back({.variable = "w", .bytes = kBytes});
  const cost::CostReport cost = *cost::EstimateCost(ring, {});
  EXPECT_EQ(cost.trainers[0].ring, (cost::Volume{14, 700'000'000}));
  EXPECT_DOUBLE_EQ(cost::Expect(ring, cost, network)->exposed_ms, 560);
}

// One parameter in one even slice per pserver, alone on the network.
cost::Job JobOfOne(std::int64_t bytes_a_slice, int trainers, int pservers, bool rings) {
  cost::Job job{.trainers = trainers, .present = {{.file = "trainer.pb", .messages = {}, .reductions = {}}}};
  for (int i = 0; i < pservers; ++i) job.pservers.push_back(StrCat("p", i, ":1"));
  job.pserver_memory.resize(job.pservers.size());
  cost::JobTrainer& trainer = job.present.front();
  if (rings) trainer.reductions.push_back({.variable = "w", .bytes = bytes_a_slice * pservers});
  for (int i = 0; !rings && i < pservers; ++i) {
    for (const bool up : {true, false})
      trainer.messages.push_back({.up = up, .pserver = i, .bytes = bytes_a_slice});
  }
  return job;
}

TEST(ChoiceOfExchange, UsesTheTimesOfTheModel) {
  test::Draw draw(7);
  for (int i = 0; i < 300; ++i) {
    const int trainers = draw.Between(2, 64), pservers = draw.Between(1, 64);
    const std::int64_t bytes = draw.Between(1, 10000000);
    const cost::Network network{.bits_per_second = 1e9 * draw.Between(1, 100),
                                .step_ms = 1,
                                .message_us = static_cast<double>(draw.Below(200))};
    const cost::ExchangeTimes times =
        cost::TimesOfExchange({pservers, bytes * pservers}, trainers, pservers, network);
    for (const bool rings : {true, false}) {
      const cost::Job job = JobOfOne(bytes, trainers, pservers, rings);
      const Result<cost::CostReport> cost = cost::EstimateCost(job, {});
      ASSERT_TRUE(cost.ok()) << cost.status().ToString();
      const Result<cost::Expectation> expected = cost::Expect(job, *cost, network);
      ASSERT_TRUE(expected.ok()) << expected.status().ToString();
      EXPECT_NEAR(static_cast<double>(rings ? times.allreduce_ns : times.pserver_ns),
                  (expected->exposed_push_ms + expected->exposed_pull_ms) * 1e6, 1.0)
          << trainers << " trainers, " << pservers << " pservers, " << bytes
          << " bytes a slice, rings: " << rings;
    }
  }
}

TEST(ChoiceOfExchange, SwitchesToRingsOnceAsParametersGrow) {
  test::Draw draw(11);
  int crossed = 0;
  for (int i = 0; i < 200; ++i) {
    const int trainers = draw.Between(2, 64), pservers = draw.Between(1, 64);
    const cost::Network network{.bits_per_second = 1e9 * draw.Between(1, 100),
                                .message_us = static_cast<double>(draw.Between(1, 200))};
    bool rings = false, first = true;
    for (std::int64_t bytes = 4; bytes < (std::int64_t{1} << 36); bytes *= 2) {
      const cost::ExchangeTimes times = cost::TimesOfExchange({1, bytes}, trainers, pservers, network);
      const bool now = times.allreduce_ns <= times.pserver_ns;
      EXPECT_TRUE(now || !rings) << trainers << " trainers, " << pservers << " pservers, " << bytes
                                 << " bytes";
      crossed += !first && now && !rings;
      rings = now;
      first = false;
    }
    EXPECT_TRUE(rings) << trainers << " trainers, " << pservers << " pservers";
  }
  EXPECT_GE(crossed, 50);
}

}  // namespace
}  // namespace penstock
