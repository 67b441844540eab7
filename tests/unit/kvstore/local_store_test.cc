// The store of one process: sums, types, rows, copies, states, and what it refuses.
#include "executor/kvstore/local_store.h"

#include <gtest/gtest.h>

#include <limits>

#include "framework/base/strings.h"
#include "framework/tensor/half.h"
#include "operators/all_ops.h"

namespace penstock::kvstore {
namespace {

Tensor Floats(std::initializer_list<float> values) {
  Tensor tensor(DType::kFp32, {static_cast<Dim>(values.size())});
  std::copy(values.begin(), values.end(), tensor.Data<float>());
  return tensor;
}
Tensor Table(Dim rows, float first) {
  Tensor tensor(DType::kFp32, {rows, 2});
  for (Dim i = 0; i < tensor.count(); ++i) tensor.Data<float>()[i] = first + static_cast<float>(i);
  return tensor;
}
SelectedRows RowsOf(std::vector<std::int64_t> rows, float first) {
  const auto count = static_cast<Dim>(rows.size());
  return {.rows = std::move(rows), .height = 4, .value = Table(count, first)};
}
std::vector<float> Pulled(const LocalStore& store, const char* key, const Shape& shape) {
  Tensor out(DType::kFp32, shape);
  EXPECT_TRUE(store.Pull(key, out).ok());
  return {out.Data<float>(), out.Data<float>() + out.count()};
}
using Values = std::vector<float>;

std::string ErrorOf(const Status& status) { return status.ToString(); }

KeyOptimizer Momentum() { return MakeOptimizer("sgd", {{"learning_rate", 0.5}, {"momentum", 0.5}}).value(); }

TEST(LocalStore, AddsDevicesInMxnetsOrder) {
  // 1e8 swallows a 1, but not four of them.
  const std::vector<Tensor> devices = {Floats({1e8f}), Floats({2}), Floats({2}), Floats({2}), Floats({2})};
  for (const auto& [order, sum] : {std::pair{SumOrder::kInFours, 1e8f + 8}, {SumOrder::kLeftToRight, 1e8f}}) {
    LocalStore store(AllOps(), {.order = order});
    ASSERT_TRUE(store.Init("w", Floats({0})).ok());
    ASSERT_TRUE(store.Push("w", devices).ok());
    EXPECT_EQ(Pulled(store, "w", {1}), Values{sum});
  }
}

TEST(LocalStore, KeepsNoMemoryOfCallers) {
  LocalStore store(AllOps(), {});
  Tensor value = Floats({1, 2});
  ASSERT_TRUE(store.Init("w", value).ok());
  value.Data<float>()[0] = 9;
  EXPECT_EQ(Pulled(store, "w", {2}), (Values{1, 2}));
  ASSERT_TRUE(store.Push("w", std::vector<Tensor>{value}).ok());
  value.Data<float>()[0] = 5;
  EXPECT_EQ(Pulled(store, "w", {2}), (Values{9, 2}));
  // After pushes of several devices, an optimizer starts from the value, not from a sum.
  ASSERT_TRUE(store.Push("w", std::vector<Tensor>{Floats({1, 1}), Floats({1, 1})}).ok());
  store.SetOptimizer(Momentum());
  ASSERT_TRUE(store.Push("w", std::vector<Tensor>{Floats({1, 0}), Floats({1, 0})}).ok());
  EXPECT_EQ(Pulled(store, "w", {2}), (Values{1, 2}));
}

TEST(LocalStore, TakesAnyNumberOfDevicesInEachPush) {
  LocalStore store(AllOps(), {});
  ASSERT_TRUE(store.Init("w", Floats({0})).ok());
  for (const std::size_t devices : {2u, 3u, 1u, 7u}) {
    ASSERT_TRUE(store.Push("w", std::vector<Tensor>(devices, Floats({1}))).ok());
    EXPECT_EQ(Pulled(store, "w", {1}), Values{static_cast<float>(devices)});
  }
}

TEST(LocalStore, KeepsHalvesInSinglePrecision) {
  LocalStore store(AllOps(), {});
  Tensor half(DType::kFp16, {1});
  *half.Data<Half>() = HalfOf(2048);
  ASSERT_TRUE(store.Init("w", half).ok());
  store.SetOptimizer(MakeOptimizer("test", {}).value());
  *half.Data<Half>() = HalfOf(0.5f);  // below half of the spacing of halves there, 2
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(store.Push("w", std::vector<Tensor>{half}).ok());
  EXPECT_EQ(Pulled(store, "w", {1}), Values{2050});
  ASSERT_TRUE(store.Pull("w", half).ok());
  EXPECT_EQ(FloatOf(*half.Data<Half>()), 2050);
}

TEST(LocalStore, AddsIntegersWithoutAnOptimizer) {
  LocalStore store(AllOps(), {});
  Tensor one(DType::kInt32, {1});
  *one.Data<std::int32_t>() = std::numeric_limits<std::int32_t>::max();
  ASSERT_TRUE(store.Init("w", one).ok());
  ASSERT_TRUE(store.Push("w", std::vector<Tensor>{one, one}).ok());
  Tensor out(DType::kInt32, {1});
  ASSERT_TRUE(store.Pull("w", out).ok());
  EXPECT_EQ(*out.Data<std::int32_t>(), -2);  // it wraps
  store.SetOptimizer(Momentum());
  EXPECT_EQ(ErrorOf(store.Push("w", std::vector<Tensor>{one})),
            "key w is i32; an optimizer updates f16, f32 and f64   [E-kv-optimizer-type]");
}

TEST(LocalStore, RowsThatNobodyGaveAreZero) {
  LocalStore store(AllOps(), {});
  ASSERT_TRUE(store.InitRows("e", RowsOf({3, 1}, 1), {4, 2}).ok());
  EXPECT_EQ(Pulled(store, "e", {4, 2}), (Values{0, 0, 3, 4, 0, 0, 1, 2}));
  const Result<SelectedRows> rows = store.PullRows("e", std::vector<std::int64_t>{3, 0, 3});
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->rows, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(rows->value.Span<float>()[3], 2);
  EXPECT_TRUE(store.PullRows("e", {}).value().rows.empty());
  // Rows that two devices push are added, and replace the table.
  ASSERT_TRUE(store.PushRows("e", std::vector<SelectedRows>{RowsOf({2}, 1), RowsOf({2, 0}, 10)}).ok());
  EXPECT_EQ(Pulled(store, "e", {4, 2}), (Values{12, 13, 0, 0, 11, 13, 0, 0}));
}

TEST(LocalStore, MergesRowsOfDevicesInAnyOrder) {
  LocalStore store(AllOps(), {});
  ASSERT_TRUE(store.InitRows("e", RowsOf({}, 0), {4, 2}).ok());
  const std::vector<SelectedRows> pushed = {RowsOf({3, 1, 3}, 1), RowsOf({}, 0), RowsOf({0, 3}, 10),
                                            RowsOf({1}, 20)};
  const Result<SelectedRows> merged = store.MergeRows("e", pushed);
  ASSERT_TRUE(merged.ok()) << merged.status().ToString();
  EXPECT_EQ(merged->rows, (std::vector<std::int64_t>{0, 1, 3}));
  const std::span<const float> values = merged->value.Span<float>();
  EXPECT_EQ(Values(values.begin(), values.end()), (Values{10, 11, 23, 25, 1 + 5 + 12, 2 + 6 + 13}));
  // A single list that is in order already is copied, too.
  const std::vector<SelectedRows> one = {RowsOf({0, 2}, 1)};
  EXPECT_NE(store.MergeRows("e", one).value().value.raw(), one[0].value.raw());
}

TEST(LocalStore, ADenseKeyMayBePushedByRows) {
  LocalStore store(AllOps(), {});
  ASSERT_TRUE(store.Init("w", Table(4, 0)).ok());
  store.SetOptimizer(MakeOptimizer("sgd", {{"learning_rate", 1}}).value());
  ASSERT_TRUE(store.PushRows("w", std::vector<SelectedRows>{RowsOf({1}, 2)}).ok());
  EXPECT_EQ(Pulled(store, "w", {4, 2}), (Values{0, 1, 0, 0, 4, 5, 6, 7}));
}

TEST(LocalStore, RefusesWhatDoesNotFit) {
  LocalStore store(AllOps(), {});
  ASSERT_TRUE(store.Init("w", Floats({1, 2})).ok());
  ASSERT_TRUE(store.InitRows("e", RowsOf({}, 0), {4, 2}).ok());
  Tensor one = Floats({1}), numbers(DType::kInt64, {2}), truths(DType::kBool, {2});
  EXPECT_EQ(ErrorOf(store.Init("w", one)), "key w has a value already   [E-kv-key-again]");
  EXPECT_EQ(ErrorOf(store.Init("t", truths)),
            "a store keeps no bool; it keeps f16, f32, f64, i8, i16, i32, i64 and u8   [E-kv-value]");
  EXPECT_EQ(ErrorOf(store.Push("v", std::vector<Tensor>{one})),
            "key v has no value yet; init it first   [E-kv-key]");
  EXPECT_EQ(ErrorOf(store.Push("w", std::vector<Tensor>{one})),
            "key w has shape [2], and the value [1]   [E-kv-value]");
  EXPECT_EQ(ErrorOf(store.Push("w", std::vector<Tensor>{numbers})),
            "key w is f32, and the value is i64   [E-kv-value]");
  EXPECT_EQ(ErrorOf(store.Push("w", {})), "key w is pushed without a value   [E-kv-value]");
  EXPECT_EQ(ErrorOf(store.Push("e", std::vector<Tensor>{Table(4, 0)})),
            "key e has rows, and the value is dense   [E-kv-rows]");
  EXPECT_EQ(ErrorOf(store.PushRows("e", std::vector<SelectedRows>{RowsOf({4}, 0)})),
            "key e has no row 4; it has 4 rows   [E-kv-rows]");
  EXPECT_EQ(ErrorOf(store.PullRows("e", std::vector<std::int64_t>{-1}).status()),
            "key e has no row -1; it has 4 rows   [E-kv-rows]");
  EXPECT_EQ(ErrorOf(store.PullRows("w", {}).status()), "key w is dense; it has no rows   [E-kv-rows]");
  EXPECT_EQ(Pulled(store, "w", {2}), (Values{1, 2}));
}

TEST(LocalStore, CompressesWhatEachDevicePushes) {
  LocalStore store(AllOps(), {});
  ASSERT_TRUE(store.Init("w", Floats({7, 7, 7})).ok());
  EXPECT_EQ(store.SetCompression(0).id(), "E-compression-value");
  ASSERT_TRUE(store.SetCompression(0.5f).ok());
  ASSERT_TRUE(store.Push("w", std::vector<Tensor>{Floats({0.25f, -1, 0}), Floats({0.5f, 0, 0.25f})}).ok());
  EXPECT_EQ(Pulled(store, "w", {3}), (Values{0.5f, -0.5f, 0}));
  const Tensor nan = Floats({0.25f, 0, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(store.Push("w", std::vector<Tensor>{Floats({0.25f, 0, 0}), nan}).id(), "E-compression-finite");
  ASSERT_TRUE(store.Push("w", std::vector<Tensor>{Floats({0.25f, 0, 0}), Floats({0, 0, 0.25f})}).ok());
  EXPECT_EQ(Pulled(store, "w", {3}), (Values{0.5f, -0.5f, 0.5f}));
  ASSERT_TRUE(store.InitRows("e", RowsOf({}, 0), {4, 2}).ok());
  EXPECT_EQ(store.PushRows("e", std::vector<SelectedRows>{RowsOf({1}, 0)}).id(), "E-kv-compression");
}

// Two stores that push the same after one has taken the other's states are equal.
TEST(LocalStore, StatesGoOnWithTheirOptimizerAndCounts) {
  const auto push = [](LocalStore& store, float value) {
    ASSERT_TRUE(store.Push("w", std::vector<Tensor>{Floats({value, 1})}).ok());
  };
  LocalStore one(AllOps(), {}), other(AllOps(), {});
  EXPECT_EQ(one.States(true).status().id(), "E-kv-no-optimizer");
  one.SetOptimizer(MakeOptimizer("adam", {{"learning_rate", 0.5}}).value());
  ASSERT_TRUE(one.Init("w", Floats({1, 2})).ok());
  push(one, 1);
  push(one, -2);
  const Result<SavedStates> saved = SavedStates::Parse(one.States(true).value().ToBytes());
  ASSERT_TRUE(saved.ok()) << saved.status().ToString();
  EXPECT_EQ(saved->keys.at("w").count, 2);
  ASSERT_TRUE(other
                  .Init("w",
                        [&] {
                          Tensor now(DType::kFp32, {2});
                          EXPECT_TRUE(one.Pull("w", now).ok());
                          return now;
                        }())
                  .ok());
  ASSERT_TRUE(other.SetStates(*saved).ok());
  EXPECT_EQ(other.States(true).value().ToBytes(), one.States(true).value().ToBytes());  // before it is used
  push(one, 3);
  push(other, 3);
  EXPECT_EQ(Pulled(other, "w", {2}), Pulled(one, "w", {2}));
  EXPECT_EQ(other.States(true).value().ToBytes(), one.States(true).value().ToBytes());
}

TEST(LocalStore, StatesThatDoNotFitAreRefused) {
  LocalStore store(AllOps(), {});
  ASSERT_TRUE(store.Init("w", Floats({1, 2})).ok());
  SavedStates states;
  states.keys["w"] = {.count = 1, .states = {Floats({1})}};
  EXPECT_EQ(store.SetStates(states).id(), "E-kv-no-optimizer");
  store.SetOptimizer(Momentum());
  ASSERT_TRUE(store.SetStates(states).ok());
  EXPECT_EQ(ErrorOf(store.Push("w", std::vector<Tensor>{Floats({1, 1})})),
            "the loaded states of key w do not fit: state 0 is f32[1], not f32[2]   [E-kv-states]");
}

TEST(LocalStore, AChangedOptimizerKeepsItsStates) {
  LocalStore store(AllOps(), {});
  ASSERT_TRUE(store.Init("w", Floats({0})).ok());
  EXPECT_EQ(store.ChangeOptimizer(Momentum()).id(), "E-kv-no-optimizer");
  store.SetOptimizer(Momentum());
  ASSERT_TRUE(store.Push("w", std::vector<Tensor>{Floats({1})}).ok());  // m = -0.5
  ASSERT_TRUE(
      store.ChangeOptimizer(MakeOptimizer("sgd", {{"learning_rate", 0}, {"momentum", 0.5}}).value()).ok());
  EXPECT_TRUE(store.States(true).ok());
  ASSERT_TRUE(store.Push("w", std::vector<Tensor>{Floats({1})}).ok());
  EXPECT_EQ(Pulled(store, "w", {1}), Values{-0.75f});
  EXPECT_EQ(store.ChangeOptimizer(MakeOptimizer("adam", {}).value()).id(), "E-kv-no-optimizer");
}

TEST(SavedStates, DamagedFilesAreRefused) {
  SavedStates states;
  states.optimizer = Momentum();
  states.keys["a key"] = {.count = 12, .states = {Floats({1, 2})}};
  const std::string bytes = states.ToBytes();
  ASSERT_TRUE(SavedStates::Parse(bytes).ok());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(SavedStates::Parse(std::string_view(bytes).substr(0, size)).status().id(), "E-kv-states")
        << size;
  EXPECT_EQ(SavedStates::Parse(bytes + "x").status().message(),
            "states of an optimizer: 1 bytes follow the last state");
  for (const char* head : {"-\nmany\n", "-\n1\n1 many w\n", "sgdx {}\n0\n"})
    EXPECT_EQ(SavedStates::Parse(StrCat("penstock kv states 1\n", head)).status().id(), "E-kv-states")
        << head;
  EXPECT_EQ(SavedStates::Parse("penstock kv states 1\n-\n1000000000\n").status().message(),
            "states of an optimizer: the file ends after 0 of 1000000000 keys");
}

}  // namespace
}  // namespace penstock::kvstore
