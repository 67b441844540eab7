// Ops whose tensors may have other element types than f32, f64, i32 and i64.
#include <gtest/gtest.h>

#include <numeric>

#include "operators/common/convert.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

constexpr DType kElementTypes[] = {DType::kBool,  DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32,
                                   DType::kInt64, DType::kFp16,  DType::kFp32, DType::kFp64};

Tensor As(DType type, const Tensor& from) {
  Tensor to(type, from.shape());
  ConverterOf(from.dtype(), type)(from, to);
  return to;
}
Tensor As(DType type, std::initializer_list<double> values) {
  return As(type, TensorOf<double>({static_cast<Dim>(values.size())}, values));
}

void ExpectTyped(const Tensor& tensor, DType type, std::initializer_list<double> expected) {
  EXPECT_EQ(tensor.dtype(), type);
  ExpectValues(As(DType::kFp64, tensor), expected);
}

TEST(FillConstant, MakesHalfPrecision) {
  Op op = Op("fill_constant").AddOutput("Out", {"Out"}).Set("shape", std::vector<std::int64_t>{2});
  op.Set("dtype", static_cast<std::int32_t>(DType::kFp16));
  ExpectTyped(RunOne(Op(op).Set("value", -2.5f), {}, "Out"), DType::kFp16, {-2.5, -2.5});
  ExpectTyped(RunOne(Op(op).Set("str_value", "0.5"), {}, "Out"), DType::kFp16, {0.5, 0.5});
  ExpectTyped(RunOne(Op(op).AddInput("ValueTensor", {"v"}), {{"v", As(DType::kFp16, {7})}}, "Out"),
              DType::kFp16, {7, 7});
  ExpectError(Op(op).Set("str_value", "x"), {},
              "fill_constant: attribute str_value \"x\" must be a number that fits f16");
}

TEST(Scale, ClampsTheFactorForSmallIntegers) {
  const Op op = WithSlots("scale", {"X"}, {"Out"}).Set("scale", 2.9f).Set("bias", 1.0f);
  for (const DType type : {DType::kInt8, DType::kUInt8, DType::kInt16}) {
    ExpectTyped(RunOne(op, {{"X", As(type, {3, 0, 20})}}, "Out"), type, {7, 1, 41});
    ExpectTyped(RunOne(Op(op).Set("bias_after_scale", false), {{"X", As(type, {3, 0, 20})}}, "Out"), type,
                {8, 2, 42});
  }
  const Op fill = Op(op).Set("scale", 0.0f);
  const Tensors bytes = {{"X", As(DType::kUInt8, {3})}};
  ExpectTyped(RunOne(Op(fill).Set("bias", 255.0f), bytes, "Out"), DType::kUInt8, {255});
  ExpectTyped(RunOne(Op(fill).Set("bias", 1e9f), bytes, "Out"), DType::kUInt8, {255});
  ExpectTyped(RunOne(Op(fill).Set("bias", -3.0f), bytes, "Out"), DType::kUInt8, {0});
}

TEST(ArgMax, SupportsSmallIntegersAndIndexTypes) {
  const Op op = WithSlots("arg_max", {"X"}, {"Out"}).Set("axis", std::int64_t{0});
  for (const DType type : {DType::kUInt8, DType::kInt16})
    ExpectTyped(RunOne(op, {{"X", As(type, {3, 7, 7})}}, "Out"), DType::kInt64, {1});
  for (const DType type : kElementTypes) {
    const Op typed = Op(op).Set("dtype", static_cast<std::int32_t>(type));
    ExpectTyped(RunOne(typed, {{"X", As(DType::kFp32, {3, 7, 7})}}, "Out"), type, {1});
  }
}

TEST(OneHot, GivesRowsOfAnyType) {
  const Op op = WithSlots("one_hot", {"X"}, {"Out"}).Set("depth", 3);
  const Tensors inputs = {{"X", TensorOf<std::int64_t>({2, 1}, {2, 0})}};
  for (const DType type : kElementTypes) {
    const Op typed = Op(op).Set("dtype", static_cast<std::int32_t>(type));
    ExpectTyped(RunOne(typed, inputs, "Out"), type, {0, 0, 1, 1, 0, 0});
  }
  ExpectError(Op(op).Set("dtype", static_cast<std::int32_t>(DType::kSizeT)), inputs,
              "one_hot: dtype (usize) is not an element type of tensors");
}

TEST(SequenceMask, GivesRowsOfAnyType) {
  const Op op = WithSlots("sequence_mask", {"X"}, {"Y"}).Set("maxlen", 3);
  const Tensors inputs = {{"X", TensorOf<std::int64_t>({2}, {2, 0})}};
  for (const DType type : kElementTypes) {
    const Op typed = Op(op).Set("out_dtype", static_cast<std::int32_t>(type));
    ExpectTyped(RunOne(typed, inputs, "Y"), type, {1, 1, 0, 0, 0, 0});
  }
}

TEST(LookupTable, TakesTablesOfBytes) {
  const Op op = WithSlots("lookup_table", {"W", "Ids"}, {"Out"}).Set("padding_idx", std::int64_t{1});
  Tensor table(DType::kInt8, {3, 2});
  std::iota(table.Data<std::int8_t>(), table.Data<std::int8_t>() + 6, std::int8_t{-3});
  const Tensors inputs = {{"W", table}, {"Ids", TensorOf<std::int64_t>({2, 1}, {1, 2})}};
  ExpectTyped(RunOne(op, inputs, "Out"), DType::kInt8, {0, 0, 1, 2});
}

}  // namespace
}  // namespace penstock::test
