#include "tests/dist/case_job.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/op_harness.h"
#include "tests/support/program_files.h"
#include "tests/support/run_program.h"

namespace penstock::test {
namespace {

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

}  // namespace

std::vector<RolePrograms> RolesOf(const std::string& folder, const std::string& startup,
                                  const std::vector<std::string>& suffixes, const std::string& main) {
  std::vector<RolePrograms> roles;
  for (const std::string& suffix : suffixes) {
    roles.push_back(
        {ProgramOf(folder + startup + suffix + ".pb"), ProgramOf(folder + main + suffix + ".pb")});
  }
  return roles;
}

void ExpectSameBytes(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << what;
}

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
    std::vector<std::vector<exec::Feed>> feeds(2);
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

CaseJob MakeCaseJob(const std::string& name, const std::vector<std::string>& feeds, int steps) {
  const std::string folder = StrCat(CorpusOrSelection(), "/open/cases/", name, "/");
  CaseJob made;
  made.job = std::make_unique<Job>(RolesOf(folder, "trainer_startup", {"", "_t1"}, "trainer"),
                                   RolesOf(folder, "pserver_startup", {"_0", "_1"}, "pserver"));
  Job& job = *made.job;
  job.fetches = {kLoss};
  for (const VarRef& var : job.trainer(0).main.main().vars()) {
    if (var->persistable && var->HasShape()) made.params.push_back(var->name);
  }
  for (int i = 0; i < 2; ++i) {
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
  return made;
}

void ExpectEnds(const Job& job, const std::vector<Arrays>& ends, const std::string& what) {
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Arrays final = job.Final(static_cast<int>(i));
    ASSERT_GE(ends[i].size(), 2u);
    for (const auto& [name, value] : ends[i])
      ExpectSameBytes(final.at(name), value, StrCat(what, ", trainer ", i, ", ", name));
  }
}

}  // namespace penstock::test
