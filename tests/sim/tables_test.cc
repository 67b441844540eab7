// Tables sharded by id on the simulated network: under any faults, a job ends with the bytes of one thread,
// with the user's optimizer and regularizer.
//
// To run one seed:  PENSTOCK_SIM_SEED=17
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "framework/base/files.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/sim/role_job.h"
#include "tests/support/role_programs.h"
#include "tests/support/temp_dir.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {
namespace {

constexpr Dim kRows = 23;
constexpr int kSteps = 4;

// One table with two lookups, one of which has a padding row, followed by a dense parameter.
constexpr char kDeclared[] = R"(
  persist lr : f32[1]
  persist t_state1 : f32[23, 3]
  persist t_state2 : f32[23, 3]
  persist t_state3 : f32[23, 3]
  persist t_power1 : f32[1]
  persist t_power2 : f32[1]
  param t : f32[23, 3] distributed
  param w : f32[3, 2]
)";

constexpr char kForward[] = R"(
  data i : i64[?, 1]
  data j : i64[?, 2, 1]
  a : f32[?, 3] = lookup_table(W=t, Ids=i) {is_distributed=true, is_sparse=true, padding_idx=7l}
  b : f32[?, 2, 3] = lookup_table(W=t, Ids=j) {is_distributed=true, is_sparse=true}
  s : f32[?, 3] = reduce_sum(X=b) {dim=[1]}
  c : f32[?, 3] = elementwise_mul(X=a, Y=s)
  d : f32[?, 2] = mul(X=c, Y=w)
  e : f32[?, 2] = elementwise_mul(X=d, Y=d)
  loss : f32[1] = mean(X=e) @forward|loss
  loss@GRAD : f32[1] = fill_constant() {shape=[1l], value=1.0} @backward|loss
  (X@GRAD=e@GRAD : f32[?, 2]) = mean_grad(X=e, Out@GRAD=loss@GRAD) @backward
  (X@GRAD=d@0 : f32[?, 2], Y@GRAD=d@1 : f32[?, 2]) = elementwise_mul_grad(X=d, Y=d, Out@GRAD=e@GRAD) @backward
  d@GRAD : f32[?, 2] = sum(X=[d@0, d@1]) @backward
  (X@GRAD=c@GRAD : f32[?, 3], Y@GRAD=w@GRAD : f32[3, 2]) = mul_grad(
      X=c, Y=w, Out@GRAD=d@GRAD) @backward(w, w@GRAD)
  (X@GRAD=a@GRAD : f32[?, 3], Y@GRAD=s@GRAD : f32[?, 3]) = elementwise_mul_grad(
      X=a, Y=s, Out@GRAD=c@GRAD) @backward
  (X@GRAD=b@GRAD : f32[?, 2, 3]) = reduce_sum_grad(X=b, Out@GRAD=s@GRAD) {dim=[1]} @backward
  (W@GRAD=t@0 : rows<f32[23, 3]>) = lookup_table_grad(
      W=t, Ids=i, Out@GRAD=a@GRAD) {is_distributed=true, is_sparse=true, padding_idx=7l} @backward
  (W@GRAD=t@1 : rows<f32[23, 3]>) = lookup_table_grad(
      W=t, Ids=j, Out@GRAD=b@GRAD) {is_distributed=true, is_sparse=true} @backward
  t@GRAD : rows<f32[23, 3]> = sum(X=[t@0, t@1]) @backward(t, t@GRAD)
)";

struct Update {
  const char* name;
  const char* ops;              // the ops that update the table
  const char* state = nullptr;  // the state that it keeps per row
  bool decays = false;          // rows change without a gradient
};

constexpr char kDense[] =
    "  (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr) @optimize(w, w@GRAD)\n";
