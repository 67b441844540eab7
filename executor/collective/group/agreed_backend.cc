#include "executor/collective/group/agreed_backend.h"

#include <algorithm>
#include <vector>

#include "framework/base/check.h"

namespace penstock::collective {

Status Agreement::Reach() {
  PENSTOCK_ASSIGN_OR_RETURN(const std::span<const Signature> all, backend_.ExchangeSignatures(what_));
  reached_ = true;
  const auto same = [this](const Signature& other) { return SameOperation(what_, other); };
  if (std::all_of(all.begin(), all.end(), same)) return OkStatus();
  // Copied, because other processes may still write to the memory of `all`.
  const std::vector<Signature> known(all.begin(), all.end());
  return backend_.FailWith(MismatchError(known, backend_.names()), FoundBy::kAllRanks);
}

Status Agreement::Accept(const Signature& theirs, const Signature& wanted) {
  if (SameOperation(theirs, wanted)) return OkStatus();
  const RankNames& names = backend_.names();
  return backend_.FailWith(InvalidArgument("E-collective-mismatch", "rank ", names(wanted.root), " sends ",
                                           Describe(theirs, names), ", rank ", names(wanted.to), " receives ",
                                           Describe(wanted, names)),
                           FoundBy::kThisRank);
}

Status AgreedBackend::Run(const Operation& op) {
  PENSTOCK_RETURN_IF_ERROR(backend_->Failure());
  Agreement agreement(*backend_, op);
  Status status = backend_->Run(op, agreement);
  PENSTOCK_CHECK(!status.ok() || agreement.reached() || op.kind == OperationKind::kMessage,
                 "a backend ends a collective operation only after the agreement");
  return status;
}

}  // namespace penstock::collective
