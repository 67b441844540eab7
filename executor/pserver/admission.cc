#include "executor/pserver/admission.h"

#include <utility>

#include "framework/base/hash.h"

namespace penstock {

TrainerTerms::TrainerTerms(const ServerFacts& facts, int trainer)
    : contract_(ContractOf(facts, trainer)),
      startup_hash_(contract_.Startup().Hash()),
      hash_(contract_.Hash()),
      param_of_(contract_.params.size() + contract_.grads.size()) {
  for (std::size_t p = 0; p < facts.params.size(); ++p) {
    const ServedParam& served = facts.params[p];
    std::size_t pushed = p;
    if (!served.start) {
      const int grad = contract_.FindGrad(served.grads[static_cast<std::size_t>(trainer)]);
      pushed = contract_.params.size() + static_cast<std::size_t>(grad);
    }
    pushed_for_.push_back(static_cast<std::uint32_t>(pushed));
    param_of_[p] = param_of_[pushed] = static_cast<int>(p);
  }
}

std::optional<int> TrainerTerms::ParamOfGrad(std::uint32_t variable) const {
  if (variable < contract_.params.size() || variable >= param_of_.size()) return std::nullopt;
  return param_of_[variable];
}

std::optional<int> TrainerTerms::ParamOfPush(std::uint32_t variable, std::uint64_t contract) const {
  if (variable >= contract_.params.size()) {
    return contract == hash_ ? ParamOfGrad(variable) : std::nullopt;  // start-up programs know no gradients
  }
  return contract_.Starts(contract_.params[variable].name) ? std::optional(param_of_[variable])
                                                           : std::nullopt;
}

Admission::Admission(const ServerFacts& facts, std::string job)
    : address_(facts.address), job_(std::move(job)), job_hash_(Fnv1a64(job_)) {
  for (int t = 0; t < facts.trainers; ++t) trainers_.push_back({.terms = TrainerTerms(facts, t)});
}

Status Admission::Check(const Envelope& envelope, const HelloBody& hello) const {
  const std::uint32_t id = envelope.trainer;
  const std::size_t count = trainers_.size();
  if (envelope.job != job_hash_ || hello.job != job_) {
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
  PENSTOCK_RETURN_IF_ERROR(CheckContract(envelope, hello));
  const std::optional<std::uint64_t>& known = trainers_[id].incarnation;
  if (known && envelope.incarnation < *known) {
    return FailedPrecondition("E-rpc-fenced", "trainer ", id,
                              " was started again since; this one is the older");
  }
  if (known && envelope.incarnation > *known) {
    return FailedPrecondition("E-rpc-restart", "trainer ", id,
                              " was started a second time while the job ran");
  }
  return OkStatus();
}

Status Admission::CheckContract(const Envelope& envelope, const HelloBody& hello) const {
  const TrainerTerms& terms = trainers_[envelope.trainer].terms;
  if (terms.Accepts(envelope.contract)) return OkStatus();
  Status status = InvalidArgument("E-plan-mismatch", "plan: pserver ", address_, " and trainer ",
                                  envelope.trainer, " were made by different plans");
  const bool startup =
      !StartsWith(hello.contract, "grad ") && hello.contract.find("\ngrad ") == std::string::npos;
  const Contract ours = startup ? terms.contract().Startup() : terms.contract();
  status.With(StrCat("first difference, ", FirstDifference(ours.ToText(), hello.contract)));
  return std::move(status).With(
      "left: the pserver; right: the trainer. Transpile all roles from one program and configuration");
}

void Admission::Admit(int trainer, std::uint64_t incarnation) { At(trainer).incarnation = incarnation; }

std::vector<int> Admission::Awaited() const {
  std::vector<int> awaited;
  for (std::size_t t = 0; t < trainers_.size(); ++t) {
    if (!trainers_[t].incarnation && !trainers_[t].turned_away) awaited.push_back(static_cast<int>(t));
  }
  return awaited;
}

}  // namespace penstock
