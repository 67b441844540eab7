#include "tools/source.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <variant>

#include "framework/base/files.h"
#include "framework/text/program_file.h"
#include "tools/command.h"
#include "transpiler/plan/settings.h"

DEFINE_string(main, "", "the main program, after minimize");
DEFINE_string(startup, "", "its startup program");
DEFINE_string(facts, "", "program.json: properties that the programs do not contain (tools/case/README.md)");
DEFINE_string(config, "",
              "case.json: addresses, trainers, slicing and mode; tools/case/README.md lists its keys");
DEFINE_string(compat, "", "fluid-1.8: make the role programs of Fluid 1.8.5, including its defects");

namespace penstock::tools {
namespace {

constexpr char kFluid18[] = "fluid-1.8";

Status Require(std::string_view command, std::string_view flag, const std::string& value) {
  if (!value.empty()) return OkStatus();
  return InvalidArgument("E-usage", command, ": --", flag, " is missing");
}

std::string NameOfFlag(const plan::Setting& setting) {
  std::string name(setting.flag);
  std::ranges::replace(name, '_', '-');
  return name;
}

// A flag without a value, and -1 for an optional number, mean that there is none.
Status ApplyFlag(std::string_view command, const plan::Setting& setting, plan::TranspileConfig& config) {
  const std::string text =
      gflags::GetCommandLineFlagInfoOrDie(std::string(setting.flag).c_str()).current_value;
  switch (setting.type) {
    case plan::SettingType::kInteger: {
      const std::int64_t number = std::stoll(text);
      const bool none = setting.is_optional && number == -1;
      return setting.set(config, none ? plan::SettingValue() : plan::SettingValue(number));
    }
    case plan::SettingType::kNumber:
      return setting.set(config, std::stod(text));
    case plan::SettingType::kWord:
      if (!setting.HasWord(text)) {
        std::vector<std::string_view> words = setting.words;
        std::erase(words, "");
        return InvalidArgument("E-usage", command, ": --", NameOfFlag(setting), " must be one of ",
                               Join(words, ", "), ", not ", Quote(text));
      }
      [[fallthrough]];
    default:
      return setting.set(config, text);
  }
}

// What gflags refers to until the process ends.
struct SettingFlag {
  std::string name, help;
  std::variant<std::array<gflags::int32, 2>, std::array<double, 2>, std::array<std::string, 2>> values;
};

// The flags that override the file's settings.
Status ApplyFlags(std::string_view command, plan::TranspileConfig& config) {
  config.dialect = FLAGS_compat.empty() ? plan::Dialect::kDefault : plan::Dialect::kFluid18;
  for (const plan::Setting& setting : plan::Settings()) {
    if (setting.flag.empty()) continue;
    const gflags::CommandLineFlagInfo flag =
        gflags::GetCommandLineFlagInfoOrDie(std::string(setting.flag).c_str());
    if (flag.is_default || flag.current_value.empty()) continue;
    PENSTOCK_RETURN_IF_ERROR(ApplyFlag(command, setting, config));
  }
  return OkStatus();
}

}  // namespace

void DefineSettingFlags() {
  static auto& kept = *new std::deque<SettingFlag>();
  const auto define = [](const plan::Setting& setting, const std::string& help, auto value) {
    using Value = decltype(value);
    SettingFlag& flag =
        kept.emplace_back(SettingFlag{std::string(setting.flag), help, std::array<Value, 2>{value, value}});
    auto& [now, initial] = std::get<std::array<Value, 2>>(flag.values);
    const gflags::FlagRegisterer registered(flag.name.c_str(), flag.help.c_str(), __FILE__, &now, &initial);
  };
  const plan::TranspileConfig defaults;
  for (const plan::Setting& setting : plan::Settings()) {
    if (setting.flag.empty()) continue;
    const std::string help = StrCat(setting.doc, "; overrides --config");
    const plan::SettingValue value = setting.get(defaults);
    if (setting.type == plan::SettingType::kInteger) {
      const std::int64_t* number = std::get_if<std::int64_t>(&value);
      define(setting, help, static_cast<gflags::int32>(number == nullptr ? -1 : *number));
    } else if (setting.type == plan::SettingType::kNumber) {
      define(setting, help, std::get<double>(value));
    } else {
      define(setting, help, std::string());
    }
  }
}

std::vector<std::string_view> JobFlags() {
  std::vector<std::string_view> flags = {"main", "startup", "facts", "config", "compat"};
  for (const plan::Setting& setting : plan::Settings()) {
    if (!setting.flag.empty()) flags.push_back(setting.flag);
  }
  return flags;
}

bool IsGiven(const char* flag) { return !gflags::GetCommandLineFlagInfoOrDie(flag).is_default; }

bool HasSourcePrograms() { return !FLAGS_main.empty() || !FLAGS_startup.empty(); }

Result<Source> ReadSourcePrograms(std::string_view command) {
  PENSTOCK_RETURN_IF_ERROR(Require(command, "main", FLAGS_main));
  PENSTOCK_RETURN_IF_ERROR(Require(command, "startup", FLAGS_startup));
  Source source;
  PENSTOCK_ASSIGN_OR_RETURN(source.main, ReadProgramFile(FLAGS_main, &Threads()));
  PENSTOCK_ASSIGN_OR_RETURN(source.startup, ReadProgramFile(FLAGS_startup, &Threads()));
  if (FLAGS_facts.empty()) return source;
  PENSTOCK_ASSIGN_OR_RETURN(const std::string facts, ReadFile(FLAGS_facts));
  Status applied = ApplyFacts(facts, source.main, source.startup);
  if (!applied.ok()) return std::move(applied).In(FLAGS_facts);
  return source;
}

Result<Source> ReadSource(std::string_view command) {
  if (!FLAGS_compat.empty() && FLAGS_compat != kFluid18) {
    return InvalidArgument("E-usage", command, ": --compat must be ", kFluid18, ", not ",
                           Quote(FLAGS_compat));
  }
  PENSTOCK_RETURN_IF_ERROR(Require(command, "config", FLAGS_config));
  PENSTOCK_ASSIGN_OR_RETURN(Source source, ReadSourcePrograms(command));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string config, ReadFile(FLAGS_config));
  Status flags;
  Result<CaseFile> job = ParseCase(config, {}, [&](plan::TranspileConfig& read) {
    flags = ApplyFlags(command, read);
    return flags;
  });
  PENSTOCK_RETURN_IF_ERROR(std::move(flags));
  if (!job.ok()) return std::move(job).status().In(FLAGS_config);
  source.job = *std::move(job);
  return source;
}

}  // namespace penstock::tools
