#include "transpiler/plan/settings.h"

#include <gtest/gtest.h>

#include <set>

#include "framework/base/files.h"
#include "tests/support/corpus.h"

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
      return std::string(setting.name == "compression" ? "fp16" : "text");
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

TEST(Settings, NamesKeysAndFlagsAreUniqueAndKeysAreDocumented) {
  const Result<std::string> readme = ReadFile(test::SourceFolder() + "/tools/case/README.md");
  ASSERT_TRUE(readme.ok());
  std::set<std::string_view> names, keys, flags;
  for (const Setting& setting : Settings()) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_TRUE(keys.insert(setting.key).second) << setting.key;
    EXPECT_TRUE(setting.flag.empty() || flags.insert(setting.flag).second) << setting.flag;
    EXPECT_FALSE(setting.doc.empty()) << setting.name;
    EXPECT_NE(readme->find(StrCat("`", setting.key, "`")), std::string::npos) << setting.key;
  }
}

TEST(Settings, ABoundIsCheckedWithTheRuleOfItsRow) {
  int bounded = 0;
  for (const Setting& setting : Settings()) {
    if (!setting.least) continue;
    ++bounded;
    TranspileConfig config;
    const std::string_view names[] = {setting.name};
    EXPECT_TRUE(CheckBounds(config, names).ok());
    ASSERT_TRUE(setting.set(config, *setting.least - 1).ok());
    const Status status = CheckBounds(config, names);
    EXPECT_EQ(status.message(), StrCat("plan: ", setting.key, " must be at least ", *setting.least, ", not ",
                                       *setting.least - 1));
    EXPECT_EQ(status.id(), setting.rule);
  }
  EXPECT_EQ(bounded, 5);
}

TEST(Settings, OtherWordsAreNamed) {
  EXPECT_EQ(FindSetting("clip")->OtherWordText(), "neither local nor global");
  EXPECT_EQ(FindSetting("on_uneven")->OtherWordText(), "none of join, pad, error");
  EXPECT_EQ(FindSetting("columns"), nullptr);
}

}  // namespace
}  // namespace penstock::plan
