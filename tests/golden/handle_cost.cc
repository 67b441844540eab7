// cost/: the report of `penstock plan` on a job.
#include <charconv>

#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/golden/handlers.h"
#include "tests/support/corpus.h"
#include "tools/case/case_file.h"
#include "tools/case/role_files.h"
#include "tools/plan/rate.h"
#include "tools/plan/report.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {
namespace {

// The role programs of a case, from any source.
struct Roles : check::RoleFiles {
  cost::JobPrograms Programs() const {
    cost::JobPrograms out;
    for (const check::RoleProgram& one : trainers) out.trainers.push_back({one.file, &one.program});
    for (const check::RoleProgram& one : trainer_startups)
      out.trainer_startups.push_back({one.file, &one.program});
    for (const check::RoleProgram& one : pservers) out.pservers.push_back({one.file, &one.program});
    return out;
  }
};

// -- roles of fit_a_line.sgd@sync_p2t2: a case of the selection in the tree.
Result<Roles> RolesOfCase(const std::string& name) {
  PENSTOCK_ASSIGN_OR_RETURN(check::RoleFiles files,
                            tools::ReadRoleFiles(StrCat(SelectionFolder(), "/open/cases/", name)));
  return Roles{std::move(files)};
}

// -- trainer, -- trainer (startup), -- pserver: the programs themselves.
Result<Roles> RolesOfSections(const GoldenCase& one) {
  Roles roles;
  for (const GoldenSection& section : one.given) {
    if (section.name != "trainer" && section.name != "pserver") continue;
    std::vector<check::RoleProgram>& into = section.name == "pserver"       ? roles.pservers
                                            : section.argument == "startup" ? roles.trainer_startups
                                                                            : roles.trainers;
    const std::string name = StrCat(section.name, "_", into.size());
    PENSTOCK_ASSIGN_OR_RETURN(Program program, ParseText(section.text, name));
    into.push_back({name, std::move(program)});
  }
  return roles;
}

// -- config and -- in: a program to transpile.
Result<Roles> RolesOfSource(const GoldenCase& one) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string config, RequireSection(one, "config"));
  PENSTOCK_ASSIGN_OR_RETURN(const CaseFile job, ParseCase(config));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string main, RequireSection(one, "in"));
  PENSTOCK_ASSIGN_OR_RETURN(const Program program, ParseText(main, "in"));
  Program startup;
  if (const GoldenSection* section = one.Find("startup")) {
    PENSTOCK_ASSIGN_OR_RETURN(startup, ParseText(section->text, "startup"));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const RoleSet set, Transpile(AllOps(), program, startup, job.config));
  Roles roles;
  for (const TrainerPrograms& role : set.trainers) {
    roles.trainers.push_back({StrCat("trainer ", role.trainer_id), role.main});
    roles.trainer_startups.push_back({StrCat("trainer ", role.trainer_id, " startup"), role.startup});
  }
  for (const PserverPrograms& role : set.pservers)
    roles.pservers.push_back({StrCat("pserver ", roles.pservers.size()), role.main});
  return roles;
}

// -- ask: lines "net 10Gbit", "step_ms 50", "rows_per_step 10", "batch 4", "steps_per_exchange 10", "json",
// "dot", "pieces", "times" (only the arithmetic).
struct Ask {
  tools::JobQuestion question;
  std::string form;
};

Result<Ask> ReadAsk(const GoldenCase& one) {
  Ask ask;
  const GoldenSection* section = one.Find("ask");
  if (section == nullptr) return ask;
  cost::Network network;
  for (const std::string& line : Split(section->text, '\n')) {
    const std::vector<std::string> words = Split(line, ' ');
    if (words.size() == 1 && !line.empty()) ask.form = line;
    if (words.size() != 2) continue;
    double number = 0;
    std::from_chars(words[1].data(), words[1].data() + words[1].size(), number);
    const auto count = static_cast<std::int64_t>(number);
    if (words[0] == "net") {
      PENSTOCK_ASSIGN_OR_RETURN(network.bits_per_second, tools::ParseRate(words[1]));
    } else if (words[0] == "step_ms") {
      network.step_ms = number;
    } else if (words[0] == "message_us") {
      network.message_us = number;
    } else if (words[0] == "rows_per_step") {
      ask.question.cost.rows_per_step = count;
    } else if (words[0] == "batch") {
      ask.question.cost.batch = count;
    } else if (words[0] == "steps_per_exchange") {
      ask.question.cost.steps_per_exchange = static_cast<int>(count);
    } else {
      return InvalidArgument("E-golden", "ask: ", line);
    }
  }
  if (section->text.find("net ") != std::string::npos) ask.question.network = network;
  return ask;
}

}  // namespace

Result<GoldenOutputs> RunCost(const GoldenFile&, const GoldenCase& one) {
  const GoldenSection* case_name = one.Find("roles of");
  PENSTOCK_ASSIGN_OR_RETURN(const Roles roles,
                            case_name != nullptr ? RolesOfCase(std::string(StripSpace(case_name->text)))
                            : one.Find("trainer") != nullptr || one.Find("pserver") != nullptr
                                ? RolesOfSections(one)
                                : RolesOfSource(one));
  PENSTOCK_ASSIGN_OR_RETURN(const Ask ask, ReadAsk(one));
  PENSTOCK_ASSIGN_OR_RETURN(cost::Job job, cost::ReadJob(AllOps(), roles.Programs()));
  PENSTOCK_ASSIGN_OR_RETURN(const tools::JobReport report,
                            tools::MakeJobReport(std::move(job), ask.question));
  const std::string text = ask.form == "json"  ? tools::ReportJson(report)
                           : ask.form == "dot" ? tools::ReportDot(report)
                           : ask.form == "times"
                               ? tools::ReportArithmetic(report) + tools::ReportAdvice(report)
                               : tools::ReportText(report, {.pieces = ask.form == "pieces"});
  return GoldenOutputs{{"out", "", text}};
}

}  // namespace penstock::test
