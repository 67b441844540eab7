// Two trainers and two pservers as processes, from role programs made by Fluid 1.8.5.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "operators/all_ops.h"
#include "tests/dist/job.h"
#include "tests/support/corpus.h"
#include "tests/support/program_files.h"
#include "tests/support/run_program.h"

namespace penstock::test {
namespace {

using std::chrono::seconds;

constexpr char kLoss[] = "mean_0.tmp_0";

std::vector<RolePrograms> RolesOf(const std::string& folder, const std::string& startup,
                                  const std::vector<std::string>& suffixes, const std::string& main) {
  std::vector<RolePrograms> roles;
  for (const std::string& suffix : suffixes) {
    roles.push_back(
        {ProgramOf(folder + startup + suffix + ".pb"), ProgramOf(folder + main + suffix + ".pb")});
  }
  return roles;
}

// Rows [begin, begin + rows) of a parameter's value, by the name of the piece, as pserver_K.slices.json says.
Arrays SlicesOf(const std::string& file, const Arrays& whole) {
  Arrays pieces;
  const nlohmann::json slices = nlohmann::json::parse(BytesOf(file));
  for (const auto& [piece, where] : slices.items()) {
    const Tensor& tensor = whole.at(where[0].get<std::string>());
    const Dim begin = where[1].get<Dim>();
    pieces[piece] = tensor.Rows(begin, begin + where[2].get<Dim>()).Clone();
  }
  return pieces;
}

std::string LinearFolder() { return CorpusOrSelection() + "/open/dist_numeric/linear_sgd_sync/"; }

// The job linear_sgd_sync with its values and feeds.
void FillLinear(Job& job) {
  const std::string folder = LinearFolder();
  const Arrays init = ArraysOf(CorpusOrSelection() + "/open/numeric/linear/init.npz");
  for (int i = 0; i < 2; ++i) {
    job.pserver(i).values = SlicesOf(StrCat(folder, "pserver_", i, ".slices.json"), init);
    const Arrays feeds = ArraysOf(StrCat(folder, "feeds_t", i, ".npz"));
    for (int step = 0; step < 10; ++step) {
      Arrays& of_step = job.trainer(i).feeds.emplace_back();
      for (const char* name : {"x", "y"}) of_step[name] = feeds.at(StrCat("s", step, ":", name));
    }
  }
  job.fetches = {kLoss};
}

std::vector<RolePrograms> LinearTrainers() {
  return RolesOf(LinearFolder(), "trainer_startup", {"_0", "_1"}, "trainer");
}
std::vector<RolePrograms> LinearPservers() {
  return RolesOf(LinearFolder(), "pserver_startup", {"_0", "_1"}, "pserver");
}

void ExpectSameBytes(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << what;
}

// What the reference job ends in, by trainer, with the same values and feeds.
std::vector<Arrays> ReferenceOf(Job& job, int steps, const std::vector<std::string>& names) {
  std::vector<RolePrograms> trainers, pservers;
  for (int i = 0; i < 2; ++i) {
    trainers.push_back({job.trainer(i).startup, job.trainer(i).main});
    pservers.push_back({job.pserver(i).startup, job.pserver(i).main});
  }
  ReferenceJob reference(AllOps(), trainers, pservers);
  Status status = reference.StartServers();
  for (int i = 0; i < 2 && status.ok(); ++i) {
    for (const auto& [name, value] : job.pserver(i).values)
      SetTensor(reference.pserver_scope(i), name, value);
  }
  if (status.ok()) status = reference.StartTrainers();
  for (int step = 0; step < steps && status.ok(); ++step) {
    std::vector<std::vector<Feed>> feeds(2);
    for (int i = 0; i < 2; ++i) {
      for (const auto& [name, value] : job.trainer(i).feeds[static_cast<std::size_t>(step)]) {
        feeds[static_cast<std::size_t>(i)].push_back({name, value});
      }
    }
    status = reference.Step(feeds, {kLoss}).status();
  }
  EXPECT_TRUE(status.ok()) << status.ToString();
  std::vector<Arrays> ends(2);
  for (int i = 0; i < 2; ++i) {
    for (const std::string& name : names) {
      const Variable* variable = reference.trainer_scope(i).Find(name);
      if (variable != nullptr) ends[static_cast<std::size_t>(i)][name] = variable->If<Tensor>()->Clone();
    }
  }
  return ends;
}

TEST(DistTraining, LinearSgdSyncHasFluidsLossesAndParameters) {
  Job job(LinearTrainers(), LinearPservers());
  FillLinear(job);
  ASSERT_TRUE(job.Run(seconds(60))) << job.Logs();
  const Arrays fluid = ArraysOf(LinearFolder() + "final_params.npz");
  int compared = 0;
  for (int i = 0; i < 2; ++i) {
    const Arrays final = job.Final(i);
    for (const auto& [name, value] : fluid) {
      const Status near = NearValues(name, final.at(name), value, 1e-4, 1e-5);
      EXPECT_TRUE(near.ok()) << near.ToString();
      ++compared;
    }
    const Tensor losses = ArraysOf(StrCat(LinearFolder(), "trainer_", i, ".npz")).at("loss");
    for (int step = 0; step < 10; ++step) {
      const double loss = job.Fetched(i, step).at(kLoss).Span<float>()[0];
      const double want = losses.dtype() == DType::kFp64
                              ? losses.Span<double>()[static_cast<std::size_t>(step)]
                              : losses.Span<float>()[static_cast<std::size_t>(step)];
      EXPECT_NEAR(loss, want, 1e-5 + 1e-4 * std::abs(want)) << "trainer " << i << ", step " << step;
    }
  }
  EXPECT_EQ(compared, 4);
}

TEST(DistTraining, TenRunsInAnyOrderWithDelaysEndInTheBytesOfOneThread) {
  Job job(LinearTrainers(), LinearPservers());
  FillLinear(job);
  const std::vector<std::string> names = {"fc_0.w_0", "fc_0.b_0"};
  const std::vector<Arrays> reference = ReferenceOf(job, 10, names);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ASSERT_TRUE(job.Run(seconds(60), seed)) << job.Logs();
    for (int i = 0; i < 2; ++i) {
      const Arrays final = job.Final(i);
      for (const std::string& name : names) {
        ExpectSameBytes(final.at(name), reference[static_cast<std::size_t>(i)].at(name),
                        StrCat("seed ", seed, ", trainer ", i, ", ", name));
      }
    }
  }
}

// A piece of a job whose values and feeds are made up.
Tensor MadeUp(DType type, const Shape& shape, std::uint64_t seed) {
  Tensor tensor(type, shape);
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const double value = std::sin(static_cast<double>(i) * 0.37 + static_cast<double>(seed));
    if (type == DType::kInt64) {
      tensor.Span<std::int64_t>()[static_cast<std::size_t>(i)] = static_cast<std::int64_t>((value + 1) * 4.9);
    } else {
      tensor.Span<float>()[static_cast<std::size_t>(i)] = static_cast<float>(value * 0.1);
    }
  }
  return tensor;
}

