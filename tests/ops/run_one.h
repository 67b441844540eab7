// Runs one op and compares one output with literal values.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "operators/all_ops.h"
#include "tests/support/op_harness.h"

namespace penstock::test {

inline Tensor RunOne(const Op& op, const Tensors& inputs, const std::string& out) {
  const Result<Tensors> made = RunOp(AllOps(), op, inputs);
  PENSTOCK_CHECK(made.ok(), made.status().ToString());
  return made->at(out);
}

inline void ExpectValues(const Tensor& tensor, std::initializer_list<double> expected) {
  ASSERT_EQ(static_cast<std::size_t>(tensor.count()), expected.size());
  std::int64_t i = 0;
  for (const double value : expected)
    EXPECT_FLOAT_EQ(static_cast<float>(ElementAt(tensor, i++)), static_cast<float>(value));
}

// For doubles, with tolerance 1e-9.
inline void ExpectNear(const Tensor& tensor, std::initializer_list<double> expected) {
  ASSERT_EQ(static_cast<std::size_t>(tensor.count()), expected.size());
  std::int64_t i = 0;
  for (const double value : expected) EXPECT_NEAR(ElementAt(tensor, i++), value, 1e-9);
}

inline void ExpectError(const Op& op, const Tensors& inputs, const std::string& text) {
  const Status status = RunOp(AllOps(), op, inputs).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
  EXPECT_EQ(status.message(), text);
}

inline Tensors RoundedToFloats(const Tensors& from) {
  Tensors f32;
  for (const auto& [name, tensor] : from) {
    Tensor& to = f32[name] = Tensor(DType::kFp32, tensor.shape());
    for (std::int64_t i = 0; i < to.count(); ++i)
      to.Data<float>()[i] = static_cast<float>(ElementAt(tensor, i));
  }
  return f32;
}

}  // namespace penstock::test
