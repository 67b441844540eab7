// Chains of elementwise ops that run by rows (executor/plan/by_rows.h) leave the bytes of the ops one after
// the other, on any number of threads, on several places at once, and for types that the plan did not expect.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "executor/plan/plan.h"
#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/op_harness.h"
#include "tests/support/run_program.h"

namespace penstock {
namespace {

// 301 rows are no multiple of a part of the rows.
constexpr Dim kRows = 301, kWidth = 1024;

Program Parsed(const std::string& body) {
  Result<Program> program = ParseText(StrCat("program\nblock 0 {\n", body, "}\n"), "test");
  PENSTOCK_CHECK(program.ok(), StrCat(program.status().ToString(), "\n", body));
  return *std::move(program);
}

Result<std::vector<Variable>> ResultsOf(const Program& program, const std::vector<exec::Feed>& feeds,
                                        const std::vector<std::string>& fetches, bool fusion,
                                        int threads = 1) {
  exec::Executor executor(AllOps(), {.threads = threads, .passes = exec::PlanOptions{.fusion = fusion}});
  Scope scope;
  return executor.Run(program, scope, feeds, fetches);
}

bool SameBytes(const Variable& a, const Variable& b) {
  const Tensor &x = *a.If<Tensor>(), &y = *b.If<Tensor>();
  return x.dtype() == y.dtype() && x.shape() == y.shape() && std::memcmp(x.raw(), y.raw(), x.bytes()) == 0;
}

// The number of chains in the plan of a run with these fetches.
int Chains(const Program& program, const std::vector<exec::Feed>& feeds,
           const std::vector<std::string>& fetches) {
  exec::CompileRequest request;
  for (const exec::Feed& feed : feeds) request.feeds.push_back(feed.name);
  request.fetches = fetches;
  auto block = exec::CompileBlock(AllOps(), program, std::move(request));
  PENSTOCK_CHECK(block.ok(), block.status().ToString());
  std::vector<TensorDesc> known;
  for (const exec::SlotInfo& slot : (*block)->slots) known.push_back(DescOf(*slot.var));
  for (std::size_t i = 0; i < feeds.size(); ++i)
    known[static_cast<std::size_t>((*block)->feeds[i])] = DescOf(feeds[i].tensor);
  auto made = exec::MakePlan(AllOps(), *std::move(block), std::move(known), Services(), {});
  if (!made.ok()) return 0;
  int found = 0;
  for (const exec::Instruction& one : made->plan->block->instructions) found += one.chain != nullptr ? 1 : 0;
  return found;
}

void ExpectSameBytes(const std::string& what, const Program& program, const std::vector<exec::Feed>& feeds,
                     const std::vector<std::string>& fetches, int threads = 1) {
  const auto by_rows = ResultsOf(program, feeds, fetches, true, threads);
  const auto apart = ResultsOf(program, feeds, fetches, false, threads);
  ASSERT_EQ(by_rows.ok(), apart.ok()) << what << by_rows.status().ToString() << apart.status().ToString();
  if (!apart.ok()) {
    EXPECT_EQ(by_rows.status().ToString(), apart.status().ToString()) << what;
    return;
  }
  for (std::size_t i = 0; i < fetches.size(); ++i)
    EXPECT_TRUE(SameBytes((*by_rows)[i], (*apart)[i])) << what << ": " << fetches[i];
}

Tensor Fed(Dim rows, unsigned seed, double low = 0.05, double high = 0.95) {
  return test::Scattered(DType::kFp32, {rows, kWidth}, low, high, seed);
}

// Inputs of all ops, made once.
const Tensor& InputOf(DType type, std::size_t number) {
  static std::map<std::pair<DType, std::size_t>, Tensor> made;
  Tensor& tensor = made[{type, number}];
  const bool is_float = type == DType::kFp32 || type == DType::kFp64;
  if (!tensor.initialized())
    tensor = test::Scattered(type, {kRows, kWidth}, is_float ? 0.05 : 1, is_float ? 0.95 : 100,
                             static_cast<unsigned>(number) + 1);
  return tensor;
}

// A program of the op with its defaults, on inputs of one shape, and of two more ops that read its result.
// Empty: the op has required attributes.
std::string ProgramOf(const OpDef& def, bool optional, DType type, std::vector<exec::Feed>& feeds) {
  const std::string of_type = StrCat(" : ", DTypeName(type), "[?, ", kWidth, "]");
  std::string text, arguments;
  for (const SlotDef& slot : def.inputs()) {
    if (slot.optional && !optional) continue;
    const std::string name = StrCat("v", feeds.size());
    text += StrCat("  data ", name, of_type, "\n");
    arguments += StrCat(arguments.empty() ? "" : ", ", "\"", slot.name, "\"=", name);
    feeds.push_back({name, InputOf(type, feeds.size())});
  }
  for (const AttrDef& attr : def.attrs()) {
    if (!attr.default_value) return "";
  }
  std::string results;
  for (const SlotDef& slot : def.outputs()) {
    const std::string name = StrCat("r", results.size());
    text += StrCat("  var ", name, of_type, "\n");
    results += StrCat(results.empty() ? "" : ", ", "\"", slot.name, "\"=", name);
  }
  return StrCat(text, "  var a", of_type, "\n  var b", of_type, "\n  (", results, ") = ", def.type(), "(",
                arguments, ")\n  a = assign(X=r0)\n  b = assign(X=a)\n");
}

TEST(ByRows, EveryElementwiseOpHasItsBytes) {
  int chains = 0;
  for (const OpDef* def : AllOps().All()) {
    if (!def->keeps_layout() || def->optimizer().has_value()) continue;
    const bool has_optional = std::ranges::any_of(def->inputs(), &SlotDef::optional);
    for (const DType type : {DType::kFp32, DType::kFp64, DType::kInt32}) {
      for (const bool optional : {false, true}) {
        if (optional && !has_optional) continue;
        std::vector<exec::Feed> feeds;
        const std::string text = ProgramOf(*def, optional, type, feeds);
        if (text.empty()) continue;
        const Program program = Parsed(text);
        if (Chains(program, feeds, {"b"}) == 0) continue;
        ++chains;
        ExpectSameBytes(text, program, feeds, {"b"});
      }
    }
  }
  EXPECT_GT(chains, 100);
}

constexpr char kForwardAndBackward[] = R"(
  data x : f32[?, 1024]
  data g : f32[?, 1024]
  param b : f32[1024]
  t : f32[?, 1024] = elementwise_add(X=x, Y=b)
  r : f32[?, 1024] = tanh(X=t)
  s : f32[?, 1024] = scale(X=r) {scale=2.0}
  m : f32[1] = mean(X=s)
  r@GRAD : f32[?, 1024] = scale(X=g) {scale=2.0}
  (X@GRAD=t@GRAD : f32[?, 1024]) = tanh_grad(Out=r, Out@GRAD=r@GRAD)
  u : f32[?, 1024] = elementwise_mul(X=t@GRAD, Y=s)
  (X@GRAD=x@GRAD : f32[?, 1024], Y@GRAD=b@GRAD : f32[1024]) = elementwise_add_grad(X=x, Y=b, Out@GRAD=u)
)";

// One executor, and a scope with the bias, for each of several places.
class TrainingOnPlaces {
 public:
  TrainingOnPlaces(int threads, bool fusion)
      : executor_(AllOps(), {.threads = threads,
                             .passes = exec::PlanOptions{.fusion = fusion},
                             .places = {nullptr, nullptr}}) {
    test::SetTensor(scope_, "b", test::Scattered(DType::kFp32, {kWidth}, -1, 1, 9));
  }

