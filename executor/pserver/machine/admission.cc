#include "executor/pserver/machine/admission.h"

#include <algorithm>
#include <set>
#include <utility>

#include "framework/base/hash.h"
#include "framework/text/job_facts.h"

namespace penstock::pserver {

TrainerTerms::TrainerTerms(const roles::PserverFacts& facts, int trainer, const protocol::RowUses& uses)
    : contract_(protocol::ContractOf(facts, trainer, uses)),
      startup_hash_(contract_.Startup().Hash()),
      without_grads_hash_(contract_.WithoutGrads().Hash()),
      hash_(contract_.Hash()),
      param_of_(contract_.variable_count()),
      padding_of_(contract_.variable_count(), -1) {
  for (std::size_t p = 0; p < facts.params.size(); ++p) {
    const roles::ServedParam& served = facts.params[p];
    const int param = contract_.FindParam(served.param.name);
    const int itself = param >= 0 ? param : contract_.FindTable(served.param.name);
    const int pushed = served.start ? itself : contract_.FindGrad(served.GradientOf(trainer));
    variable_of_.push_back(static_cast<std::uint32_t>(itself));
    pushed_for_.push_back(static_cast<std::uint32_t>(pushed));
    if (itself >= 0) param_of_[variable_of_.back()] = static_cast<int>(p);
    param_of_[pushed_for_.back()] = static_cast<int>(p);
    for (const roles::ServedLookup& lookup : served.lookups) {
      const int asked = contract_.FindTable(lookup.ids);
      if (asked < 0) continue;  // not used
      param_of_[static_cast<std::size_t>(asked)] = static_cast<int>(p);
      padding_of_[static_cast<std::size_t>(asked)] = lookup.padding;
    }
  }
}

void TrainerTerms::AddKey() {
  const auto param = static_cast<int>(variable_of_.size());
  variable_of_.push_back(static_cast<std::uint32_t>(param_of_.size()));
  pushed_for_.push_back(variable_of_.back() + 1);
  param_of_.insert(param_of_.end(), 2, param);
  padding_of_.insert(padding_of_.end(), 2, -1);
}

std::optional<int> TrainerTerms::ParamOfGrad(std::uint32_t variable) const {
  if (IsKey(variable)) return IsGradientOfKey(variable) ? std::optional(param_of_[variable]) : std::nullopt;
  if (variable < contract_.params.size() + contract_.tables.size() || variable >= param_of_.size())
    return std::nullopt;
  return param_of_[variable];
}

std::optional<int> TrainerTerms::ParamOfPull(std::uint32_t variable) const {
  if (IsKey(variable)) return IsGradientOfKey(variable) ? std::nullopt : std::optional(param_of_[variable]);
  if (variable >= contract_.params.size()) return std::nullopt;
  return param_of_[variable];
}

std::optional<int> TrainerTerms::ParamOfTable(std::uint32_t variable) const {
  if (IsKey(variable)) return ParamOfPull(variable);
  if (variable < contract_.params.size() || variable >= contract_.params.size() + contract_.tables.size())
    return std::nullopt;
  return param_of_[variable];
}

std::optional<int> TrainerTerms::ParamOfPush(std::uint32_t variable, std::uint64_t contract) const {
  if (variable >= contract_.params.size()) {
    return contract == hash_ ? ParamOfGrad(variable) : std::nullopt;  // startup programs know no gradients
  }
  return contract_.Starts(contract_.params[variable].name) ? std::optional(param_of_[variable])
                                                           : std::nullopt;
}

std::optional<int> TrainerTerms::ParamOfInitial(std::uint32_t variable) const {
  if (IsKey(variable)) return ParamOfPull(variable);
  if (variable >= contract_.params.size() + contract_.tables.size()) return std::nullopt;
  const protocol::ContractPiece& piece = contract_.Variable(variable);
  if (!piece.shape.IsKnown() || contract_.Starts(piece.name)) return std::nullopt;
  return param_of_[variable];
}

namespace {

// Describes the first difference of two unequal contracts. The trainer may have sent only the beginning of
// its own.
std::string DifferenceOf(std::string ours, std::string_view theirs) {
  const bool cut = theirs.size() >= protocol::kCutLine.size() &&
                   theirs.substr(theirs.size() - protocol::kCutLine.size()) == protocol::kCutLine;
  if (cut) {
    theirs.remove_suffix(protocol::kCutLine.size());
    std::size_t end = 0;
    for (auto lines = std::count(theirs.begin(), theirs.end(), '\n'); lines > 0 && end < ours.size();
         --lines) {
      const std::size_t at = ours.find('\n', end);
      end = at == std::string::npos ? ours.size() : at + 1;
    }
    ours.resize(end);
  }
  const std::string difference = protocol::FirstDifference(ours, std::string(theirs));
  if (!difference.empty()) return StrCat("first difference, ", difference);
  return StrCat("they differ after line ", std::count(theirs.begin(), theirs.end(), '\n'));
}

}  // namespace

namespace {

// The parameters that are updated by rows and held in slices.
std::set<std::string, std::less<>> AllByRows(const roles::PserverFacts& role) {
  std::set<std::string, std::less<>> names;
  for (const roles::ServedParam& served : role.params) {
    if (served.rows && !served.by_id) names.insert(served.param.name);
  }
  return names;
}

}  // namespace

Admission::Admission(const roles::PserverFacts& facts, std::string job)
    : facts_(facts), job_(std::move(job)), job_hash_(Fnv1a64(job_)) {
  for (int t = 0; t < facts.trainers; ++t) trainers_.push_back({.terms = TrainerTerms(facts, t)});
}

Status Admission::Check(const protocol::Sender& sender, const protocol::HelloBody& hello,
                        bool may_return) const {
  const std::uint32_t id = sender.trainer;
  const std::size_t count = trainers_.size();
  if (sender.job != job_hash_ || hello.job != job_) {
    return FailedPrecondition("E-rpc-job", "pserver ", address_, " works for job ", Quote(job_),
                              ", this trainer for ", Quote(hello.job));
  }
  if (hello.trainers != 0 && hello.trainers != count) {
    return InvalidArgument("E-plan-trainers", "plan: pserver ", address_, " is made for ", count,
                           " trainers, trainer ", id, " for ", hello.trainers);
  }
  if (id >= count) {
    return InvalidArgument("E-plan-trainer-id", "plan: trainer_id ", id, " is out of range; pserver ",
                           address_,
                           count == 1 ? StrCat(" is made for 1 trainer (0)")
                                      : StrCat(" is made for ", count, " trainers (0 to ", count - 1, ")"));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckContract(sender, hello));
  PENSTOCK_RETURN_IF_ERROR(CheckJobFacts(sender, hello));
  const std::optional<std::uint64_t>& known = trainers_[id].incarnation;
  if (known && sender.incarnation < *known) {
    return Fenced(static_cast<int>(id));
  }
  if (known && sender.incarnation > *known && !may_return) {
    return FailedPrecondition("E-rpc-restart", "trainer ", id,
                              " was started a second time while the job ran");
  }
  return OkStatus();
}

Status Admission::Fenced(int trainer) {
  return FailedPrecondition("E-rpc-fenced", "trainer ", trainer,
                            " has been restarted since; this process is its older instance");
}

std::optional<TrainerTerms> Admission::TermsFor(const protocol::Sender& sender,
                                                const protocol::HelloBody& hello) const {
  const TrainerTerms& known = trainers_[sender.trainer].terms;
  if (known.Accepts(sender.contract)) return known;
  protocol::RowUses uses = protocol::RowUsesIn(facts_, hello.contract);
  // A program that trains uses every table; one that only computes may use some of them.
  const std::set<std::string, std::less<>> unused = std::exchange(uses.unused, {});
  std::vector<protocol::RowUses> possible = {uses, {.whole = uses.whole, .unused = unused}};
  if (EndsWith(hello.contract, protocol::kCutLine)) {  // its end is not known: all alike
    possible.push_back({});
    possible.push_back({.whole = AllByRows(facts_), .unused = {}});
  }
  for (const protocol::RowUses& each : possible) {
    TrainerTerms terms(facts_, static_cast<int>(sender.trainer), each);
    const bool fits = each.unused.empty() ? terms.Accepts(sender.contract)
                                          : terms.contract().WithoutGrads().Hash() == sender.contract;
    if (fits) return terms;
  }
  return std::nullopt;
}

Status Admission::CheckContract(const protocol::Sender& sender, const protocol::HelloBody& hello) const {
  if (TermsFor(sender, hello).has_value()) return OkStatus();
  const TrainerTerms terms(facts_, static_cast<int>(sender.trainer),
                           {.whole = protocol::RowUsesIn(facts_, hello.contract).whole, .unused = {}});
  Status status = InvalidArgument("E-plan-mismatch", "plan: pserver ", address_, " and trainer ",
                                  sender.trainer, " were made by different plans");
  // If the trainer's contract was cut, any form of ours will do: all begin with the same params.
  const auto has = [&](std::string_view kind) {
    return StartsWith(hello.contract, kind) || hello.contract.find(StrCat("\n", kind)) != std::string::npos;
  };
  const protocol::Contract ours = has("grad ")    ? terms.contract()
                                  : has("table ") ? terms.contract().WithoutGrads()
                                                  : terms.contract().Startup();
  status.With(DifferenceOf(ours.ToText(), hello.contract));
  return std::move(status).With(
      "left: the pserver; right: the trainer. Transpile all roles from one program and configuration; a job "
      "with several programs needs all of them on each pserver");
}

// Compares what the contract does not show: the optimizer, the seed and the initial values.
Status Admission::CheckJobFacts(const protocol::Sender& sender, const protocol::HelloBody& hello) const {
  const std::optional<JobDifference> difference = FirstJobDifference(facts_.job_facts, hello.job_facts);
  if (!difference) return OkStatus();
  return InvalidArgument("E-job-mismatch", "job: pserver ", address_, " ", difference->here, "; trainer ",
                         sender.trainer, " ", difference->there)
      .With(
          "Transpile all roles from one program and configuration; a job with several programs needs all of "
          "them on each pserver");
}

void Admission::AddKey() {
  for (Trainer& trainer : trainers_) trainer.terms.AddKey();
}

void Admission::Admit(const protocol::Sender& sender, const protocol::HelloBody& hello) {
  Trainer& admitted = At(static_cast<int>(sender.trainer));
  admitted.incarnation = sender.incarnation;
  if (std::optional<TrainerTerms> terms = TermsFor(sender, hello)) admitted.terms = *std::move(terms);
}

std::vector<int> Admission::Awaited() const {
  std::vector<int> awaited;
  for (std::size_t t = 0; t < trainers_.size(); ++t) {
    if (!trainers_[t].incarnation && !trainers_[t].turned_away) awaited.push_back(static_cast<int>(t));
  }
  return awaited;
}

}  // namespace penstock::pserver
