#include "tools/flags.h"

#include <gflags/gflags.h>

#include <algorithm>

namespace penstock::tools {
namespace {

// The command-line spelling of a flag: --step-ms for step_ms.
std::string Spelt(std::string_view name) {
  std::string spelt = StrCat("--", name);
  std::replace(spelt.begin(), spelt.end(), '_', '-');
  return spelt;
}

}  // namespace

Result<Arguments> TakeFlags(const Command& command, const Arguments& arguments) {
  Arguments rest;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view text = arguments[i];
    if (text == "--") {
      rest.insert(rest.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
      break;
    }
    if (text.size() < 2 || text[0] != '-') {
      rest.emplace_back(text);
      continue;
    }
    text.remove_prefix(text[1] == '-' ? 2 : 1);
    const std::size_t equals = text.find('=');
    std::string name(text.substr(0, equals));
    std::replace(name.begin(), name.end(), '-', '_');
    gflags::CommandLineFlagInfo info;
    const bool listed = std::find(command.flags.begin(), command.flags.end(), name) != command.flags.end();
    if (!listed || !gflags::GetCommandLineFlagInfo(name.c_str(), &info)) {
      return InvalidArgument("E-flag", command.name, " has no flag ", arguments[i]);
    }
    std::string value;
    if (equals != std::string_view::npos) {
      value = text.substr(equals + 1);
    } else if (info.type == "bool") {
      value = "true";
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return InvalidArgument("E-flag", "flag ", Spelt(name), " needs a value");
    }
    if (gflags::SetCommandLineOption(name.c_str(), value.c_str()).empty()) {
      return InvalidArgument("E-flag", "flag ", Spelt(name), " is of type ", info.type, ", not ",
                             Quote(value));
    }
  }
  return rest;
}

std::string FlagHelp(const Command& command) {
  std::string out;
  for (const std::string_view name : command.flags) {
    gflags::CommandLineFlagInfo info;
    if (!gflags::GetCommandLineFlagInfo(std::string(name).c_str(), &info)) continue;
    out += StrCat("  ", Spelt(name), "  ", info.description);
    if (!info.default_value.empty()) out += StrCat(" (default: ", info.default_value, ")");
    out += '\n';
  }
  return out;
}

}  // namespace penstock::tools
