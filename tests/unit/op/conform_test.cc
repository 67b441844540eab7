#include "framework/op/conform.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"

namespace penstock {
namespace {

using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;
using FloatList = std::vector<float>;
using Bools = std::vector<bool>;
using Strings = std::vector<std::string>;

template <typename T>
std::optional<T> As(Attr attr) {
  Attr kind = T();
  const std::optional<Attr> converted = ConvertAttr(attr, KindOf(kind));
  return converted ? std::optional<T>(std::get<T>(*converted)) : std::nullopt;
}

TEST(ConvertAttr, ConvertsToEachExactKind) {
  for (const AttrKind kind : {AttrKind::kInt, AttrKind::kLong, AttrKind::kFloat, AttrKind::kBool}) {
    const std::vector<Attr> ones = {1, std::int64_t{1}, 1.0f, true};
    const std::vector<Attr> zeros = {0, std::int64_t{0}, 0.0f, false};
    for (const Attr& one : ones) {
      for (const Attr& as : ones) {
        if (KindOf(as) != kind) continue;
        EXPECT_EQ(ConvertAttr(one, kind), as) << AttrToString(one);
      }
    }
    for (const Attr& zero : zeros) {
      for (const Attr& as : zeros) {
        if (KindOf(as) != kind) continue;
        EXPECT_EQ(ConvertAttr(zero, kind), as) << AttrToString(zero);
      }
    }
  }
}

TEST(ConvertAttr, RefusesInexactConversions) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(As<bool>(Attr(2)));
  EXPECT_FALSE(As<bool>(Attr(-1)));
  EXPECT_FALSE(As<bool>(Attr(0.5f)));
  EXPECT_FALSE(As<bool>(Attr(kNan)));
  EXPECT_FALSE(As<std::int32_t>(Attr(1.5f)));
  EXPECT_FALSE(As<std::int32_t>(Attr(kNan)));
  EXPECT_FALSE(As<std::int64_t>(Attr(kInfinite)));
  EXPECT_FALSE(As<std::int32_t>(Attr(std::int64_t{1} << 31)));
  EXPECT_FALSE(As<std::int32_t>(Attr(0x1p31f)));
  EXPECT_EQ(As<std::int32_t>(Attr(-0x1p31f)), std::numeric_limits<std::int32_t>::min());
  EXPECT_FALSE(As<std::int64_t>(Attr(0x1p63f)));
  EXPECT_EQ(As<float>(Attr(1 << 24)), 0x1p24f);
  EXPECT_FALSE(As<float>(Attr((1 << 24) + 1)));
  EXPECT_FALSE(As<float>(Attr(std::numeric_limits<std::int32_t>::max())));
  EXPECT_FALSE(As<float>(Attr(std::numeric_limits<std::int64_t>::max())));
  EXPECT_EQ(As<float>(Attr(std::numeric_limits<std::int64_t>::min())), -0x1p63f);
}

TEST(ConvertAttr, AListConvertsIfEveryElementDoes) {
  EXPECT_EQ(As<Longs>(Attr(Ints{1, -2})), (Longs{1, -2}));
  EXPECT_EQ(As<Ints>(Attr(Longs{1, -2})), (Ints{1, -2}));
  EXPECT_EQ(As<FloatList>(Attr(Ints{1, -2})), (FloatList{1.0f, -2.0f}));
  EXPECT_EQ(As<Ints>(Attr(FloatList{1.0f, -2.0f})), (Ints{1, -2}));
  EXPECT_EQ(As<Bools>(Attr(Ints{1, 0})), (Bools{true, false}));
  EXPECT_EQ(As<Longs>(Attr(Bools{true, false})), (Longs{1, 0}));
  EXPECT_FALSE(As<Ints>(Attr(Longs{1, std::int64_t{1} << 40})));
  EXPECT_FALSE(As<Ints>(Attr(FloatList{1.0f, 0.5f})));
  EXPECT_FALSE(As<Bools>(Attr(Ints{1, 2})));
}

TEST(ConvertAttr, AnEmptyListConvertsToAnyList) {
  EXPECT_FALSE(As<Ints>(Attr(3)));
  EXPECT_FALSE(As<std::int32_t>(Attr(Ints{3})));
  EXPECT_EQ(As<Strings>(Attr(Ints{})), Strings{});
  EXPECT_EQ(As<FloatList>(Attr(Strings{})), FloatList{});
  EXPECT_EQ(As<std::vector<BlockRef>>(Attr(Ints{})), std::vector<BlockRef>{});
  EXPECT_FALSE(As<Strings>(Attr(Ints{1})));
}

TEST(ConvertAttr, TextAndBlocksDoNotConvertToNumbers) {
  for (const AttrKind kind : {AttrKind::kInt, AttrKind::kBool, AttrKind::kFloat, AttrKind::kInts}) {
    EXPECT_FALSE(ConvertAttr(Attr(std::string("1")), kind));
    EXPECT_FALSE(ConvertAttr(Attr(BlockRef{1}), kind));
  }
  EXPECT_FALSE(ConvertAttr(Attr(1), AttrKind::kString));
  EXPECT_FALSE(ConvertAttr(Attr(1), AttrKind::kBlock));
}

TEST(Conformed, ConvertsAttributesToDeclaredKinds) {
  OpRegistry ops;
  OpDef& def = ops.Add("drop").Attr("is_test", false, "").Attr("p", 0.5f, "").Attr("axes", Longs{}, "");
  Op op("drop");
  op.Set("is_test", 1).Set("p", 1).Set("axes", Ints{2}).Set("own", 3).Set(kRoleAttr, std::int64_t{2});
  const std::optional<Op> conformed = Conformed(def, op);
  ASSERT_TRUE(conformed);
  EXPECT_TRUE(conformed->GetOr<bool>("is_test", false));
  EXPECT_EQ(conformed->GetOr<float>("p", 0.0f), 1.0f);
  EXPECT_EQ(conformed->GetOr<Longs>("axes", {}), Longs{2});
  EXPECT_EQ(conformed->GetOr<std::int32_t>("own", 0), 3) << "no schema declares it";
  EXPECT_EQ(conformed->role(), OpRole::kOptimize);
  EXPECT_FALSE(Conformed(def, *conformed)) << "nothing is left to change";
  EXPECT_TRUE(CheckAttrKinds(def, op).ok());
  op.Set("is_test", 2);
  EXPECT_EQ(CheckAttrKinds(def, op).message(), "drop: attribute is_test is 2 (int); it must be bool");
  EXPECT_EQ(*Conformed(def, op)->FindAttr("is_test"), Attr(2)) << "left as it is";
}

TEST(Conformed, KeepsUnaffectedOpsByteForByte) {
  OpRegistry ops;
  ops.Add("drop").Attr("is_test", false, "");
  Program program;
  Op kept("drop");
  kept.Set("is_test", true).set_wire_bytes("bytes");
  program.MutableBlock(0).Append(kept);
  EXPECT_FALSE(Conformed(ops, program));
  program.MutableBlock(0).Append(Op("drop").Set("is_test", 1));
  const std::optional<Program> conformed = Conformed(ops, program);
  ASSERT_TRUE(conformed);
  EXPECT_EQ(conformed->main().ops()[0].op, program.main().ops()[0].op);
  EXPECT_EQ(*conformed->main().ops()[1].op->FindAttr("is_test"), Attr(true));
  EXPECT_EQ(conformed->main().ops()[1].id, program.main().ops()[1].id);
}

}  // namespace
}  // namespace penstock
