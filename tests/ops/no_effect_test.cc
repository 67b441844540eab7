// Attributes that are declared to have no effect have none: an op with another value of such an attribute
// gives the same bytes. The test that counts the values of each domain therefore leaves them out.
#include <gtest/gtest.h>

#include <cstring>

#include "operators/all_ops.h"
#include "operators/common/fluid_attrs.h"
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

Attr AnotherThan(const Attr& value) {
  if (const bool* truth = std::get_if<bool>(&value)) return !*truth;
  if (const auto* number = std::get_if<std::int32_t>(&value)) return *number + 3;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number + 3;
  if (const auto* number = std::get_if<float>(&value)) return *number + 3;
  if (std::holds_alternative<std::vector<float>>(value)) return std::vector<float>{7.5f};
  if (std::holds_alternative<std::vector<std::int32_t>>(value)) return std::vector<std::int32_t>{7};
  if (std::holds_alternative<std::vector<std::int64_t>>(value)) return std::vector<std::int64_t>{7};
  if (std::holds_alternative<std::vector<std::string>>(value)) return std::vector<std::string>{"another"};
  return std::string("another");
}

void ExpectSameBytes(const Tensors& made, const Tensors& expected, const std::string& what) {
  ASSERT_EQ(made.size(), expected.size()) << what;
  for (const auto& [name, tensor] : expected) {
    const Tensor& other = made.at(name);
    EXPECT_EQ(other.shape(), tensor.shape()) << what << ": " << name;
    EXPECT_EQ(other.lod(), tensor.lod()) << what << ": " << name;
    if (other.bytes() != tensor.bytes() || tensor.bytes() == 0) continue;
    EXPECT_EQ(std::memcmp(other.raw(), tensor.raw(), tensor.bytes()), 0) << what << ": " << name;
  }
}

TEST(Attributes, DeclaredNoEffectAttributesChangeNothing) {
  int compared = 0;
  ForEachOp([&compared](const Op& op, const Tensors& inputs) {
    const Result<Tensors> expected = RunOp(AllOps(), op, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    for (const AttrDef& attr : AllOps().Find(op.type())->attrs()) {
      if (attr.doc != kNoEffect || attr.check.rule != nullptr) continue;
      const Attr* given = op.FindAttr(attr.name);
      Op changed = op;
      changed.Set(attr.name, AnotherThan(given != nullptr ? *given : *attr.default_value));
      const Result<Tensors> made = RunOp(AllOps(), changed, inputs);
      ASSERT_TRUE(made.ok()) << attr.name << ": " << made.status().ToString();
      ExpectSameBytes(*made, *expected, StrCat(op.type(), " with another ", attr.name));
      ++compared;
    }
  });
  EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace penstock::test
