#include "tests/fuzz/executor/values.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "tests/fuzz/executor/mutate.h"

namespace penstock::fuzz {
namespace {

// The maximum size of a feed: larger tensors are only slow.
constexpr std::int64_t kValuesMax = 1 << 16;

template <typename T>
void FillIntegers(Draw& draw, Tensor& tensor) {
  const int high = draw.OneIn(4) ? 100 : draw.Between(1, 5);
  for (T& value : tensor.Span<T>()) value = static_cast<T>(draw.Below(high));
  if (tensor.count() == 0 || !draw.OneIn(8)) return;
  static constexpr std::int64_t kOdd[] = {-1,
                                          -2,
                                          7,
                                          100,
                                          1 << 20,
                                          std::numeric_limits<std::int64_t>::max(),
                                          std::numeric_limits<std::int64_t>::min()};
  tensor.Span<T>()[static_cast<std::size_t>(draw.Below(static_cast<int>(tensor.count())))] =
      static_cast<T>(draw.Of(kOdd));
}

template <typename T>
void FillFloats(Draw& draw, Tensor& tensor) {
  const bool positive = draw.OneIn(3);
  for (T& value : tensor.Span<T>())
    value = static_cast<T>(draw.Between(positive ? 1 : -100, 100)) / static_cast<T>(100);
  if (tensor.count() == 0 || !draw.OneIn(8)) return;
  static constexpr T kOdd[] = {std::numeric_limits<T>::quiet_NaN(),
                               std::numeric_limits<T>::infinity(),
                               T{0},
                               -std::numeric_limits<T>::infinity(),
                               T{1e30f},
                               T{-5},
                               T{1e-30f}};
  tensor.Span<T>()[static_cast<std::size_t>(draw.Below(static_cast<int>(tensor.count())))] = draw.Of(kOdd);
}

LoDLevel Partition(Draw& draw, std::uint64_t of) {
  LoDLevel offsets = {0};
  while (offsets.back() < of)
    offsets.push_back(
        std::min(of, offsets.back() + static_cast<std::uint64_t>(draw.Between(draw.OneIn(6) ? 0 : 1, 3))));
  return offsets;
}

LoD Sequences(Draw& draw, Dim rows, int levels) {
  LoD lod;
  auto of = static_cast<std::uint64_t>(rows);
  for (int i = 0; i < levels; ++i) {
    lod.insert(lod.begin(), Partition(draw, of));
    of = lod.front().size() - 1;
  }
  return lod;
}

LoD OddSequences(Draw& draw, LoD lod) {
  static constexpr std::uint64_t kOdd[] = {0,
                                           1,
                                           2,
                                           3,
                                           5,
                                           9,
                                           1000,
                                           std::numeric_limits<std::uint64_t>::max(),
                                           std::numeric_limits<std::uint64_t>::max() / 2};
  if (lod.empty()) lod.push_back({0, draw.Of(kOdd)});
  LoDLevel& level = lod[static_cast<std::size_t>(draw.Below(static_cast<int>(lod.size())))];
  switch (draw.Below(5)) {
    case 0:
      level.push_back(draw.Of(kOdd));
      break;
    case 1:
      if (!level.empty()) level.pop_back();
      break;
    case 2:
      if (!level.empty())
        level[static_cast<std::size_t>(draw.Below(static_cast<int>(level.size())))] = draw.Of(kOdd);
      break;
    case 3:
      level.clear();
      break;
    default:
      lod.pop_back();
  }
  return lod;
}

Shape Bounded(Shape shape, Dim batch) {
  std::int64_t count = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] < 0) shape.Set(i, batch);
    if (shape[i] > 0 && count > kValuesMax / shape[i]) shape.Set(i, 1);
    count *= shape[i];
  }
  return shape;
}

DType OddType(Draw& draw) {
  static constexpr DType kTypes[] = {DType::kFp32,  DType::kFp64, DType::kInt64, DType::kInt32,
                                     DType::kUInt8, DType::kBool, DType::kFp16,  DType::kSizeT};
  return draw.Of(kTypes);
}

Shape OddShape(Draw& draw, Shape shape) {
  const int at = shape.rank() == 0 ? 0 : draw.Below(shape.rank());
  switch (draw.Below(4)) {
    case 0:
      return shape.rank() == 0 ? Shape{1} : Concat(shape.First(at), shape.From(at + 1));
    case 1:
      return Concat(Shape{draw.Between(1, 3)}, shape);
    default:
      if (shape.rank() > 0) shape.Set(at, OddExtent(draw));
      return shape;
  }
}

}  // namespace

