// Files of other versions store attributes in other kinds than an op declares: is_test as an int, axes as
// longs. Inference and kernels read the same values from every kind that can represent them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "framework/op/conform.h"
#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

constexpr AttrKind kKinds[] = {AttrKind::kInt,  AttrKind::kLong,  AttrKind::kFloat, AttrKind::kBool,
                               AttrKind::kInts, AttrKind::kLongs, AttrKind::kFloats};

bool SameBytes(const Tensors& made, const Tensors& expected) {
  return std::ranges::equal(made, expected, [](const auto& one, const auto& other) {
    const Tensor &a = one.second, &b = other.second;
    return one.first == other.first && a.shape() == b.shape() && a.bytes() == b.bytes() &&
           (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
  });
}

// The op with every attribute of the schema stored as `kind`, if the value can be read back; nullopt if that
// changes nothing. Adds the number of changed attributes to `changes`.
std::optional<Op> StoredAs(const Op& op, AttrKind kind, int& changes) {
  Op changed = op;
  const int before = changes;
  for (const AttrDef& attr : AllOps().Find(op.type())->attrs()) {
    const Attr* given = op.FindAttr(attr.name);
    if (given == nullptr && !attr.default_value) continue;
    const Attr& value = given != nullptr ? *given : *attr.default_value;
    const std::optional<Attr> stored = ConvertAttr(value, kind);
    if (!stored || KindOf(value) == kind || ConvertAttr(*stored, attr.kind) != ConvertAttr(value, attr.kind))
      continue;
    changed.Set(attr.name, *stored);
    ++changes;
  }
  return changes == before ? std::nullopt : std::optional(std::move(changed));
}

TEST(Attributes, AreReadFromEveryKindThatFitsTheirValue) {
  int changes = 0;
  ForEachOp([&changes](const Op& op, const Tensors& inputs) {
    const Result<Tensors> expected = RunOp(AllOps(), op, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const Result<Tensors> again = RunOp(AllOps(), op, inputs);
    if (!again.ok() || !SameBytes(*again, *expected)) return;  // it draws random numbers
    for (const AttrKind kind : kKinds) {
      const std::optional<Op> changed = StoredAs(op, kind, changes);
      if (!changed) continue;
      const Result<Tensors> made = RunOp(AllOps(), *changed, inputs);
      ASSERT_TRUE(made.ok()) << op.type() << " with " << AttrKindName(kind) << ": "
                             << made.status().ToString();
      EXPECT_TRUE(SameBytes(*made, *expected)) << op.type() << " with " << AttrKindName(kind);
    }
  });
  EXPECT_GT(changes, 5000);
}

// Every op of the registry, also those that the test above does not run.
TEST(Attributes, EveryOpAcceptsOtherAttributeKinds) {
  for (const OpDef* def : AllOps().All()) {
    for (const AttrDef& attr : def->attrs()) {
      if (!attr.default_value) continue;
      for (const AttrKind kind : kKinds) {
        const std::optional<Attr> stored = ConvertAttr(*attr.default_value, kind);
        if (!stored || ConvertAttr(*stored, attr.kind) != *attr.default_value) continue;
        Op op(def->type());
        for (const SlotDef& slot : def->inputs()) op.AddInput(slot.name, {"x"});
        op.Set(attr.name, *stored);
        const std::string message = def->CheckOp(op).message();
        EXPECT_EQ(message.find(StrCat("attribute ", attr.name, " is ")), std::string::npos)
            << message << ", stored as " << AttrToString(*stored);
      }
    }
  }
}

TEST(Attributes, OutOfRangeValuesAreReported) {
  int refused = 0;
  for (const OpDef* def : AllOps().All()) {
    for (const AttrDef& attr : def->attrs()) {
      if (attr.kind != AttrKind::kInt && attr.kind != AttrKind::kBool && attr.kind != AttrKind::kLong)
        continue;
      Op op(def->type());
      for (const SlotDef& slot : def->inputs()) op.AddInput(slot.name, {"x"});
      for (const AttrDef& other : def->attrs()) {
        if (!other.default_value)
          op.Set(other.name, ConvertAttr(Attr(1), other.kind).value_or(Attr(std::string("1"))));
      }
      op.Set(attr.name, 1.5f);
      const Status status = def->CheckOp(op);
      EXPECT_EQ(status.id(), "E-op-attr") << def->type() << " " << attr.name;
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace penstock::test