const Update kUpdates[] = {
    {"sgd", "  (ParamOut=t) = sgd(Param=t, Grad=t@GRAD, LearningRate=lr) @optimize(t, t@GRAD)\n"},
    {"momentum of decayed rows",
     R"(  decay : f32[23, 3] = scale(X=t) {scale=0.1} @optimize(t, t@GRAD)
  t@DECAYED : f32[23, 3] = sum(X=[t@GRAD, decay]) @optimize(t, t@GRAD)
  (ParamOut=t, VelocityOut=t_state1) = momentum(
      Param=t, Grad=t@DECAYED, LearningRate=lr, Velocity=t_state1) {mu=0.9} @optimize(t, t@GRAD)
)",
     "t_state1", true},
    {"adam",
     R"(
  (ParamOut=t, Moment1Out=t_state1, Moment2Out=t_state2, Beta1PowOut=t_power1, Beta2PowOut=t_power2) = adam(
      Param=t, Grad=t@GRAD, LearningRate=lr, Moment1=t_state1, Moment2=t_state2,
      Beta1Pow=t_power1, Beta2Pow=t_power2) @optimize(t, t@GRAD)
)",
     "t_state2"},
    {"adam of the rows of a gradient",
     R"(
  (ParamOut=t, Moment1Out=t_state1, Moment2Out=t_state2, Beta1PowOut=t_power1, Beta2PowOut=t_power2) = adam(
      Param=t, Grad=t@GRAD, LearningRate=lr, Moment1=t_state1, Moment2=t_state2,
      Beta1Pow=t_power1, Beta2Pow=t_power2) {lazy_mode=true} @optimize(t, t@GRAD)
)",
     "t_state1"},
    {"adagrad",
     R"(  (ParamOut=t, MomentOut=t_state3) = adagrad(
      Param=t, Grad=t@GRAD, LearningRate=lr, Moment=t_state3) @optimize(t, t@GRAD)
)",
     "t_state3"}};

constexpr char kStartup[] = R"(
  lr = fill_constant() {shape=[1l], value=0.3}
  t = uniform_random() {shape=[23l, 3l], min=-1.0, max=1.0, seed=5}
  w = uniform_random() {shape=[3l, 2l], min=-1.0, max=1.0, seed=5}
  t_state1 = fill_constant() {shape=[23l, 3l], value=0.0}
  t_state2 = fill_constant() {shape=[23l, 3l], value=0.0}
  t_state3 = fill_constant() {shape=[23l, 3l], value=0.25}
  t_power1 = fill_constant() {shape=[1l], value=0.9}
  t_power2 = fill_constant() {shape=[1l], value=0.999}
)";

Program Parsed(const std::string& ops) {
  Result<Program> program = ParseText(StrCat("program\nblock 0 {", kDeclared, ops, "}\n"), "tables_test");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  return *std::move(program);
}

RoleSet RolesOf(const Update& update, int trainers, int pservers,
                plan::Dialect dialect = plan::Dialect::kDefault) {
  plan::TranspileConfig config;
  config.trainers = trainers;
  config.trainer_ids.clear();
  for (int t = 0; t < trainers; ++t) config.trainer_ids.push_back(t);
  for (int p = 0; p < pservers; ++p) config.pservers.push_back(StrCat("ps", p, ":1"));
  config.dialect = dialect;
  Result<RoleSet> roles =
      Transpile(AllOps(), Parsed(StrCat(kForward, update.ops, kDense)), Parsed(kStartup), config);
  PENSTOCK_CHECK(roles.ok(), roles.status().ToString());
  return *std::move(roles);
}

Tensor Ids(const Shape& shape, const std::function<std::int64_t()>& next) {
  Tensor ids(DType::kInt64, shape);
  for (std::int64_t& id : ids.Span<std::int64_t>()) id = next();
  return ids;
}

// A few ids, some twice; if rows change without a gradient, all ids in the first step.
std::vector<exec::Feed> FeedsOf(std::mt19937_64& random, int step, bool all_first) {
  const bool all = all_first && step == 0;
  const Dim batch = all ? kRows : static_cast<Dim>(random() % 4 + 1);
  std::int64_t count = 0;
  const auto next = [&] { return all ? count++ % kRows : static_cast<std::int64_t>(random() % kRows); };
  return {{"i", Ids({batch, 1}, next)}, {"j", Ids({batch, 2, 1}, next)}};
}

void ExpectSameBytes(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << what;
}

