// check/: damages a correct set in the text of its programs, and prints the findings of check.
#include <algorithm>
#include <map>

#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "operators/all_ops.h"
#include "tests/golden/handlers.h"
#include "tools/case/case_file.h"
#include "transpiler/pipeline/check_role_set.h"

namespace penstock::test {
namespace {

// The undamaged set of a case: from its own sections, or from those of the last case above that has them.
const GoldenCase* BaseOf(const GoldenFile& file, const GoldenCase& one) {
  const GoldenCase* base = nullptr;
  for (const GoldenCase& above : file.cases) {
    if (above.Find("in") != nullptr) base = &above;
    if (above.line == one.line) break;
  }
  return base;
}

struct CheckedJob {
  Program main, startup;
  check::RoleFiles roles;
};

Result<Program> ProgramOf(const GoldenCase& one, std::string_view section) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, RequireSection(one, section));
  return ParseText(text, std::string(section));
}

Result<CheckedJob> MakeJob(const GoldenCase& base) {
  CheckedJob job;
  PENSTOCK_ASSIGN_OR_RETURN(job.main, ProgramOf(base, "in"));
  PENSTOCK_ASSIGN_OR_RETURN(job.startup, ProgramOf(base, "startup"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, RequireSection(base, "config"));
  PENSTOCK_ASSIGN_OR_RETURN(const CaseFile file, ParseCase(text));
  plan::TranspileConfig config = file.config;
  if (base.Find("config")->argument == "fluid-1.8") config.dialect = plan::Dialect::kFluid18;
  PENSTOCK_ASSIGN_OR_RETURN(const RoleSet roles, Transpile(AllOps(), job.main, job.startup, config));
  job.roles = FilesOf(roles);
  return job;
}

check::RoleProgram* FindFile(check::RoleFiles& roles, const std::string& name) {
  for (check::RoleProgram* file : roles.All()) {
    if (file->file == name) return file;
  }
  return nullptr;
}

using Lines = std::vector<std::string>;

Result<std::size_t> LineWith(const Lines& lines, const std::string& part) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find(part) != std::string::npos) return i;
  }
  return InvalidArgument("E-golden", "no line has ", Quote(part), " in\n", Join(lines, "\n"));
}

// "drop PART", "again PART", "move PART above PART", "replace OLD => NEW": PART is a
// part of a line; the edit applies to the first line that contains it.
Status Edit(const std::string& edit, Lines& lines) {
  const std::size_t space = edit.find(' ');
  const std::string verb = edit.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : edit.substr(space + 1);
  const std::string middle = verb == "move" ? " above " : " => ";
  const std::size_t at = rest.find(middle);
  const std::string first = rest.substr(0, at);
  const std::string second = at == std::string::npos ? "" : rest.substr(at + middle.size());
  PENSTOCK_ASSIGN_OR_RETURN(const std::size_t line, LineWith(lines, first));
  const auto place = lines.begin() + static_cast<std::ptrdiff_t>(line);
  if (verb == "drop") {
    lines.erase(place);
  } else if (verb == "again") {
    lines.insert(place, lines[line]);
  } else if (verb == "replace") {
    lines[line].replace(lines[line].find(first), first.size(), second);
  } else if (verb == "move") {
    const std::string moved = lines[line];
    lines.erase(place);
    PENSTOCK_ASSIGN_OR_RETURN(const std::size_t before, LineWith(lines, second));
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(before), moved);
  } else {
    return InvalidArgument("E-golden", "there is no edit ", Quote(verb));
  }
  return OkStatus();
}

Status Damage(const GoldenSection& section, check::RoleFiles& roles) {
  check::RoleProgram* file = FindFile(roles, section.argument);
  if (file == nullptr) return InvalidArgument("E-golden", "there is no file ", section.argument);
  file->program.mutable_meta().job_facts.clear();  // it repeats facts of the ops
  Lines lines = Split(PrintProgram(file->program, PrintOptions::Everything()), '\n');
  for (const std::string& edit : Split(section.text, '\n')) {
    if (!edit.empty()) PENSTOCK_RETURN_IF_ERROR(Edit(edit, lines));
  }
  PENSTOCK_ASSIGN_OR_RETURN(file->program, ParseText(Join(lines, "\n"), section.argument));
  return OkStatus();
}

}  // namespace

Result<GoldenOutputs> RunCheck(const GoldenFile& file, const GoldenCase& one) {
  const GoldenCase* base = BaseOf(file, one);
  if (base == nullptr) return InvalidArgument("E-golden", "no case up to this one has a section in");
  PENSTOCK_ASSIGN_OR_RETURN(CheckedJob job, MakeJob(*base));
  for (const GoldenSection& section : one.given) {
    if (section.name == "damage") PENSTOCK_RETURN_IF_ERROR(Damage(section, job.roles));
  }
  const check::SourcePrograms source{job.main, job.startup};
  const bool with_source = one.Find("without source") == nullptr;
  const check::CheckReport report =
      check::CheckRoles(job.roles, AllOps(), {.source = with_source ? &source : nullptr});
  return GoldenOutputs{{"out", "", report.ToString()}};
}

}  // namespace penstock::test
