#include "framework/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "framework/tensor/chunk.h"
#include "framework/tensor/scope.h"

namespace penstock {
namespace {

TEST(Shape, AnUnknownExtentIsCompatibleWithAny) {
  const Shape batch = {-1, 784};
  EXPECT_EQ(batch.ToString(), "[?, 784]");
  EXPECT_FALSE(batch.IsKnown());
  EXPECT_EQ(batch.Count(), kUnknownDim);
  EXPECT_EQ(batch.Product(1, 2), 784);
  EXPECT_TRUE(Compatible(batch, Shape({8, 784})));
  EXPECT_FALSE(Compatible(batch, Shape({8, 785})));
  EXPECT_FALSE(Compatible(batch, Shape({8})));
  EXPECT_EQ(Concat(batch.First(1), Shape({3})), Shape({-1, 3}));
}

TEST(Tensor, RowsAndReshapedShareTheBuffer) {
  Tensor tensor(DType::kFp32, {4, 3});
  std::iota(tensor.Span<float>().begin(), tensor.Span<float>().end(), 0.0f);
  Tensor rows = tensor.Rows(1, 3);
  EXPECT_EQ(rows.shape(), Shape({2, 3}));
  EXPECT_EQ(rows.Data<float>()[0], 3.0f);
  rows.Data<float>()[0] = 100.0f;
  EXPECT_EQ(tensor.Reshaped({12}).Data<float>()[3], 100.0f);
}

TEST(Tensor, CloneCopiesAndKeepsTheLoD) {
  Tensor tensor(DType::kInt64, {2});
  tensor.Data<std::int64_t>()[0] = 7;
  tensor.set_lod({{0, 2}});
  Tensor copy = tensor.Clone();
  tensor.Data<std::int64_t>()[0] = 8;
  EXPECT_EQ(copy.Data<std::int64_t>()[0], 7);
  EXPECT_EQ(copy.lod(), (LoD{{0, 2}}));
  EXPECT_FALSE(Tensor().Clone().initialized());
}

TEST(Tensor, ResetReusesALargeUnsharedBuffer) {
  Tensor tensor(DType::kFp32, {4, 3});
  const std::byte* before = tensor.raw();
  tensor.Reset(DType::kFp32, {2, 3});
  EXPECT_EQ(tensor.raw(), before);
  const Tensor other = tensor;
  tensor.Reset(DType::kFp32, {2, 3});
  EXPECT_NE(tensor.raw(), other.raw());
}

TEST(Tensor, RefitKeepsTheBufferEvenIfShared) {
  const Tensor whole(DType::kFp32, {4, 3});
  Tensor rows = whole.Rows(1, 3);
  rows.set_lod({{0, 2}});
  rows.Refit(DType::kFp32, {2, 3});
  EXPECT_EQ(rows.raw(), whole.raw() + 3 * sizeof(float));
  EXPECT_TRUE(rows.lod().empty());
  rows.Refit(DType::kFp32, {1, 3});
  EXPECT_NE(rows.buffer(), whole.buffer());
  rows.Refit(DType::kInt32, {1, 3});
  EXPECT_EQ(rows.dtype(), DType::kInt32);
}

TEST(Tensor, ViewRowsMakesAnExistingTensorAView) {
  Tensor whole(DType::kFp32, {4, 3});
  whole.set_lod({{0, 4}});
  Tensor view(DType::kInt8, {7});
  view.ViewRows(whole, 2, 4);
  EXPECT_EQ(view.buffer(), whole.buffer());
  EXPECT_EQ(view.raw(), whole.raw() + 6 * sizeof(float));
  EXPECT_EQ(view.shape(), Shape({2, 3}));
  EXPECT_EQ(view.dtype(), DType::kFp32);
  EXPECT_TRUE(view.lod().empty());
  view.ViewRows(view, 1, 2);
  EXPECT_EQ(view.raw(), whole.raw() + 9 * sizeof(float));
}

TEST(Tensor, MemoryIsAlignedForVectorInstructions) {
  for (const Dim n : {1, 3, 1000}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(Tensor(DType::kInt8, {n}).raw()) % 64, 0u);
  }
}

TEST(Chunk, HoldsTheRowsThatFitAndAtLeastOne) {
  EXPECT_EQ(ChunkRows(1000, 4000), 262);
  EXPECT_EQ(ChunkRows(1000, 4000, 8000), 2);
  EXPECT_EQ(ChunkRows(1000, 4000, 100), 1);
  EXPECT_EQ(ChunkRows(100, 4000), 100);
  EXPECT_EQ(ChunkRows(0, 4000), 0);
}

TEST(Scope, FindSearchesParentsButCreateDoesNot) {
  Scope parent;
  Variable* w = parent.FindOrCreate("w");
  Scope child(&parent);
  EXPECT_EQ(child.Find("w"), w);
  EXPECT_EQ(child.FindLocal("w"), nullptr);
  EXPECT_NE(child.FindOrCreate("w"), w);
  EXPECT_EQ(child.Find("nothing"), nullptr);
  EXPECT_EQ(child.Names(), std::vector<std::string>{"w"});
}

TEST(Scope, RebindingAndErasingIncreaseTheGeneration) {
  Scope scope;
  scope.FindOrCreate("a");
  const std::uint64_t before = scope.generation();
  scope.Bind("a", std::make_shared<Variable>());
  EXPECT_GT(scope.generation(), before);
  const std::uint64_t bound = scope.generation();
  EXPECT_TRUE(scope.Erase("a"));
  EXPECT_FALSE(scope.Erase("a"));
  EXPECT_GT(scope.generation(), bound);
}

TEST(Variable, AsCreatesTheKindAndIfOnlyChecks) {
  Variable variable;
  EXPECT_FALSE(variable.initialized());
  EXPECT_EQ(variable.If<Tensor>(), nullptr);
  variable.As<SelectedRows>().height = 5;
  EXPECT_TRUE(variable.initialized());
  EXPECT_TRUE(variable.Is<SelectedRows>());
  variable.As<Tensor>();
  EXPECT_FALSE(variable.initialized());
}

}  // namespace
}  // namespace penstock
