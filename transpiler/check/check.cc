#include "transpiler/check/check.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include "framework/op/conform.h"
#include "framework/text/printer.h"
#include "transpiler/check/facts/facts.h"
#include "transpiler/check/facts/while_live.h"
#include "transpiler/check/meaning/composition.h"

namespace penstock::check {

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

namespace {
std::string Counted(int count, std::string_view what) {
  return StrCat(count, " ", what, count == 1 ? "" : "s");
}
}  // namespace

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
  out += StrCat("check: ", Counted(Count(Severity::kError), "error"), ", ",
                Counted(Count(Severity::kWarning), "warning"), "\n");
  return out;
}

// Keeps a line readable: an op that lists the elements of a tensor prints as a very long line.
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

// The rules on single roles and messages, and on the steps of the set. They are independent and report in
// this order.
std::vector<std::function<void(Findings&)>> RulesOfWiring(const RoleFiles& roles, const RoleFacts& facts,
                                                          const OpRegistry& ops,
                                                          const CheckOptions& options) {
  const SourcePrograms* source = options.source;
  std::vector<std::function<void(Findings&)>> rules;
  if (!options.verified) {
    rules.emplace_back([&](Findings& findings) { CheckPlans(roles, facts, findings); });
    rules.emplace_back([&](Findings& findings) { CheckPrograms(roles, ops, findings); });
  }
  rules.emplace_back([&, source](Findings& findings) { CheckDeclarations(facts, source, findings); });
  rules.emplace_back([&](Findings& findings) { CheckMessages(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckTiling(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckUpdates(facts, ops, findings); });
  rules.emplace_back([&](Findings& findings) { CheckTrainerUpdates(facts, ops, findings); });
  rules.emplace_back([&](Findings& findings) { CheckServing(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckDelay(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckMeasures(facts, ops, findings); });
  rules.emplace_back([&](Findings& findings) { CheckTables(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckBarriers(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckCommOps(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckOrder(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckStartup(facts, findings); });
  rules.emplace_back([&, source](Findings& findings) { CheckStartRows(facts, ops, source, findings); });
  rules.emplace_back([&, source](Findings& findings) { CheckStepCounters(facts, source, findings); });
  rules.emplace_back([&](Findings& findings) { CheckSharedStart(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckPolicies(roles, facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckGeo(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckProgress(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckCollective(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckBothExchanges(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckStreams(facts, findings); });
  rules.emplace_back([&](Findings& findings) { CheckRankStart(facts, findings); });
  return rules;
}

// The rules on what the set computes as a whole.
void CheckComposition(const RoleFacts& facts, const OpRegistry& ops, const CheckOptions& options,
                      Findings& findings) {
  Composition set(facts, ops);
  CheckAlike(set, findings);
  CheckStartValues(set, options.source, findings);
  if (options.source != nullptr) CheckSource(set, *options.source, findings);
}

// The roles with attributes in the kinds that their ops declare; nullopt if they are so already.
std::optional<RoleFiles> ConformedRoles(const RoleFiles& roles, const OpRegistry& ops) {
  std::optional<RoleFiles> out;
  const std::vector<const RoleProgram*> all = roles.All();
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::optional<Program> conformed = Conformed(ops, all[i]->program);
    if (!conformed) continue;
    if (!out) out = roles;
    out->All()[i]->program = *std::move(conformed);
  }
  return out;
}

// The roles with live-only blocks inlined (while_live.h); nullopt if no trainer has such blocks.
std::optional<RoleFiles> RolesWhileLive(const RoleFiles& roles) {
  std::optional<RoleFiles> out;
  for (std::size_t i = 0; i < roles.trainers.size(); ++i) {
    std::optional<Program> live = WhileLive(roles.trainers[i].program);
    if (!live) continue;
    if (!out) out = roles;
    out->trainers[i].program = *std::move(live);
  }
  return out;
}

}  // namespace

CheckReport CheckRoles(const RoleFiles& roles, const OpRegistry& ops, const CheckOptions& options) {
  CheckReport report;
  if (const std::optional<RoleFiles> conformed = ConformedRoles(roles, ops))
    return CheckRoles(*conformed, ops, options);
  if (options.source != nullptr) {
    const auto main = Conformed(ops, options.source->main), startup = Conformed(ops, options.source->startup);
    const SourcePrograms source{main ? *main : options.source->main,
                                startup ? *startup : options.source->startup};
    CheckOptions with = options;
    with.source = &source;
    if (main || startup) return CheckRoles(roles, ops, with);
  }
  const std::optional<RoleFiles> live = RolesWhileLive(roles);
  const RoleFacts facts = ReadFacts(live ? *live : roles, ops, options.threads, report.findings);
  const auto rules = RulesOfWiring(roles, facts, ops, options);
  // The composition takes longest, so it starts first; its findings are reported last.
  std::vector<std::vector<Finding>> found(rules.size() + 1);
  const auto check = [&](std::size_t part) {
    Findings findings(part == 0 ? found.back() : found[part - 1]);
    if (part == 0) {
      CheckComposition(facts, ops, options, findings);
    } else {
      rules[part - 1](findings);
    }
  };
  ForEach(options.threads, found.size(), check);
  for (std::vector<Finding>& one : found) std::ranges::move(one, std::back_inserter(report.findings));
  return report;
}

}  // namespace penstock::check
