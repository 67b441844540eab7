#include "tests/executor/control_case.h"

#include <gtest/gtest.h>

#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/op_harness.h"
#include "tests/support/run_program.h"

namespace penstock::test {
namespace {

constexpr double kRtol = 1e-5, kAtol = 1e-5;

}  // namespace

std::string ControlFolder() { return CorpusOrSelection() + "/open/control/"; }

std::vector<std::string> ControlCases(const std::string& ending) {
  return FilesEndingIn(ControlFolder(), ending);
}

ControlCase LoadControlCase(const std::string& name) {
  const std::string base = ControlFolder() + name;
  return {name, nlohmann::json::parse(BytesOf(base + ".json")), ArraysOf(base + ".npz"),
          ProgramOf(base + ".pb"), ProgramOf(base + ".startup.pb")};
}

std::vector<exec::Feed> FeedsOf(const ControlCase& c, int k) {
  std::vector<exec::Feed> feeds;
  const std::string prefix = StrCat("f", k, ":");
  for (const auto& [key, value] : c.arrays) {
    if (!StartsWith(key, prefix)) continue;
    const std::string name = key.substr(prefix.size());
    Tensor tensor = value.Clone();
    if (const auto lens = c.arrays.find(StrCat("f", k, "_lens:", name)); lens != c.arrays.end()) {
      LoDLevel offsets = {0};
      for (std::int64_t i = 0; i < lens->second.count(); ++i) {
        offsets.push_back(offsets.back() + static_cast<std::uint64_t>(ElementAt(lens->second, i)));
      }
      tensor.set_lod({offsets});
    }
    feeds.push_back({name, std::move(tensor)});
  }
  return feeds;
}

void SetParams(const ControlCase& c, Scope& scope) {
  for (const auto& [key, value] : c.arrays) {
    if (StartsWith(key, "param:")) SetTensor(scope, key.substr(6), value);
  }
}

static void ExpectFetched(const ControlCase& c, const std::string& prefix,
                          const std::vector<std::string>& names, const std::vector<Variable>& got) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Tensor* value = got[i].If<Tensor>();
    ASSERT_NE(value, nullptr) << c.name << " " << names[i];
    const Tensor& expected = c.arrays.at(prefix + ":" + names[i]);
    const Status near = NearValues(names[i], *value, expected, kRtol, kAtol);
    EXPECT_TRUE(near.ok()) << c.name << " " << prefix << ": " << near.ToString();
    EXPECT_EQ(value->shape(), expected.shape()) << c.name << " " << names[i];
    const auto lens = c.arrays.find(prefix + "_lens:" + names[i]);
    if (lens == c.arrays.end()) continue;
    ASSERT_EQ(value->lod().size(), 1u) << c.name << " " << names[i];
    const LoDLevel& offsets = value->lod().front();
    ASSERT_EQ(static_cast<std::int64_t>(offsets.size()), lens->second.count() + 1) << c.name;
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      EXPECT_EQ(static_cast<double>(offsets[s + 1] - offsets[s]),
                ElementAt(lens->second, static_cast<std::int64_t>(s)))
          << c.name << " " << names[i] << " sequence " << s;
    }
  }
}

void ExpectRuns(const ControlCase& c, const Program& main, const std::string& kind,
                const std::vector<std::string>& names) {
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  auto started = executor.Run(c.startup, scope, {}, {});
  ASSERT_TRUE(started.ok()) << started.status().ToString();
  for (int round = 0; round < 2; ++round) {
    SetParams(c, scope);
    for (int k = 0; k < c.json["feeds"].get<int>(); ++k) {
      if (!c.arrays.contains(StrCat(kind, k, ":", names.front()))) continue;
      auto got = executor.Run(main, scope, FeedsOf(c, k), names);
      ASSERT_TRUE(got.ok()) << c.name << " feed set " << k << ": " << got.status().ToString();
      ExpectFetched(c, StrCat(kind, k), names, *got);
    }
  }
}

}  // namespace penstock::test