// A case of the corpus with made-up values: bytes as in one thread, whatever the order.
void ExpectReferenceBytes(const std::string& name, const std::vector<std::string>& feeds, int steps,
                          const std::vector<std::string>& flags) {
  const std::string folder = StrCat(CorpusOrSelection(), "/open/cases/", name, "/");
  Job job(RolesOf(folder, "trainer_startup", {"", "_t1"}, "trainer"),
          RolesOf(folder, "pserver_startup", {"_0", "_1"}, "pserver"));
  job.fetches = {kLoss};
  std::vector<std::string> params;
  for (const VarRef& var : job.trainer(0).main.main().vars()) {
    if (var->persistable && var->HasShape()) params.push_back(var->name);
  }
  for (int i = 0; i < 2; ++i) {
    job.pserver(i).flags = flags;
    for (const OpEntry& entry : job.pserver(i).startup.main().ops()) {
      const std::string& out = entry.op->OutputName("Out");
      const bool random = entry.op->type() == "uniform_random" || entry.op->type() == "gaussian_random";
      const Var* var = job.pserver(i).startup.FindVar(0, out);
      if (random) job.pserver(i).values[out] = MadeUp(DType::kFp32, var->shape(), out.size());
    }
    for (int step = 0; step < steps; ++step) {
      Arrays& of_step = job.trainer(i).feeds.emplace_back();
      for (const std::string& feed : feeds) {
        const Var* var = job.trainer(i).main.FindVar(0, feed);
        Shape shape = var->shape();
        shape.Set(0, 4);
        of_step[feed] = MadeUp(var->type->dtype, shape,
                               static_cast<std::uint64_t>(step) * 2 + static_cast<std::uint64_t>(i));
      }
    }
  }
  const std::vector<Arrays> reference = ReferenceOf(job, steps, params);
  for (const std::uint64_t seed : {0, 7, 8}) {
    ASSERT_TRUE(job.Run(seconds(120), seed)) << job.Logs();
    for (int i = 0; i < 2; ++i) {
      const Arrays final = job.Final(i);
      ASSERT_GE(reference[static_cast<std::size_t>(i)].size(), 4u);
      for (const auto& [param, value] : reference[static_cast<std::size_t>(i)]) {
        ExpectSameBytes(final.at(param), value, StrCat(name, ", seed ", seed, ", trainer ", i, ", ", param));
      }
    }
  }
}

TEST(DistTraining, SlicedParametersInChunksEndInTheBytesOfOneThread) {
  ExpectReferenceBytes("wide_linear.adam@sync_p2t2", {"x", "y"}, 3, {"--chunk_bytes=100000"});
  ExpectReferenceBytes("wide_linear.momentum@sync_p2t2", {"x", "y"}, 3, {});
}

TEST(DistTraining, LenetEndsInTheBytesOfOneThread) {
  ExpectReferenceBytes("lenet.momentum@sync_p2t2", {"pixel", "label"}, 2, {"--chunk_bytes=10000"});
}

}  // namespace
}  // namespace penstock::test