  // The results of both places, which run at the same time.
  std::vector<Variable> Step(Dim rows) {
    const std::vector<std::string> fetches = {"m", "x@GRAD", "b@GRAD", "s"};
    std::vector<std::vector<exec::Feed>> feeds;
    for (unsigned place = 0; place < 2; ++place)
      feeds.push_back({{"x", Fed(rows, place + 1)}, {"g", Fed(rows, place + 3)}});
    auto compiled = executor_.FindCompiled(program_, feeds[0], fetches);
    if (compiled == nullptr) compiled = *executor_.Compile(program_, feeds[0], fetches);
    std::vector<std::vector<Variable>> values(2);
    std::vector<std::thread> threads;
    for (std::size_t place = 0; place < 2; ++place) {
      threads.emplace_back([&, place] {
        auto out = executor_.RunAt(static_cast<int>(place), compiled, scope_, feeds[place]);
        PENSTOCK_CHECK(out.ok(), out.status().ToString());
        values[place] = *std::move(out);
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<Variable> all;
    for (std::vector<Variable>& of_place : values) std::ranges::move(of_place, std::back_inserter(all));
    return all;
  }

 private:
  const Program program_ = Parsed(kForwardAndBackward);
  Scope scope_;
  exec::Executor executor_;
};

TEST(ByRows, PlacesAndThreadsRunChainsAtTheSameTime) {
  const std::vector<exec::Feed> feeds = {{"x", Fed(kRows, 1)}, {"g", Fed(kRows, 2)}};
  ASSERT_EQ(Chains(Parsed(kForwardAndBackward), feeds, {"m", "x@GRAD"}), 2);
  for (const int threads : {1, 2}) {
    TrainingOnPlaces by_rows(threads, true), apart(threads, false);
    for (const Dim rows : {kRows, Dim{640}, kRows, Dim{2}, Dim{640}}) {
      const std::vector<Variable> a = by_rows.Step(rows), b = apart.Step(rows);
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i)
        EXPECT_TRUE(SameBytes(a[i], b[i])) << rows << " rows, " << threads << " threads: " << i;
    }
  }
}

// The chain is planned for the type of the element that was written last, and meets another one.
constexpr char kFromArray[] = R"(
  data x : f32[?, 1024]
  var y : f32[?, 1024]
  var e : f32[?, 1024]
  var t : f32[?, 1024]
  var s : f32[?, 1024]
  zero : i64[1] = fill_constant() {shape=[1l], value=0.0, dtype=3}
  one : i64[1] = fill_constant() {shape=[1l], value=1.0, dtype=3}
  a : array<f32[?, 1024]> = write_to_array(X=y, I=zero)
  a = write_to_array(X=x, I=one)
  e = read_from_array(X=a, I=zero)
)";

TEST(ByRows, AChainRunsForTypesThatThePlanDidNotExpect) {
  const Program same =
      Parsed(StrCat(kFromArray, "  t = tanh(X=e)\n  s = scale(X=t) {scale=0.5, bias=0.1}\n"));
  // A bias for each row, where the plan expects a value for each element.
  const Program aligned =
      Parsed(StrCat(kFromArray, "  t = elementwise_add(X=x, Y=e) {axis=0}\n  s = tanh(X=t)\n"));
  const exec::Feed x = {"x", Fed(kRows, 1)};
  for (const Program* program : {&same, &aligned}) {
    ASSERT_EQ(Chains(*program, {x, {"y", Fed(kRows, 2)}}, {"s"}), 1);
    for (const Dim rows : {kRows, Dim{700}, Dim{2}, Dim{1}})
      ExpectSameBytes("rows", *program, {x, {"y", Fed(rows, 2)}}, {"s"}, 2);
    ExpectSameBytes("one dimension", *program, {x, {"y", test::Scattered(DType::kFp32, {kRows}, 0, 1)}},
                    {"s"}, 2);
  }
}

// Rows of the first dimension would not fit a cache.
constexpr char kLargeRows[] = R"(
  data x : f32[?, ?, 256, 80]
  data y : f32[?, ?, 256, 80]
  data c : f32[256]
  data p : f32[256, 80]
  t : f32[?, ?, 256, 80] = elementwise_add(X=x, Y=p) {axis=2}
  u : f32[?, ?, 256, 80] = elementwise_mul(X=t, Y=c) {axis=2}
  r : f32[?, ?, 256, 80] = tanh(X=u)
  s : f32[?, ?, 256, 80] = elementwise_sub(X=r, Y=y)
  (X@GRAD=v : f32[?, ?, 256, 80]) = tanh_grad(Out=r, Out@GRAD=s)
)";

TEST(ByRows, RowsAreCountedBySeveralDimensionsIfTheFirstOnesAreLarge) {
  const Program program = Parsed(kLargeRows);
  for (const Shape& first : {Shape{3, 7}, Shape{1, 33}, Shape{40, 1}, Shape{2, 8}}) {
    const Shape shape = {first[0], first[1], 256, 80};
    const std::vector<exec::Feed> feeds = {{"x", test::Scattered(DType::kFp32, shape, -1, 1, 1)},
                                           {"y", test::Scattered(DType::kFp32, shape, -1, 1, 2)},
                                           {"c", test::Scattered(DType::kFp32, {256}, -1, 1, 3)},
                                           {"p", test::Scattered(DType::kFp32, {256, 80}, -1, 1, 4)}};
    EXPECT_EQ(Chains(program, feeds, {"v"}), 1);
    for (const int threads : {1, 2, 3}) {
      ExpectSameBytes("temporaries", program, feeds, {"v"}, threads);
      ExpectSameBytes("results", program, feeds, {"t", "r", "v"}, threads);
    }
  }
}

TEST(ByRows, OneExecutorMeetsManyTypes) {
  const Program program = Parsed(StrCat(kFromArray, "  t = tanh(X=e)\n  s = scale(X=t) {scale=0.5}\n"));
  std::vector<std::unique_ptr<exec::Executor>> executors;
  for (const bool fusion : {true, false})
    executors.push_back(std::make_unique<exec::Executor>(
        AllOps(), exec::ExecutorOptions{.threads = 2, .passes = exec::PlanOptions{.fusion = fusion}}));
  for (const Dim rows : {kRows, Dim{12}, kRows, Dim{1}, Dim{640}, Dim{12}}) {
    std::vector<Variable> results;
    for (const auto& executor : executors) {
      Scope scope;
      const std::vector<exec::Feed> feeds = {{"x", Fed(kRows, 1)}, {"y", Fed(rows, 2)}};
      auto out = executor->Run(program, scope, feeds, std::vector<std::string>{"s"});
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      results.push_back((*out)[0]);
    }
    EXPECT_TRUE(SameBytes(results[0], results[1])) << rows;
  }
}

TEST(ByRows, AnErrorOfAnOpIsThatOfTheOpAlone) {
  const Program program = Parsed(R"(
  data x : i32[?, 1024]
  data y : i32[?, 1024]
  double : i32[?, 1024] = scale(X=x) {scale=2.0}
  quotient : i32[?, 1024] = elementwise_floordiv(X=double, Y=y) at "train.py:12 in model"
  total : i32[?, 1024] = elementwise_add(X=quotient, Y=x)
)");
  Tensor zero_late = test::Ramp(DType::kInt32, {kRows, kWidth}, 1, 1);
  zero_late.Data<std::int32_t>()[kRows * kWidth - 5] = 0;
  const std::vector<exec::Feed> feeds = {{"x", test::Ramp(DType::kInt32, {kRows, kWidth}, 1, 1)},
                                         {"y", zero_late}};
  ASSERT_EQ(Chains(program, feeds, {"total"}), 1);
  for (const int threads : {1, 2}) {
    const auto out = ResultsOf(program, feeds, {"total"}, true, threads);
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.status().id(), "E-op-divide-zero");
    EXPECT_NE(out.status().ToString().find("train.py:12"), std::string::npos) << out.status().ToString();
    ExpectSameBytes("error", program, feeds, {"total"}, threads);
  }
}

TEST(ByRows, WhatABlockMayWriteIsReadByAnOpOfItsOwn) {
  const Program program = Parsed(R"(
  data x : f32[?, 1024]
  data c : bool[1]
  var y : f32[?, 1024]
  t : f32[?, 1024] = tanh(X=x)
  (Out=[y], Scope=[]) = conditional_block(Cond=[c], Input=[x]) {sub_block=^1, is_scalar_condition=true}
  s : f32[?, 1024] = elementwise_add(X=t, Y=y)
  r : f32[?, 1024] = sigmoid(X=s)
}
block 1 in 0 {
  y = scale(X=x) {scale=2.0}
)");
  for (const bool runs : {true, false}) {
    Tensor condition(DType::kBool, {1});
    *condition.Data<bool>() = runs;
    const std::vector<exec::Feed> feeds = {{"x", Fed(kRows, 1)}, {"c", condition}};
    EXPECT_EQ(Chains(program, feeds, {"r"}), 0);
    ExpectSameBytes(runs ? "runs" : "does not run", program, feeds, {"r"});
  }
}

}  // namespace
}  // namespace penstock
