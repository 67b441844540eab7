// Every sync case of the corpus that our transpiler accepts, including those with a distributed table, runs
// one step in the simulator: real kernels, all servers and trainers of the case, lost and repeated messages.
// It ends with the bytes of one thread.
//
// To run one case:  PENSTOCK_SIM_CASE=lenet.momentum@sync_p2t2
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/base/hash.h"
#include "framework/roles/views.h"
#include "operators/all_ops.h"
#include "tests/sim/role_job.h"
#include "tests/support/corpus.h"
#include "tests/support/role_programs.h"
#include "tests/support/run_program.h"
#include "tools/case/case_file.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {
namespace {

namespace fs = std::filesystem;

constexpr Dim kBatch = 3;
// Labels of every model are below this number.
constexpr std::int64_t kLabels = 2;

// Cases that the transpiler must reject with this error: a block size below Fluid's minimum in the
// constructor.
const std::set<std::string> kRefused = {"fit_a_line.sgd@sync_mbs10_ctor"};

struct Case {
  std::string id, loss;
  std::vector<std::string> feeds;
  Program main, startup;
  plan::TranspileConfig config;
};

Case ReadCase(const std::string& id) {
  Case read;
  read.id = id;
  const std::string open = CorpusOrSelection() + "/open/";
  Result<CaseFile> file = ParseCase(BytesOf(StrCat(open, "cases/", id, "/case.json")));
  PENSTOCK_CHECK(file.ok(), file.status().ToString());
  read.config = file->config;
  read.config.trainer_ids.clear();
  for (int t = 0; t < read.config.trainers; ++t) read.config.trainer_ids.push_back(t);
  const std::string program = StrCat(open, "programs/", file->program);
  read.main = ProgramOf(program + "/main.pb");
  read.startup = ProgramOf(program + "/startup.pb");
  const std::string facts = BytesOf(program + "/program.json");
  PENSTOCK_CHECK(ApplyFacts(facts, read.main, read.startup).ok(), id);
  const nlohmann::json json = nlohmann::json::parse(facts);
  read.loss = json["loss"];
  read.feeds = json["feeds"].get<std::vector<std::string>>();
  return read;
}

std::vector<std::string> CasesOf(const std::vector<std::string>& configs) {
  std::vector<std::string> ids;
  for (const auto& entry : fs::directory_iterator(CorpusOrSelection() + "/open/cases")) {
    const std::string id = entry.path().filename().string();
    const auto has = [&](const std::string& config) { return id.find(config) != std::string::npos; };
    if (std::any_of(configs.begin(), configs.end(), has)) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// The number of rows of the tables that these ids look up; labels have no table.
std::int64_t BoundOf(const Program& main, const std::string& feed) {
  std::int64_t bound = 0;
  for (const OpEntry& entry : main.main().ops()) {
    if (!entry.op->HasInputSlot("Ids") || entry.op->InputName("Ids") != feed) continue;
    const Dim rows = main.FindVar(0, entry.op->InputName("W"))->shape()[0];
    bound = bound == 0 ? rows : std::min(bound, rows);
  }
  return bound == 0 ? kLabels : bound;
}

// Numbers that differ from feed to feed and from trainer to trainer. Sequences of 2, 1 and 3 elements.
exec::Feed MadeUpFeed(const Program& main, const std::string& name, int trainer) {
  const Var& var = *main.FindVar(0, name);
  const bool sequences = var.type->lod_level > 0;
  Shape shape = var.shape().WithRows(sequences ? 6 : kBatch);
  // The transformer's labels are flat: one for each of an example's 16 words.
  if (name == "lbl_word" || name == "lbl_weight") shape = shape.WithRows(kBatch * 16);
  Tensor tensor(var.type->dtype, shape);
  const std::int64_t bound = BoundOf(main, name);
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const double wave = std::sin(static_cast<double>(i) * 0.37 + trainer + static_cast<double>(name.size()));
    if (tensor.dtype() == DType::kInt64) {
      tensor.Data<std::int64_t>()[i] =
          static_cast<std::int64_t>((wave + 1) * 0.499 * static_cast<double>(bound));
    } else {
      tensor.Data<float>()[i] = static_cast<float>((wave + 1) * 0.05);
    }
  }
  if (sequences) tensor.set_lod({{0, 2, 3, 6}});
  return {name, tensor};
}

void ExpectSameBytes(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << what;
}

// The values after the startup program: parameters, state, and existing rows of tables.
void ExpectSameServer(const std::string& pserver, const Program& startup, Scope& scope, Scope& reference) {
  for (const OpEntry& entry : startup.main().ops()) {
    for (const std::string& name : entry.op->OutputNames()) {
      const Variable& value = *scope.Find(name);
      const Tensor& wanted = *reference.Find(name)->If<Tensor>();
      const std::string what = StrCat(pserver, ", ", name);
      if (const Tensor* tensor = value.If<Tensor>()) ExpectSameBytes(*tensor, wanted, what);
      const SelectedRows* rows = value.If<SelectedRows>();
      if (rows == nullptr) continue;
      for (std::size_t i = 0; i < rows->rows.size(); ++i) {
        const auto at = static_cast<Dim>(i);
        ExpectSameBytes(rows->value.Rows(at, at + 1), wanted.Rows(rows->rows[i], rows->rows[i] + 1),
                        StrCat(what, ", row ", rows->rows[i]));
      }
    }
  }
}

// Runs one step of all trainers, simulated and on one thread.
void RunCase(const Case& c, const RoleSet& roles, std::uint64_t seed) {
  SCOPED_TRACE(c.id);
  RoleJob job(AllOps(), TrainersOf(roles), PserversOf(roles), seed, {.lost = 0.05, .twice = 0.05});
  job.set_chunk_bytes(std::size_t{64} << 10);
  job.fetches = {c.loss};
  std::vector<std::vector<exec::Feed>> feeds;
  for (int t = 0; t < c.config.trainers; ++t) {
    feeds.emplace_back();
    for (const std::string& name : c.feeds) feeds.back().push_back(MadeUpFeed(c.main, name, t));
    job.trainer(t).feeds = {feeds.back()};
  }
  const Status ran = job.Run();
  ASSERT_TRUE(ran.ok()) << ran.ToString();
  ReferenceJob reference(AllOps(), TrainersOf(roles), PserversOf(roles));
  const Status started = reference.Start();
  ASSERT_TRUE(started.ok()) << started.ToString();
  const auto losses = reference.Step(feeds, job.fetches);
  ASSERT_TRUE(losses.ok()) << losses.status().ToString();
  for (int t = 0; t < c.config.trainers; ++t) {
    const Tensor& loss = *job.trainer(t).fetched[0][0].If<Tensor>();
    EXPECT_TRUE(std::isfinite(loss.Data<float>()[0])) << "trainer " << t;
    ExpectSameBytes(loss, *(*losses)[static_cast<std::size_t>(t)][0].If<Tensor>(), StrCat("trainer ", t));
  }
  for (std::size_t p = 0; p < roles.pservers.size(); ++p) {
    ExpectSameServer(StrCat("pserver ", p), roles.pservers[p].startup, job.pserver_scope(static_cast<int>(p)),
                     reference.pserver_scope(static_cast<int>(p)));
  }
}

TEST(CorpusCases, OneStepEqualsTheOneThreadReference) {
  const char* only = std::getenv("PENSTOCK_SIM_CASE");
  int ran = 0, refused = 0;
  for (const std::string& id : CasesOf({"@sync_", "@tbl_sync_"})) {
    if (only != nullptr && id != only) continue;
    const Case c = ReadCase(id);
    const Result<RoleSet> roles = Transpile(AllOps(), c.main, c.startup, c.config);
    if (!roles.ok()) {
      EXPECT_TRUE(kRefused.contains(id)) << id << ": " << roles.status().ToString();
      ++refused;
      continue;
    }
    RunCase(c, *roles, Fnv1a64(id));
    ++ran;
  }
  std::cout << ran << " cases ran, " << refused << " are refused\n";
  if (only != nullptr) return;
  EXPECT_GE(ran, CorpusFolder().empty() ? 18 : 75);
}

// In the learning-rate block: a step counter for each trainer, which starts from its initial value.
void ExpectStepsCounted(const std::string& what, const RolePrograms& pserver, Scope& scope, int steps) {
  const roles::ServeView serve(*roles::FindServe(pserver.main.main()));
  if (serve.lr_block() < 0) return;
  const Op& sum = *pserver.main.block(serve.lr_block()).ops().front().op;
  if (sum.type() != "sum") return;
  for (const OpEntry& entry : pserver.startup.main().ops()) {
    const std::string& counter = entry.op->OutputName("Out");
    const ArgList& counters = sum.Input("X");
    if (std::find(counters.begin(), counters.end(), counter) == counters.end()) continue;
    const auto start = static_cast<std::int64_t>(entry.op->GetOr("value", 0.0f));
    EXPECT_EQ(scope.Find(counter)->If<Tensor>()->Span<std::int64_t>()[0], start + steps)
        << what << ", " << counter;
  }
}

// Two trainers whose updates come in any order: values cannot be compared, but each step must count once.
TEST(CorpusCases, AsyncCasesRunThreeStepsInTheSimulator) {
  constexpr int kSteps = 3;
  const char* only = std::getenv("PENSTOCK_SIM_CASE");
  int ran = 0;
  for (const std::string& id : CasesOf({"@async_p2t2", "@async_noslice_p2t2", "@tbl_async_p2t2"})) {
    if (only != nullptr && id != only) continue;
    SCOPED_TRACE(id);
    const Case c = ReadCase(id);
    const Result<RoleSet> roles = Transpile(AllOps(), c.main, c.startup, c.config);
    ASSERT_TRUE(roles.ok()) << roles.status().ToString();
    RoleJob job(AllOps(), TrainersOf(*roles), PserversOf(*roles), Fnv1a64(id), {.lost = 0.05, .twice = 0.05});
    job.set_chunk_bytes(std::size_t{64} << 10);
    job.fetches = {c.loss};
    for (int t = 0; t < c.config.trainers; ++t) {
      std::vector<exec::Feed> feeds;
      for (const std::string& name : c.feeds) feeds.push_back(MadeUpFeed(c.main, name, t));
      job.trainer(t).feeds.assign(kSteps, feeds);
    }
    const Status status = job.Run();
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (int t = 0; t < c.config.trainers; ++t) {
      for (const auto& fetched : job.trainer(t).fetched)
        EXPECT_TRUE(std::isfinite(fetched[0].If<Tensor>()->Data<float>()[0])) << "trainer " << t;
    }
    for (std::size_t p = 0; p < roles->pservers.size(); ++p) {
      ExpectStepsCounted(StrCat("pserver ", p), PserversOf(*roles)[p], job.pserver_scope(static_cast<int>(p)),
                         kSteps);
    }
    ++ran;
  }
  std::cout << ran << " asynchronous cases ran\n";
  EXPECT_GE(ran, only != nullptr || CorpusFolder().empty() ? 0 : 20);
}

}  // namespace
}  // namespace penstock::test
