// sync_batch_norm on several threads, compared with batch_norm on the joined batch.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/thread_rings.h"

namespace penstock {
namespace {

using test::OnThreads;
using test::ThreadRings;

constexpr Dim kChannels = 3, kPoints = 4;
using Values = std::map<std::string, std::vector<float>>;

Tensor Filled(const std::vector<float>& values, const Shape& shape) {
  Tensor tensor(DType::kFp32, shape);
  std::copy(values.begin(), values.end(), tensor.Data<float>());
  return tensor;
}

// Runs "op" and its gradient on `images` images; returns the values of all variables. `live`: the value of
// Live, if given.
Values NormalizeBy(const std::string& op, const std::string& attrs, const std::vector<float>& x,
                   const std::vector<float>& dy, CollectiveRings* rings,
                   std::optional<float> live = std::nullopt) {
  const Dim images = static_cast<Dim>(x.size()) / (kChannels * kPoints);
  const std::string data = "f32[" + std::to_string(images) + ", 3, 4]", channel = "f32[3]";
  std::string text = "program\nblock 0 {\n";
  for (const char* name : {"x", "dy", "y", "dx"})
    text += "  persist " + std::string(name) + " : " + data + "\n";
  for (const char* name :
       {"scale", "bias", "mean", "variance", "saved_mean", "saved_variance", "dscale", "dbias"})
    text += "  persist " + std::string(name) + " : " + channel + "\n";
  const std::string live_slot = live ? ", Live=live" : "";
  if (live) text += "  persist live : f32[1]\n";
  text +=
      "  (Y=y, MeanOut=mean, VarianceOut=variance, SavedMean=saved_mean, SavedVariance=saved_variance) = " +
      op + "(X=x, Scale=scale, Bias=bias, Mean=mean, Variance=variance" + live_slot + ") {" + attrs + "}\n";
  text += "  (X@GRAD=dx, Scale@GRAD=dscale, Bias@GRAD=dbias) = " + op +
          "_grad(X=x, Scale=scale, Bias=bias, SavedMean=saved_mean, SavedVariance=saved_variance, Y@GRAD=dy" +
          live_slot + (attrs.find("global") == std::string::npos ? "" : ", Mean=mean, Variance=variance") +
          ") {" + attrs + "}\n}\n";
  Result<Program> program = ParseText(text, "test");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  Scope scope;
  scope.FindOrCreate("x")->As<Tensor>() = Filled(x, {images, kChannels, kPoints});
  scope.FindOrCreate("dy")->As<Tensor>() = Filled(dy, {images, kChannels, kPoints});
  scope.FindOrCreate("scale")->As<Tensor>() = Filled({1, 2, 0.5f}, {kChannels});
  scope.FindOrCreate("bias")->As<Tensor>() = Filled({0, 1, -1}, {kChannels});
  scope.FindOrCreate("mean")->As<Tensor>() = Filled({0, 0.5f, 0}, {kChannels});
  scope.FindOrCreate("variance")->As<Tensor>() = Filled({1, 1, 2}, {kChannels});
  if (live) scope.FindOrCreate("live")->As<Tensor>() = Filled({*live}, {1});
  exec::Executor executor(AllOps(), {.threads = 1, .rings = rings});
  const Status status = executor.Run(*program, scope, {}, {}).status();
  EXPECT_TRUE(status.ok()) << status.ToString();
  Values out;
  for (const char* name :
       {"y", "dx", "mean", "variance", "saved_mean", "saved_variance", "dscale", "dbias"}) {
    const auto span = scope.Find(name)->As<Tensor>().Span<float>();
    out[name] = {span.begin(), span.end()};
  }
  return out;
}

void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected,
                const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 2e-5 * (1 + std::abs(expected[i]))) << what << "[" << i << "]";
  }
}

class SyncBatchNorm : public testing::TestWithParam<std::string> {};

