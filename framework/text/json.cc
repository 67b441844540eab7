#include "framework/text/json.h"

#include <algorithm>

#include "extra.pb.h"
#include "framework.pb.h"
#include "framework/text/json_message.h"
#include "framework/wire/wire.h"

namespace penstock {
namespace {

constexpr int kIndent = 1;

// Converts nlohmann-json's exceptions to a Status.
Result<Json> ParseDocument(std::string_view text, std::string_view filename) {
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    const std::string_view before =
        text.substr(0, std::min(error.byte == 0 ? 0 : error.byte - 1, text.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    return InvalidArgument("E-json", filename, ":", line, ":", before.size() - line_begin + 1, ": not JSON");
  } catch (const Json::exception& error) {  // a number that is too large for a double
    return InvalidArgument("E-json", filename, ": not JSON that can be read");
  }
}

}  // namespace

std::string ProgramToJson(const Program& program) {
  proto::ProgramDesc desc;
  PENSTOCK_CHECK(desc.ParsePartialFromString(SerializeProgram(program)),
                 "a program writes bytes that do not read");
  return MessageToJson(desc).dump(kIndent) + "\n";
}

Result<Program> ProgramFromJson(std::string_view text, std::string_view filename) {
  PENSTOCK_ASSIGN_OR_RETURN(const Json json, ParseDocument(text, filename));
  proto::ProgramDesc desc;
  if (Status status = MessageFromJson(json, "", desc); !status.ok()) return std::move(status).In(filename);
  if (!desc.IsInitialized()) {
    return InvalidArgument("E-json", filename, ": fields are missing: ", desc.InitializationErrorString());
  }
  Result<Program> program = ParseProgram(desc.SerializeAsString());
  if (!program.ok()) return std::move(program).status().In(filename);
  return program;
}

}  // namespace penstock
