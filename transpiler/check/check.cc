#include "transpiler/check/check.h"

#include <algorithm>
#include <iterator>

#include "framework/text/printer.h"
#include "transpiler/check/composition.h"
#include "transpiler/check/facts.h"

namespace penstock {

std::vector<const RoleProgram*> RoleFiles::All() const {
  std::vector<const RoleProgram*> all;
  for (const auto* files : {&trainers, &trainer_startups, &pservers, &pserver_startups}) {
    for (const RoleProgram& file : *files) all.push_back(&file);
  }
  return all;
}

std::vector<RoleProgram*> RoleFiles::All() {
  std::vector<RoleProgram*> all;
  for (auto* files : {&trainers, &trainer_startups, &pservers, &pserver_startups}) {
    for (RoleProgram& file : *files) all.push_back(&file);
  }
  return all;
}

std::string Finding::ToString() const {
  constexpr std::string_view kWords[] = {"note", "warning", "error"};
  std::string out =
      StrCat(kWords[static_cast<std::size_t>(severity)], ": check: ", file, ": ", message, "   [", id, "]");
  for (const std::string& line : details) out += StrCat("\n  ", line);
  return out;
}

int CheckReport::Count(Severity severity) const {
  return static_cast<int>(std::count_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.severity == severity;
  }));
}

std::string CheckReport::ToString() const {
  std::string out;
  for (const Finding& finding : findings) out += finding.ToString() + "\n";
  out += StrCat("check: ", Count(Severity::kError), " errors, ", Count(Severity::kWarning), " warnings\n");
  return out;
}

// What a person can read of a line: an op that lists the elements of a tensor has more than that.
std::string Shortened(std::string line) {
  constexpr std::size_t kMost = 1200, kBegin = 900, kEnd = 200;
  if (line.size() <= kMost) return line;
  return StrCat(line.substr(0, kBegin), " ... ", line.substr(line.size() - kEnd));
}

Finding MakeFinding(Severity severity, std::string id, const RoleProgram& file, std::string message,
                    const Op* op) {
  Finding finding{severity, std::move(id), file.file, std::move(message), {}};
  if (op != nullptr) {
    finding.details.push_back(Shortened(PrintOp(*op)));
    if (!op->location().empty()) finding.details.push_back(StrCat("written at ", op->location()));
  }
  return finding;
}

namespace {

// Each role and each message by itself, and what the set does step by step.
void CheckFacts(const RoleFiles& roles, const RoleFacts& facts, const OpRegistry& ops,
                const CheckOptions& options, Findings findings) {
  if (!options.verified) {
    CheckPlans(roles, facts, findings);
    CheckPrograms(roles, ops, findings);
  }
  CheckDeclarations(facts, options.source, findings);
  CheckMessages(facts, findings);
  CheckTiling(facts, findings);
  CheckUpdates(facts, ops, findings);
  CheckTrainerUpdates(facts, ops, findings);
  CheckServing(facts, findings);
  CheckDelay(facts, findings);
  CheckMeasures(facts, ops, findings);
  CheckTables(facts, findings);
  CheckBarriers(facts, findings);
  CheckCommOps(facts, findings);
  CheckOrder(facts, findings);
  CheckStartup(facts, findings);
  CheckStartRows(facts, ops, options.source, findings);
  CheckStepCounters(facts, options.source, findings);
  CheckSharedStart(facts, findings);
  CheckGeo(facts, findings);
  CheckProgress(facts, findings);
  CheckCollective(facts, findings);
  CheckStreams(facts, findings);
  CheckRankStart(facts, findings);
}

// What the set computes as a whole.
void CheckComposition(const RoleFacts& facts, const OpRegistry& ops, const CheckOptions& options,
                      Findings findings) {
  Composition set(facts, ops);
  CheckAlike(set, findings);
  CheckStartValues(set, options.source, findings);
  if (options.source != nullptr) CheckSource(set, *options.source, findings);
}

}  // namespace

CheckReport CheckRoles(const RoleFiles& roles, const OpRegistry& ops, const CheckOptions& options) {
  CheckReport report;
  const RoleFacts facts = ReadFacts(roles, ops, report.findings);
  std::vector<Finding> composed;  // reported last, found beside the others
  const auto check = [&](std::size_t part) {
    if (part == 0) CheckComposition(facts, ops, options, Findings(composed));
    if (part == 1) CheckFacts(roles, facts, ops, options, Findings(report.findings));
  };
  constexpr std::size_t kParts = 2;
  if (options.threads != nullptr) {
    options.threads->ForEach(kParts, check);
  } else {
    for (std::size_t part = 0; part < kParts; ++part) check(part);
  }
  std::move(composed.begin(), composed.end(), std::back_inserter(report.findings));
  return report;
}

}  // namespace penstock
