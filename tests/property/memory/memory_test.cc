// Programs rewritten to use less memory pass the verifier and compute the same, byte for byte.
#include "transpiler/memory/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "executor/schedule/executor.h"
#include "framework/base/files.h"
#include "framework/runtime/random.h"
#include "framework/verify/verifier.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/program_files.h"
#include "tests/support/random_network.h"
#include "tests/support/run_program.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock {
namespace {

constexpr std::uint64_t kSeeds = 150;
constexpr int kSteps = 3;
constexpr Dim kBatch = 3;

struct Rewrite {
  const char* name;
  Result<memory::MemoryRewrite> (*apply)(const Program& program, const memory::NameSet& keep);
};
const Rewrite kRewrites[] = {
    {"level 0",
     [](const Program& p, const memory::NameSet& keep) {
       return memory::ReuseBuffers(AllOps(), p, {.keep = keep});
     }},
    {"level 1",
     [](const Program& p, const memory::NameSet& keep) {
       return memory::ReuseBuffers(AllOps(), p, {.keep = keep, .larger_buffers = true});
     }},
    {"skip_grads",
     [](const Program& p, const memory::NameSet& keep) {
       return memory::ReuseBuffers(AllOps(), p, {.keep = keep, .skip_grads = true});
     }},
    {"release",
     [](const Program& p, const memory::NameSet& keep) { return memory::ReleaseBuffers(AllOps(), p, keep); }},
};

// The first violation, or "".
std::string Violation(const Program& program) {
  const Status sound = VerifyProgram(program, {.ops = &AllOps()});
  return sound.ok() ? "" : sound.ToString();
}

std::string BytesOf(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()};
}

using Values = std::map<std::string, std::string>;  // bytes, by the variable's name

// The fetches of each step, and the kept variables at the end.
Result<Values> Train(const Program& startup, const Program& main,
                     const std::vector<std::vector<exec::Feed>>& steps,
                     const std::vector<std::string>& fetches, const test::Arrays& init) {
  SetProcessSeed(7);
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  PENSTOCK_RETURN_IF_ERROR(executor.Run(startup, scope, {}, {}).status());
  for (const auto& [name, value] : init) test::SetTensor(scope, name, value);
  Values values;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Variable> got,
                              executor.Run(main, scope, steps[step], fetches));
    for (std::size_t i = 0; i < fetches.size(); ++i)
      values[StrCat("step ", step, ": ", fetches[i])] = BytesOf(*got[i].If<Tensor>());
  }
  for (const VarRef& var : main.main().vars()) {
    const Variable* kept = var->persistable ? scope.Find(var->name) : nullptr;
    if (kept == nullptr || kept->If<Tensor>() == nullptr) continue;
    values[var->name] = BytesOf(*kept->If<Tensor>());
  }
  return values;
}

std::vector<std::vector<exec::Feed>> RandomFeeds(const test::RandomNetwork& network, std::uint64_t seed) {
  test::Draw draw(seed);
  std::vector<std::vector<exec::Feed>> steps(kSteps);
  for (std::vector<exec::Feed>& step : steps) {
    for (const std::string& name : network.feeds) {
      Tensor value(DType::kFp32, network.main.main().FindVar(name)->shape().WithRows(kBatch));
      for (std::int64_t i = 0; i < value.count(); ++i)
        value.Data<float>()[i] = static_cast<float>(draw.Between(-100, 100)) / 50.0f;
      step.push_back({name, std::move(value)});
    }
  }
  return steps;
}

TEST(LessMemory, RandomNetworksTrainToTheSameBytes) {
  std::int64_t saved = 0;
  int released = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    const test::RandomNetwork network = test::MakeRandomNetwork(AllOps(), seed, {.runnable = true});
    const auto feeds = RandomFeeds(network, seed);
    const auto expected = Train(network.startup, network.main, feeds, {network.loss}, {});
    ASSERT_TRUE(expected.ok()) << "seed " << seed << ": " << expected.status().ToString();
    for (const Rewrite& rewrite : kRewrites) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << rewrite.name);
      const auto less = rewrite.apply(network.main, {network.loss});
      ASSERT_TRUE(less.ok()) << less.status().ToString();
      EXPECT_EQ(Violation(less->program), "");
      const auto got = Train(network.startup, less->program, feeds, {network.loss}, {});
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      EXPECT_TRUE(*got == *expected);
      for (const auto& [what, bytes] : less->saved.bytes_for_each) saved += bytes;
      released += less->saved == memory::MemorySize() ? static_cast<int>(less->lines.size()) : 0;
    }
  }
  EXPECT_GT(saved, 10000);  // otherwise nothing was rewritten
  EXPECT_GT(released, 1000);
}