// Ranks have batches of different sizes, one of them empty.
TEST_P(SyncBatchNorm, EqualsBatchNormOfTheJoinedBatch) {
  const std::vector<std::size_t> images = {3, 1, 0, 2};
  const std::size_t image = kChannels * kPoints;
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0.3f, 2);
  std::vector<float> x(image * std::accumulate(images.begin(), images.end(), std::size_t{0})), dy(x.size());
  for (float& value : x) value = normal(random);
  for (float& value : dy) value = normal(random);
  const Values whole = NormalizeBy("batch_norm", GetParam(), x, dy, nullptr);
  std::vector<Values> parts(images.size());
  OnThreads(static_cast<int>(images.size()), [&](ThreadRings& rings) {
    const auto rank = static_cast<std::size_t>((*rings.Ring(0))->rank());
    const auto before = static_cast<std::ptrdiff_t>(
        image *
        std::accumulate(images.begin(), images.begin() + static_cast<std::ptrdiff_t>(rank), std::size_t{0}));
    const auto count = static_cast<std::ptrdiff_t>(image * images[rank]);
    const auto part = [&](const std::vector<float>& all) {
      return std::vector<float>(all.begin() + before, all.begin() + before + count);
    };
    parts[rank] = NormalizeBy("sync_batch_norm", GetParam(), part(x), part(dy), &rings);
  });
  Values joined;
  for (const Values& part : parts) {
    for (const char* name : {"y", "dx"})
      joined[name].insert(joined[name].end(), part.at(name).begin(), part.at(name).end());
    for (const char* name : {"dscale", "dbias"}) {
      joined[name].resize(kChannels);
      for (std::size_t c = 0; c < joined[name].size(); ++c) joined[name][c] += part.at(name)[c];
    }
    for (const char* name : {"mean", "variance", "saved_mean", "saved_variance"}) {
      EXPECT_EQ(part.at(name), parts.front().at(name)) << name << " is the same on all ranks";
      joined[name] = part.at(name);
    }
  }
  for (const auto& [name, values] : whole) ExpectNear(joined[name], values, name);
}

INSTANTIATE_TEST_SUITE_P(Modes, SyncBatchNorm,
                         testing::Values("epsilon=0.001, momentum=0.8", "use_global_stats=true"),
                         [](const auto& of) { return of.index == 0 ? "OfTheBatch" : "OfTheRunningMoments"; });

// Rank 1 repeats a batch that does not count.
TEST(SyncBatchNorm, ExcludesRanksThatAreNotLive) {
  const std::size_t image = kChannels * kPoints;
  const std::string attrs = "epsilon=0.001, momentum=0.8";
  std::mt19937 random(6);
  std::normal_distribution<float> normal(0.3f, 2);
  std::vector<float> x(3 * image), dy(x.size());
  for (float& value : x) value = normal(random);
  for (float& value : dy) value = normal(random);
  const Values whole = NormalizeBy("batch_norm", attrs, x, dy, nullptr);
  std::vector<Values> parts(3);
  OnThreads(3, [&](ThreadRings& rings) {
    const auto rank = static_cast<std::size_t>((*rings.Ring(0))->rank());
    const auto part = [&](const std::vector<float>& all) {  // rank 0 has two images, rank 2 the third
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank == 2 ? 2 * image : 0);
      return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(rank == 0 ? 2 * image : image));
    };
    const bool live = rank != 1;
    std::vector<float> own = part(x), gradient = part(dy);
    if (!live) {
      for (float& value : own) value = 100;
      for (float& value : gradient) value = 0;  // as for a loss with share 0
    }
    parts[rank] = NormalizeBy("sync_batch_norm", attrs, own, gradient, &rings, live ? 1.0f : 0.0f);
  });
  for (const char* name : {"mean", "variance", "saved_mean", "saved_variance"}) {
    for (const Values& part : parts) ExpectNear(part.at(name), whole.at(name), name);
  }
  for (const float value : parts[1].at("dx")) EXPECT_EQ(value, 0);
  for (const char* name : {"y", "dx"}) {
    std::vector<float> joined = parts[0].at(name);
    joined.insert(joined.end(), parts[2].at(name).begin(), parts[2].at(name).end());
    ExpectNear(joined, whole.at(name), name);
  }
}

TEST(SyncBatchNorm, TestModeDoesNotCommunicate) {
  const std::vector<float> x(24, 1.0f);
  NormalizeBy("sync_batch_norm", "use_global_stats=true", x, x, nullptr);
}

}  // namespace
}  // namespace penstock
