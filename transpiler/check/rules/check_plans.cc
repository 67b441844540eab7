// All programs that carry a plan carry the same one, and its number of trainers is that of the set. The check
// trusts a plan no further: a plan can contradict a set but prove nothing.
#include <algorithm>
#include <optional>

#include "framework/text/lexer.h"
#include "transpiler/check/facts/facts.h"
#include "transpiler/check/facts/rank_facts.h"

namespace penstock::check {
namespace {

// "trainers=2" of the plan's first line.
std::optional<int> TrainersIn(const std::string& plan) {
  Lexer lexer(plan, "plan");
  bool named = false, assigned = false;
  while (true) {
    const Result<Token> token = lexer.Next();
    if (!token.ok() || token->kind == TokenKind::kEnd || token->kind == TokenKind::kNewline)
      return std::nullopt;
    if (assigned && token->kind == TokenKind::kInt) return static_cast<int>(token->integer);
    assigned = named && token->kind == TokenKind::kPunct && token->text == "=";
    named = token->kind == TokenKind::kName && token->text == "trainers";
  }
}

// The first program that carries a plan; null if none does. Adds a finding for each program with a different
// plan.
const RoleProgram* CheckSame(const RoleFiles& roles, Findings& findings) {
  const RoleProgram* first = nullptr;
  for (const RoleProgram* file : roles.All()) {
    if (file->program.meta().plan.empty()) continue;
    if (first == nullptr) first = file;
    if (file->program.meta().plan == first->program.meta().plan) continue;
    findings.Error("E-check-plan", *file, StrCat("was made by another plan than ", first->file));
    const std::vector<std::string> own = Split(file->program.meta().plan, '\n');
    const std::vector<std::string> other = Split(first->program.meta().plan, '\n');
    const auto [here, there] = std::mismatch(own.begin(), own.end(), other.begin(), other.end());
    findings.Detail(StrCat(first->file, ":  ", there == other.end() ? "(ends)" : *there));
    findings.Detail(StrCat(file->file, ":  ", here == own.end() ? "(ends)" : *here));
  }
  return first;
}

// For the devices of one process, the factor of the mean over them gives their number.
std::optional<int> DevicesOfMean(const RankFacts& rank) {
  const auto losses = LossScales(rank.trainer->file->program, rank.ranks);
  return losses.empty() ? std::nullopt : DevicesOf(losses.front().first);
}

}  // namespace

void CheckPlans(const RoleFiles& roles, const RoleFacts& facts, Findings& findings) {
  const RoleProgram* planned = CheckSame(roles, findings);
  if (planned == nullptr) return;
  const std::optional<int> trainers = TrainersIn(planned->program.meta().plan);
  if (!trainers) return;
  for (const PserverFacts& pserver : facts.pservers) {
    if (pserver.trainers == *trainers) continue;
    findings.Error("E-check-trainers", *pserver.file,
                   StrCat("waits for ", pserver.trainers, " trainers; the plan that ", planned->file,
                          " carries is for ", *trainers),
                   pserver.serve);
  }
  if (!facts.pservers.empty()) return;
  for (const RankFacts& rank : ReadRanks(facts)) {
    if (rank.joins == nullptr) continue;
    const std::optional<int> ranks = rank.ranks > 0 ? rank.ranks : DevicesOfMean(rank);
    if (!ranks || *ranks == *trainers) continue;
    findings.Error(
        "E-check-ranks", *rank.trainer->file,
        StrCat("is for ", *ranks, " ranks; the plan that ", planned->file, " carries is for ", *trainers),
        rank.joins);
  }
}

}  // namespace penstock::check