// A server's rows equal those of the reference, and it has no rows of another server.
void ExpectSameRows(Scope& scope, Scope& reference, const std::string& name, int pserver, int pservers) {
  const auto* rows = scope.Find(name)->If<SelectedRows>();
  ASSERT_NE(rows, nullptr) << name;
  EXPECT_EQ(rows->height, kRows);
  EXPECT_TRUE(std::is_sorted(rows->rows.begin(), rows->rows.end()));
  for (std::size_t i = 0; i < rows->rows.size(); ++i) {
    const auto at = static_cast<Dim>(i);
    EXPECT_EQ(rows->rows[i] % pservers, pserver);
    ExpectSameBytes(rows->value.Rows(at, at + 1),
                    reference.Find(name)->If<Tensor>()->Rows(rows->rows[i], rows->rows[i] + 1),
                    StrCat(name, ", row ", rows->rows[i]));
  }
}

void RunSeed(const Update& update, std::uint64_t seed) {
  SCOPED_TRACE(StrCat(update.name, ", seed ", seed));
  std::mt19937_64 random(seed);
  const int trainers = static_cast<int>(random() % 3 + 1), pservers = static_cast<int>(random() % 3 + 1);
  const RoleSet roles = RolesOf(update, trainers, pservers);
  RoleJob job(AllOps(), TrainersOf(roles), PserversOf(roles), seed, FaultsOf(seed));
  job.set_table_shards(static_cast<int>(seed % 5 + 1));
  job.set_looks_ahead(seed % 2 == 1);
  ReferenceJob reference(AllOps(), TrainersOf(roles), PserversOf(roles));
  job.fetches = {"loss"};
  std::vector<std::vector<std::vector<exec::Feed>>> feeds(kSteps);  // by step, by trainer
  for (int step = 0; step < kSteps; ++step) {
    for (int t = 0; t < trainers; ++t) {
      feeds[static_cast<std::size_t>(step)].push_back(FeedsOf(random, step, update.decays));
      job.trainer(t).feeds.push_back(feeds[static_cast<std::size_t>(step)].back());
    }
  }
  const Status ran = job.Run();
  ASSERT_TRUE(ran.ok()) << ran.ToString();
  const Status started = reference.Start();
  ASSERT_TRUE(started.ok()) << started.ToString();
  for (std::size_t step = 0; step < kSteps; ++step) {
    const auto losses = reference.Step(feeds[step], job.fetches);
    ASSERT_TRUE(losses.ok()) << losses.status().ToString();
    for (int t = 0; t < trainers; ++t) {
      ExpectSameBytes(*job.trainer(t).fetched[step][0].If<Tensor>(),
                      *(*losses)[static_cast<std::size_t>(t)][0].If<Tensor>(),
                      StrCat("trainer ", t, ", step ", step));
    }
  }
  for (int t = 0; t < trainers; ++t) {
    EXPECT_EQ(job.ahead_of(t).used > 0, seed % 2 == 1);
    EXPECT_EQ(job.ahead_of(t).unused, 0u);
  }
  std::size_t kept = 0;
  for (int p = 0; p < pservers; ++p) {
    ExpectSameRows(job.pserver_scope(p), reference.pserver_scope(p), "t", p, pservers);
    kept += job.pserver_scope(p).Find("t")->If<SelectedRows>()->rows.size();
    if (update.state != nullptr)
      ExpectSameRows(job.pserver_scope(p), reference.pserver_scope(p), update.state, p, pservers);
  }
  EXPECT_GT(kept, 0u);
}

TEST(Tables, EverySeedEqualsTheOneThreadReference) {
  const char* only = std::getenv("PENSTOCK_SIM_SEED");
  for (const Update& update : kUpdates) {
    if (only != nullptr) {
      RunSeed(update, std::strtoull(only, nullptr, 10));
      continue;
    }
    for (std::uint64_t seed = 0; seed < 25 && !HasFailure(); ++seed) RunSeed(update, seed);
  }
}

