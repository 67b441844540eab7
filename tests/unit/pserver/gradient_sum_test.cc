// The server's own addition gives the same bytes as the operators.
#include "executor/pserver/memory/gradient_sum.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "executor/schedule/executor.h"
#include "framework/base/strings.h"
#include "framework/ir/program.h"
#include "framework/runtime/compute_pool.h"
#include "operators/all_ops.h"

namespace penstock::pserver {
namespace {

// Numbers of all sizes, mixed with special values.
template <typename T>
Tensor Gradient(Dim count, std::mt19937_64& random) {
  Tensor tensor(DTypeOfT<T>::kValue, {count});
  const T odd[] = {T{0},
                   -T{0},
                   std::numeric_limits<T>::infinity(),
                   -std::numeric_limits<T>::infinity(),
                   std::numeric_limits<T>::denorm_min(),
                   -std::numeric_limits<T>::denorm_min(),
                   std::numeric_limits<T>::max(),
                   std::numeric_limits<T>::quiet_NaN()};
  for (T& x : tensor.Span<T>()) {
    x = static_cast<T>(std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random),
                                  std::uniform_int_distribution<int>(-60, 60)(random)));
    if (random() % 16 == 0) x = odd[random() % std::size(odd)];
  }
  return tensor;
}

// The gradient's bytes in pieces of random sizes at random addresses.
std::vector<Payload> Scatter(const Tensor& tensor, std::mt19937_64& random) {
  std::vector<Payload> parts;
  for (std::size_t at = 0; at < tensor.bytes();) {
    const std::size_t size =
        std::min<std::size_t>(tensor.bytes() - at, 1 + random() % (random() % 2 == 0 ? 40 : 9999));
    std::string bytes(reinterpret_cast<const char*>(tensor.raw() + at), size);
    const std::size_t shift = random() % 8;
    bytes.insert(0, shift, 'x');
    const Payload shifted = Payload::Of(std::move(bytes));
    Bytes piece = shifted.pieces().front();
    piece.data += shift;
    piece.size -= shift;
    if (parts.empty() || random() % 3 == 0) parts.emplace_back();
    parts.back().Append(std::move(piece));
    at += size;
  }
  return parts;
}

template <typename T>
Tensor ByOps(const std::vector<Tensor>& gradients, std::optional<float> factor) {
  Program program;
  Scope scope;
  Block& block = program.MutableBlock(0);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    names.push_back(StrCat("g", i));
    Var var;
    var.name = names.back();
    var.type = TensorType{gradients[i].dtype(), gradients[i].shape()};
    var.persistable = true;
    block.SetVar(var);
    scope.FindOrCreate(names.back())->As<Tensor>() = gradients[i];
  }
  Var merged;
  merged.name = "merged";
  merged.type = TensorType{gradients.front().dtype(), gradients.front().shape()};
  merged.persistable = true;
  block.SetVar(merged);
  block.Append(Op("sum").AddInput("X", names).AddOutput("Out", {"merged"}));
  if (factor)
    block.Append(Op("scale").AddInput("X", {"merged"}).AddOutput("Out", {"merged"}).Set("scale", *factor));
  exec::Executor executor(AllOps(), {.threads = 1});
  const auto run = executor.Run(program, scope, {}, {});
  EXPECT_TRUE(run.ok()) << run.status().ToString();
  return scope.Find("merged")->As<Tensor>();
}

template <typename T>
void ExpectTheBytesOfTheOps(std::mt19937_64& random, std::uint64_t count_max = 9000, int rounds = 30) {
  for (int round = 0; round < rounds; ++round) {
    const int trainers = 1 + round % 5;
    const auto count = static_cast<Dim>(1 + random() % count_max);
    std::vector<Tensor> gradients;
    for (int t = 0; t < trainers; ++t) {
      gradients.push_back(Gradient<T>(count, random));
      if (random() % 4 == 0) std::memset(gradients.back().raw(), 0, gradients.back().bytes());  // completed
    }
    std::optional<float> factor;
    if (round % 4 != 0) factor = static_cast<float>(1.0 / trainers);
    const Tensor expected = ByOps<T>(gradients, factor);
    Tensor sum(DTypeOfT<T>::kValue, {count});
    const bool wait = random() % 2 == 0;  // the first for the second
    std::vector<Payload> first;
    for (int t = 0; t < trainers; ++t) {
      const Tensor& gradient = gradients[static_cast<std::size_t>(t)];
      const bool zeros = std::all_of(gradient.raw(), gradient.raw() + gradient.bytes(),
                                     [](std::byte b) { return b == std::byte{0}; });
      std::vector<Payload> parts = zeros ? std::vector<Payload>() : Scatter(gradient, random);
      if (wait && t == 0 && trainers > 1) {
        first = std::move(parts);
        continue;
      }
      AddGradient(parts,
                  {.first = t == 0,
                   .to = wait && t == 1 ? &first : nullptr,
                   .factor = t == trainers - 1 ? factor : std::nullopt},
                  sum);
    }
    for (Dim i = 0; i < count; ++i) {
      const T a = sum.Span<T>()[static_cast<std::size_t>(i)],
              b = expected.Span<T>()[static_cast<std::size_t>(i)];
      if (a != a && b != b) continue;  // any NaN is correct
      ASSERT_EQ(std::memcmp(&a, &b, sizeof(T)), 0) << a << " " << b << " of " << trainers << " trainers";
    }
  }
}

TEST(GradientSum, GivesTheBytesOfSumAndScale) {
  std::mt19937_64 random(18);
  ExpectTheBytesOfTheOps<float>(random);
  ExpectTheBytesOfTheOps<double>(random);
}

TEST(GradientSum, GivesTheSameBytesOnSeveralThreads) {
  std::mt19937_64 random(19);
  const ComputeTeam team(3);
  ExpectTheBytesOfTheOps<float>(random, 200'000, 10);
  ExpectTheBytesOfTheOps<double>(random, 200'000, 10);
}

TEST(GradientSum, AddsFloat32AndFloat64Only) {
  EXPECT_TRUE(CanAdd(DType::kFp32));
  EXPECT_TRUE(CanAdd(DType::kFp64));
  EXPECT_FALSE(CanAdd(DType::kInt64));
}

}  // namespace
}  // namespace penstock::pserver
