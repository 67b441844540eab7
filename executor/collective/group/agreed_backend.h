// Runs the operations of a backend, and proves for each one that all ranks have started the same. The ranks
// exchange the signatures of what they start; each compares all of them, so all give the same error before
// any result changes. Of a message only the receiver compares, and tells the sender.
//
//   AgreedBackend agreed(std::make_unique<ArenaBackend>(...));
//   Status status = agreed.Run(op);
//
// The backend decides when the signatures travel, because that costs nothing where something is sent anyway:
//
//   Status SomeBackend::Run(const Operation& op, Agreement& agreement) {
//     ...                                             // send data ahead, into memory of this backend
//     PENSTOCK_RETURN_IF_ERROR(agreement.Reach());    // calls ExchangeSignatures
//     ...                                             // write results
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "executor/collective/group/backend.h"

namespace penstock::collective {

// The agreement on one operation.
class Agreement {
 public:
  Agreement(Backend& backend, const Operation& op) : backend_(backend), what_(SignatureOf(op)) {}
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  // The operation, as this rank started it.
  const Signature& what() const { return what_; }
  bool reached() const { return reached_; }

  // Waits until all ranks have started an operation, and compares them. kInvalidArgument
  // E-collective-mismatch; the errors of ExchangeSignatures.
  Status Reach();
  // Compares the message that has come, `theirs`, with the one that this rank receives.
  Status Accept(const Signature& theirs, const Signature& wanted);

 private:
  Backend& backend_;
  const Signature what_;
  bool reached_ = false;
};

class AgreedBackend {
 public:
  explicit AgreedBackend(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

  int rank() const { return backend_->rank(); }
  int size() const { return backend_->size(); }
  std::string_view name() const { return backend_->name(); }
  bool adds_in_rank_order() const { return backend_->adds_in_rank_order(); }
  Status Accept(const Operation& op) const { return backend_->Accept(op); }
  void Abort(const Status& why) { backend_->Abort(why); }

  // As Backend::Run.
  Status Run(const Operation& op);

 private:
  const std::unique_ptr<Backend> backend_;
};

}  // namespace penstock::collective