TEST(LessMemory, FluidsNumericProgramsComputeTheSame) {
  const std::string numeric = test::CorpusOrSelection() + "/open/numeric/";
  int trained = 0;
  for (const char* id :
       {"linear/sgd", "linear/adam", "linear/sgd_l2", "softmax_reg/momentum", "softmax_reg/adam"}) {
    const std::string folder = numeric + std::string(id).substr(0, std::string(id).find('/'));
    const Program startup = test::ProgramOf(StrCat(numeric, id, ".startup.pb"));
    const Program main = test::ProgramOf(StrCat(numeric, id, ".main.pb"));
    const test::Arrays init = test::ArraysOf(folder + "/init.npz");
    const auto info = nlohmann::json::parse(test::BytesOf(folder + "/info.json"));
    const test::Arrays arrays = test::ArraysOf(folder + "/feeds.npz");
    std::vector<std::vector<exec::Feed>> feeds;
    for (int step = 0; step < kSteps; ++step)
      feeds.push_back(test::FeedsOf(arrays, StrCat("s", step, ":"), info["feeds"]));
    const std::string loss = info["loss"];
    const auto expected = Train(startup, main, feeds, {loss}, init);
    ASSERT_TRUE(expected.ok()) << id << ": " << expected.status().ToString();
    for (const Rewrite& rewrite : kRewrites) {
      const auto less = rewrite.apply(main, {loss});
      ASSERT_TRUE(less.ok()) << less.status().ToString();
      const auto got = Train(startup, less->program, feeds, {loss}, init);
      ASSERT_TRUE(got.ok()) << id << ", " << rewrite.name << ": " << got.status().ToString();
      EXPECT_TRUE(*got == *expected) << id << ", " << rewrite.name;
      ++trained;
    }
  }
  EXPECT_EQ(trained, 20);
}

TEST(LessMemory, CorpusProgramsStayValid) {
  int rewritten = 0;
  for (const std::filesystem::path& file : test::ProgramFiles(test::CorpusOrSelection() + "/open/programs")) {
    const Program program = *ParseProgram(*ReadFile(file.string()));
    const std::string before = Violation(program);
    for (const Rewrite& rewrite : kRewrites) {
      const auto less = rewrite.apply(program, {});
      ASSERT_TRUE(less.ok()) << less.status().ToString();
      if (!before.empty()) continue;
      EXPECT_EQ(Violation(less->program), "") << file << ", " << rewrite.name;
      rewritten += !less->lines.empty();
    }
  }
  EXPECT_GT(rewritten, 10);
}

// The visible properties of an op: its type, arguments and attributes.
std::string Communication(const Program& program) {
  std::string text;
  for (const OpEntry& entry : program.main().ops()) {
    const OpDef* def = AllOps().Find(entry.op->type());
    if (def != nullptr && def->effects().AreOutside()) text += SerializeOp(*entry.op);
  }
  return text;
}

TEST(LessMemory, WorksBeforeAndAfterTranspile) {
  for (std::uint64_t seed = 1; seed <= 60 && !testing::Test::HasFailure(); ++seed) {
    const test::RandomNetwork network = test::MakeRandomNetwork(AllOps(), seed);
    const plan::TranspileConfig config{.trainers = 2, .pservers = {"a:1", "b:1", "c:1"}};
    const auto roles = Transpile(AllOps(), network.main, network.startup, config);
    ASSERT_TRUE(roles.ok()) << roles.status().ToString();
    const Program& trainer = roles->trainers[0].main;
    for (const Rewrite& rewrite : kRewrites) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << rewrite.name);
      const auto after = rewrite.apply(trainer, {});
      ASSERT_TRUE(after.ok()) << after.status().ToString();
      EXPECT_EQ(Violation(after->program), "");
      EXPECT_TRUE(Communication(after->program) == Communication(trainer));
      const auto before = rewrite.apply(network.main, {});
      ASSERT_TRUE(before.ok()) << before.status().ToString();
      const auto again = Transpile(AllOps(), before->program, network.startup, config);
      ASSERT_TRUE(again.ok()) << again.status().ToString();
      EXPECT_EQ(again->plan, roles->plan);
      EXPECT_TRUE(Communication(again->trainers[0].main) == Communication(trainer));
    }
  }
}

}  // namespace
}  // namespace penstock
