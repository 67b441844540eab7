#include "framework/text/program_file.h"

#include <string_view>

#include "framework/base/files.h"
#include "framework/text/json.h"
#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/wire/wire.h"

namespace penstock {
namespace {

enum class Form { kBinary, kText, kJson };

Result<Form> FormOf(const std::string& path) {
  std::string_view name = path;
  if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  if (name.ends_with(".gz")) name.remove_suffix(3);
  if (name.ends_with(".pb") || name.ends_with(".pdmodel") || name == "__model__" || name == "model") {
    return Form::kBinary;
  }
  if (name.ends_with(".ir")) return Form::kText;
  if (name.ends_with(".json")) return Form::kJson;
  return InvalidArgument("E-file-format", path, ": the form of a program is told by its name: .pb, .pb.gz, ",
                         ".pdmodel, __model__, .ir or .json");
}

}  // namespace

Result<Program> ReadProgramFile(const std::string& path, ThreadPool* threads) {
  PENSTOCK_ASSIGN_OR_RETURN(const Form form, FormOf(path));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  if (form == Form::kText) return ParseText(bytes, path);
  if (form == Form::kJson) return ProgramFromJson(bytes, path);
  Result<Program> program = ParseProgram(bytes, threads);
  if (!program.ok()) return std::move(program).status().In(path);
  return program;
}

Status WriteProgramFile(const std::string& path, const Program& program) {
  PENSTOCK_ASSIGN_OR_RETURN(const Form form, FormOf(path));
  switch (form) {
    case Form::kBinary:
      return WriteFile(path, SerializeProgram(program));
    case Form::kText:
      return WriteFile(path, PrintProgram(program, PrintOptions::Everything()));
    case Form::kJson:
      return WriteFile(path, ProgramToJson(program));
  }
  return OkStatus();
}

}  // namespace penstock