// A table larger than any memory only needs memory for its looked-up rows.
TEST(Tables, OnlyTrainedRowsTakeMemory) {
  std::string text = StrCat(kDeclared, kForward, kUpdates[2].ops, kDense),
              startup = StrCat(kDeclared, kStartup);
  for (std::string* program : {&text, &startup}) {
    while (program->find("t_state3") !=
           std::string::npos) {  // of another optimizer: the trainer would make it
      const std::size_t begin = program->rfind('\n', program->find("t_state3"));
      program->erase(begin, program->find('\n', begin + 1) - begin);
    }
    for (std::size_t at; (at = program->find("[23")) != std::string::npos;)
      program->replace(at, 3, "[4000000000");
  }
  const auto parsed = [](const std::string& ops) {
    return ParseText(StrCat("program\nblock 0 {", ops, "}\n"), "tables_test").value();
  };
  plan::TranspileConfig config;
  config.trainers = 1;
  config.pservers = {"ps0:1", "ps1:1"};
  const Result<RoleSet> roles = Transpile(AllOps(), parsed(text), parsed(startup), config);
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  RoleJob job(AllOps(), TrainersOf(*roles), PserversOf(*roles), 1, {});
  job.fetches = {"loss"};
  std::int64_t id = 3'999'999'000;
  const auto next = [&] { return id++; };
  job.trainer(0).feeds = {{{"i", Ids({2, 1}, next)}, {"j", Ids({2, 2, 1}, next)}}};
  const Status ran = job.Run();
  ASSERT_TRUE(ran.ok()) << ran.ToString();
  EXPECT_EQ(job.pserver_scope(0).Find("t")->If<SelectedRows>()->rows,
            (std::vector<std::int64_t>{3'999'999'000, 3'999'999'002, 3'999'999'004}));
  EXPECT_EQ(job.pserver_scope(1).Find("t_state2")->If<SelectedRows>()->rows.size(), 3u);
}

Status RunWith(std::vector<std::vector<exec::Feed>> feeds, plan::Dialect dialect = plan::Dialect::kDefault) {
  const RoleSet roles = RolesOf(kUpdates[0], static_cast<int>(feeds.size()), 2, dialect);
  RoleJob job(AllOps(), TrainersOf(roles), PserversOf(roles), 1, {});
  job.fetches = {"loss"};
  for (std::size_t t = 0; t < feeds.size(); ++t) job.trainer(static_cast<int>(t)).feeds = {feeds[t]};
  return job.Run();
}

Program NotifyProgram(const std::string& folder, const std::string& table) {
  return ParseText(StrCat("program\nblock 0 {\n  checkpoint_notify() {epmap=[\"ps0:1\", \"ps1:1\"], dir=\"",
                          folder, "\", lookup_table=\"", table, "\"}\n}\n"),
                   "notify")
      .value();
}

std::vector<std::int64_t> RowsOf(RoleJob& job, int pserver) {
  return job.pserver_scope(pserver).Find("t")->If<SelectedRows>()->rows;
}

// The second of two servers has every odd id, including 2^64 - 1, which is -1.
TEST(Tables, AnyInt64IsAnId) {
  const auto only = [](std::int64_t id) {
    return std::vector<exec::Feed>{{"i", Ids({1, 1}, [=] { return id; })},
                                   {"j", Ids({1, 2, 1}, [] { return 1; })}};
  };
  const RoleSet roles = RolesOf(kUpdates[0], 2, 2, plan::Dialect::kDefault);
  RoleJob job(AllOps(), TrainersOf(roles), PserversOf(roles), 1, {});
  job.fetches = {"loss"};
  job.trainer(0).feeds = {only(kRows)};
  job.trainer(1).feeds = {only(-1)};
  const Status ran = job.Run();
  ASSERT_TRUE(ran.ok()) << ran.ToString();
  EXPECT_EQ(RowsOf(job, 0), std::vector<std::int64_t>{});
  EXPECT_EQ(RowsOf(job, 1), (std::vector<std::int64_t>{-1, 1, kRows}));
}

// A saved table has the same bytes, whatever the number of shards.
TEST(Tables, ServersSaveAndReloadTheirRows) {
  const TempDir folder;
  const RoleSet roles = RolesOf(kUpdates[2], 1, 2);
  std::mt19937_64 random(1);
  RoleJob first(AllOps(), TrainersOf(roles), PserversOf(roles), 1, {.lost = 0.2, .twice = 0.2});
  for (int step = 0; step < 3; ++step) first.trainer(0).feeds.push_back(FeedsOf(random, step, false));
  first.set_checkpoint_folder(folder / "saved");
  first.set_table_shards(3);
  first.trainer(0).last = NotifyProgram("model/tables", "t");
  const Status saved = first.Run();
  ASSERT_TRUE(saved.ok()) << saved.ToString();
  RoleJob one(AllOps(), TrainersOf(roles), PserversOf(roles), 1, {});
  one.trainer(0).feeds = first.trainer(0).feeds;
  one.set_checkpoint_folder(folder / "one");
  one.trainer(0).last = NotifyProgram("model/tables", "t");
  const Status saved_one = one.Run();
  ASSERT_TRUE(saved_one.ok()) << saved_one.ToString();
  // Starts the servers again, which load their checkpoint, with a trainer that takes no step.
  std::vector<RolePrograms> pservers = PserversOf(roles);
  for (std::size_t p = 0; p < 2; ++p) {
    Op load("load");
    load.AddOutput("Out", {"t"}).Set("file_path", StrCat(folder / "saved/model/tables", "/t_", p));
    pservers[p].startup.MutableBlock(0).Append(std::move(load));
  }
  RoleJob second(AllOps(), TrainersOf(roles), pservers, 1, {});
  second.set_table_shards(2);
  const Status ran = second.Run();
  ASSERT_TRUE(ran.ok()) << ran.ToString();
  for (int p = 0; p < 2; ++p) {
    EXPECT_FALSE(RowsOf(first, p).empty());
    EXPECT_EQ(RowsOf(first, p), RowsOf(second, p));
    EXPECT_EQ(ReadFile(StrCat(folder / "saved/model/tables", "/t_", p)).value(),
              ReadFile(StrCat(folder / "one/model/tables", "/t_", p)).value());
    ExpectSameBytes(first.pserver_scope(p).Find("t")->If<SelectedRows>()->value,
                    second.pserver_scope(p).Find("t")->If<SelectedRows>()->value, "t");
  }
}

TEST(Tables, SaveErrorsReachTheTrainerAndNameTheServer) {
  const RoleSet roles = RolesOf(kUpdates[0], 1, 2);
  const TempDir folder;
  const auto error = [&](const std::string& dir, const std::string& table, const std::string& root) {
    RoleJob job(AllOps(), TrainersOf(roles), PserversOf(roles), 1, {});
    job.set_checkpoint_folder(root);
    job.trainer(0).last = NotifyProgram(dir, table);
    return job.Run();
  };
  EXPECT_EQ(error("here", "none", folder / "").id(), "E-server-save");
  EXPECT_NE(error("here", "none", folder / "").message().find("pserver ps0:1: it holds no table none"),
            std::string::npos);
  EXPECT_FALSE(error("here", "t", "/proc/no/such/folder").ok());
  EXPECT_EQ(error("/tmp", "t", folder / "").id(), "E-server-save-path");
  EXPECT_EQ(error("..", "t", folder / "").id(), "E-server-save-path");
  EXPECT_EQ(error("a/../../b", "t", folder / "").id(), "E-server-save-path");
  EXPECT_NE(error("..", "t", folder / "").message().find("\"../t_0\" is not"), std::string::npos);
  ASSERT_TRUE(WriteFile(folder / "t_0", "somebody's").ok());
  EXPECT_EQ(error(".", "t", folder / "").id(), "E-server-save-exists");
  EXPECT_EQ(ReadFile(folder / "t_0").value(), "somebody's");
  EXPECT_TRUE(error("again", "t", folder / "").ok());
  EXPECT_TRUE(error("again", "t", folder / "").ok());  // in another job: the job wrote them itself
}

TEST(Tables, OnlyTrainer0MaySaveTables) {
  const TempDir folder;
  const RoleSet roles = RolesOf(kUpdates[0], 2, 2);
  RoleJob job(AllOps(), TrainersOf(roles), PserversOf(roles), 1, {});
  job.set_checkpoint_folder(folder / "");
  job.trainer(1).last = NotifyProgram("here", "t");
  const Status status = job.Run();
  EXPECT_EQ(status.id(), "E-server-save-trainer") << status.ToString();
  EXPECT_NE(status.message().find("trainer 1 asks it to save t; only trainer 0 may"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "here"));
}

// Fluid sums the trainers' gradients and updates with sgd.
TEST(Tables, CompatProgramsRun) {
  const auto one = [](std::int64_t id) {
    return std::vector<exec::Feed>{{"i", Ids({1, 1}, [=] { return id; })},
                                   {"j", Ids({1, 2, 1}, [] { return 1; })}};
  };
  const Status ran = RunWith({one(3), one(4)}, plan::Dialect::kFluid18);
  EXPECT_TRUE(ran.ok()) << ran.ToString();
}

}  // namespace
}  // namespace penstock::test
