#include "transpiler/plan/settings.h"

#include <gtest/gtest.h>

#include <set>

#include "framework/base/strings.h"

namespace penstock::plan {
namespace {

// Another value than the default, for each type.
SettingValue AnotherValue(const Setting& setting, const SettingValue& is) {
  switch (setting.type) {
    case SettingType::kFlag: {
      const bool* flag = std::get_if<bool>(&is);
      return flag == nullptr || !*flag;
    }
    case SettingType::kInteger:
      return std::int64_t{7};
    case SettingType::kNumber:
      return 2.5;
    case SettingType::kWord:
      return std::string(setting.words.back());
    default:
      return std::string(setting.name == "compression" ? "fp16" : "local_sgd");
  }
}

TEST(Settings, EachRowSetsTheMemberThatItReads) {
  for (const Setting& setting : Settings()) {
    TranspileConfig config;
    const SettingValue is = setting.get(config), other = AnotherValue(setting, is);
    ASSERT_NE(is, other) << setting.name;
    ASSERT_TRUE(setting.set(config, other).ok()) << setting.name;
    EXPECT_EQ(setting.get(config), other) << setting.name;
    for (const Setting& another : Settings()) {
      if (&another == &setting) continue;
      EXPECT_EQ(another.get(config), another.get({})) << another.name;
    }
  }
}

TEST(Settings, AnOptionalSettingMayHaveNoValue) {
  int found = 0;
  for (const Setting& setting : Settings()) {
    if (!setting.is_optional) continue;
    ++found;
    TranspileConfig config;
    EXPECT_EQ(setting.get(config), SettingValue()) << setting.name;
    ASSERT_TRUE(setting.set(config, AnotherValue(setting, SettingValue())).ok());
    ASSERT_TRUE(setting.set(config, SettingValue()).ok());
    EXPECT_EQ(setting.get(config), SettingValue()) << setting.name;
  }
  EXPECT_EQ(found, 3);
}

TEST(Settings, EachWordIsAccepted) {
  for (const Setting& setting : Settings()) {
    for (const std::string_view word : setting.words) {
      TranspileConfig config;
      ASSERT_TRUE(setting.set(config, std::string(word)).ok()) << setting.name << " " << word;
      EXPECT_EQ(setting.get(config), SettingValue(std::string(word)));
    }
    EXPECT_FALSE(setting.HasWord("columns"));
    EXPECT_TRUE(setting.words.empty() || !setting.rule.empty()) << setting.name;
  }
}

// test_docs.py checks that the documentation lists the keys.
TEST(Settings, NamesKeysAndFlagsAreUniqueAndDocumented) {
  std::set<std::string_view> names, keys, flags, fields, arguments, rank_arguments;
  const auto is_new = [](std::string_view name, std::set<std::string_view>& known) {
    EXPECT_NE(name, kNameOfMember);
    return name.empty() || known.insert(name).second;
  };
  for (const Setting& setting : Settings()) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_TRUE(is_new(setting.key, keys)) << setting.key;
    EXPECT_TRUE(is_new(setting.flag, flags)) << setting.flag;
    EXPECT_TRUE(is_new(setting.field, fields)) << setting.field;
    EXPECT_TRUE(is_new(setting.argument, arguments)) << setting.argument;
    EXPECT_TRUE(is_new(setting.rank_argument, rank_arguments)) << setting.rank_argument;
    EXPECT_FALSE(setting.doc.empty()) << setting.name;
    EXPECT_FALSE(setting.doc.ends_with('.')) << setting.name;
    EXPECT_TRUE(setting.more.empty() || setting.more.ends_with('.')) << setting.name;
  }
  EXPECT_GT(names.size(), 30U);
}

TEST(Settings, ABoundIsCheckedWithTheRuleOfItsRow) {
  int bounded = 0;
  for (const Setting& setting : Settings()) {
    if (!setting.least) continue;
    ++bounded;
    TranspileConfig config;
    EXPECT_TRUE(CheckBounds(config, setting.group).ok());
    ASSERT_TRUE(setting.set(config, *setting.least - 1).ok());
    const Status status = CheckBounds(config, setting.group);
    EXPECT_EQ(status.message(), StrCat("plan: ", setting.key, " must be at least ", *setting.least, ", not ",
                                       *setting.least - 1));
    EXPECT_EQ(status.id(), setting.rule);
  }
  EXPECT_GE(bounded, 9);
}

TEST(Settings, OtherWordsAreNamed) {
  EXPECT_EQ(FindSetting("clip")->OtherWordText(), "neither local nor global");
  EXPECT_EQ(FindSetting("on_uneven")->OtherWordText(), "none of join, pad, error");
  EXPECT_EQ(FindSetting("columns"), nullptr);
}

}  // namespace
}  // namespace penstock::plan