Tensor AnyTensor(Draw& draw, DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  switch (dtype) {
    case DType::kFp32:
      FillFloats<float>(draw, tensor);
      break;
    case DType::kFp64:
      FillFloats<double>(draw, tensor);
      break;
    case DType::kInt64:
      FillIntegers<std::int64_t>(draw, tensor);
      break;
    case DType::kInt32:
      FillIntegers<std::int32_t>(draw, tensor);
      break;
    case DType::kBool:
      for (bool& value : tensor.Span<bool>()) value = draw.OneIn(2);
      break;
    default:
      if (tensor.bytes() > 0) std::memset(tensor.raw(), draw.Below(4), tensor.bytes());
  }
  return tensor;
}

Tensor TensorFor(Draw& draw, const Var& var, Dim batch, int odd) {
  const TensorType type = var.type.value_or(TensorType{});
  const auto strange = [&] { return odd > 0 && draw.OneIn(odd); };
  const Shape shape = Bounded(strange() ? OddShape(draw, type.shape) : type.shape, batch);
  Tensor tensor = AnyTensor(draw, strange() ? OddType(draw) : type.dtype, shape);
  if (type.lod_level > 0 && shape.rank() > 0)
    tensor.set_lod(Sequences(draw, shape[0], std::min(type.lod_level, 3)));
  if (strange()) tensor.set_lod(OddSequences(draw, tensor.lod()));
  return tensor;
}

Variable ValueFor(Draw& draw, const Var& var, Dim batch, int odd) {
  static constexpr VarKind kKinds[] = {VarKind::kTensor, VarKind::kSelectedRows, VarKind::kTensorArray,
                                       VarKind::kRankTable, VarKind::kStepScopes};
  Variable value;
  switch (odd > 0 && draw.OneIn(odd) ? draw.Of(kKinds) : var.kind) {
    case VarKind::kTensor:
      value.As<Tensor>() = TensorFor(draw, var, batch, odd);
      break;
    case VarKind::kSelectedRows: {
      const Tensor tall = TensorFor(draw, var, batch, odd);
      SelectedRows& rows = value.As<SelectedRows>();
      rows.height = tall.shape().rank() == 0 ? 1 : tall.shape()[0];
      if (odd > 0 && draw.OneIn(odd)) rows.height = OddExtent(draw);
      for (int n = draw.Below(5); n > 0; --n)
        rows.rows.push_back(draw.Below(std::max<int>(static_cast<int>(rows.height), 1)));
      if (odd > 0 && draw.OneIn(odd)) rows.rows.push_back(OddExtent(draw));
      Dim count = static_cast<Dim>(rows.rows.size());
      if (odd > 0 && draw.OneIn(odd)) count = draw.Below(5);
      if (odd > 0 && draw.OneIn(odd)) break;
      rows.value =
          AnyTensor(draw, tall.dtype(),
                    Bounded(tall.shape().rank() == 0 ? Shape{count} : tall.shape().WithRows(count), batch));
      break;
    }
    case VarKind::kTensorArray:
      for (int n = draw.Below(4); n > 0; --n)
        value.As<TensorArray>().push_back(TensorFor(draw, var, batch, odd));
      if (odd > 0 && draw.OneIn(4)) value.As<TensorArray>().emplace_back();
      break;
    case VarKind::kRankTable:
      // A table as lod_rank_table makes it; callers cannot make others.
      value.As<RankTable>().items = {{1, 3}, {0, 2}, {2, 1}};
      value.As<RankTable>().items.resize(static_cast<std::size_t>(draw.Of(std::array<int, 2>{0, 3})));
      break;
    case VarKind::kStepScopes:
      value.As<StepScopes>();
      break;
    default:
      break;
  }
  return value;
}

Tensor Changed(Draw& draw, const Tensor& tensor) {
  if (draw.OneIn(3)) {
    Tensor changed = tensor.Clone();
    changed.set_lod(OddSequences(draw, tensor.lod()));
    return changed;
  }
  const bool other_type = draw.OneIn(3);
  const Shape shape = other_type ? tensor.shape() : Bounded(OddShape(draw, tensor.shape()), 2);
  Tensor changed = AnyTensor(draw, other_type ? OddType(draw) : tensor.dtype(), shape);
  changed.ShareLod(tensor);
  return changed;
}

}  // namespace penstock::fuzz
