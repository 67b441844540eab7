#include "framework/base/environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace penstock::env {
namespace {

Status Refused(const char* name, const std::string& text) { return Parse(*FindSetting(name), text).status(); }

Value Read(const char* name, const std::string& text) { return *Parse(*FindSetting(name), text); }

TEST(Environment, TheTableIsSortedAndEverySettingIsFound) {
  const auto all = AllSettings();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const Setting& a, const Setting& b) {
    return std::string_view(a.name) < std::string_view(b.name);
  }));
  for (const Setting& setting : all) EXPECT_EQ(FindSetting(setting.name), &setting);
  EXPECT_EQ(FindSetting("PENSTOCK_TLS_MUTUALS"), nullptr);
}

TEST(Environment, FlagsIgnoreCase) {
  for (const char* yes : {"1", "true", "True", "TRUE", "yes", "YES", "on", "On", " 1 "})
    EXPECT_EQ(std::get<bool>(Read("PENSTOCK_TLS_MUTUAL", yes)), true) << yes;
  for (const char* no : {"0", "false", "False", "no", "NO", "off", "OFF"})
    EXPECT_EQ(std::get<bool>(Read("PENSTOCK_TLS_MUTUAL", no)), false) << no;
  EXPECT_TRUE(std::holds_alternative<std::monostate>(Read("PENSTOCK_TLS_MUTUAL", "")));
  for (const char* odd :
       {"2", "-1", "01", "t", "y", "enabled", "tru", "true,", "1.0", "on off", "\xc3\xa9", "null"})
    EXPECT_EQ(Refused("PENSTOCK_TLS_MUTUAL", odd).id(), "E-environment") << odd;
  EXPECT_EQ(
      Refused("PENSTOCK_TLS_MUTUAL", "maybe").message(),
      "the environment variable PENSTOCK_TLS_MUTUAL is \"maybe\"; it takes 1, true, yes or on, or 0, false, "
      "no or off");
}

TEST(Environment, ANumberHasARange) {
  EXPECT_EQ(std::get<std::int64_t>(Read("PENSTOCK_METRICS", "65535")), 65535);
  for (const char* odd :
       {"65536", "-1", "abc", "1.5", "0x10", "1e3", "+1", "99999999999999999999", "1 2", "nan"})
    EXPECT_EQ(Refused("PENSTOCK_METRICS", odd).id(), "E-environment") << odd;
  EXPECT_EQ(std::get<double>(Read("PENSTOCK_REPORT_AFTER", "0.25")), 0.25);
  for (const char* odd : {"0", "-1", "nan", "inf", "1e9", "1s", "0,5"})
    EXPECT_EQ(Refused("PENSTOCK_REPORT_AFTER", odd).id(), "E-environment") << odd;
  EXPECT_EQ(Refused("PADDLE_TRAINERS_NUM", "abc").message(),
            "the environment variable PADDLE_TRAINERS_NUM is \"abc\"; it takes an integer from 1 to 1000000");
}

TEST(Environment, InvalidVariablesAreReportedAsErrors) {
  ASSERT_TRUE(CheckAll().ok()) << CheckAll().ToString();
  setenv("FLAGS_check_nan_inf", "perhaps", 1);
  EXPECT_EQ(CheckAll().id(), "E-environment");
  EXPECT_FALSE(Flag("FLAGS_check_nan_inf").ok());
  setenv("FLAGS_check_nan_inf", "Yes", 1);
  EXPECT_EQ(*Flag("FLAGS_check_nan_inf"), true);
  unsetenv("FLAGS_check_nan_inf");
  EXPECT_EQ(*Flag("FLAGS_check_nan_inf"), false);
}

}  // namespace
}  // namespace penstock::env
