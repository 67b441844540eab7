// How a FluidService processes the replies of its handler, and sends answers and events.
#include <utility>

#include "executor/pserver/service/fluid_service.h"

namespace penstock::pserver {

using protocol::VariableMessage;
using transport::UnaryReply;

// --- Replies of the handler; called with the handler's lock held.

void FluidService::OnReply(int trainer, const protocol::Sender& to, protocol::Reply reply) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto* pulled = std::get_if<protocol::Pulled>(&reply)) {
      TakeChunk(trainer, to, pulled->at, pulled->version, pulled->bytes);
    } else if (const auto* newest = std::get_if<protocol::PulledNewest>(&reply)) {
      TakeChunk(trainer, to, newest->at, newest->version, newest->bytes);
    } else if (const auto* pushed = std::get_if<protocol::Pushed>(&reply)) {
      TakeCredit(trainer, to, pushed->at, pushed->welcome_below);
    } else if (const auto* credit = std::get_if<protocol::Credit>(&reply)) {
      TakeCredit(trainer, to, credit->at, credit->welcome_below);
    } else if (const auto* answer = std::get_if<protocol::Answer>(&reply)) {
      TakeCredit(trainer, to, answer->at, answer->welcome_below);
    } else if (const auto* gone = std::get_if<protocol::Gone>(&reply)) {
      FailFetch(trainer, to, *gone);
    } else if (const auto* rows = std::get_if<protocol::Rows>(&reply)) {
      On(trainer, *rows);
    } else if (const auto* rows_gone = std::get_if<protocol::RowsGone>(&reply)) {
      if (auto lookup = lookups_.extract({trainer, rows_gone->request}))
        Fail(std::move(lookup.mapped().call), Overwritten("the table", rows_gone->version));
    } else if (const auto* saved = std::get_if<protocol::Saved>(&reply)) {
      if (auto save = saves_.extract(saved->request)) {
        if (saved->status.ok()) {
          Answer(std::move(save.mapped()), UnaryReply(Payload()));
        } else {
          Fail(std::move(save.mapped()), saved->status);
        }
      }
    } else if (std::holds_alternative<protocol::Completed>(reply)) {
      Leave(trainer);
    } else if (const auto* failure = std::get_if<protocol::Failure>(&reply)) {
      FailAll(failure->why);
    }
  }
  FlushLater();
}

void FluidService::TakeChunk(int trainer, const protocol::Sender& to, const protocol::ChunkRef& at,
                             std::uint64_t version, const Payload& bytes) {
  const auto found = fetches_.find(KeyOf(trainer, to, at.variable, version));
  if (found == fetches_.end()) return;
  Fetch& fetch = found->second;
  fetch.chunks[at.chunk] = bytes;
  if (--fetch.missing > 0) return;
  Payload values;
  for (const Payload& chunk : fetch.chunks) values.Append(chunk);
  const protocol::ContractPiece& piece =
      served_.role.params[static_cast<std::size_t>(std::get<1>(found->first))].param;
  for (Call& call : fetch.calls) AnswerTensor(std::move(call), piece.dtype, piece.shape, values);
  fetches_.erase(found);
}

void FluidService::FailFetch(int trainer, const protocol::Sender& to, const protocol::Gone& gone) {
  auto fetch = fetches_.extract(KeyOf(trainer, to, gone.at.variable, gone.version));
  if (!fetch) return;
  for (Call& call : fetch.mapped().calls) {
    const std::string name = call.message.varname;
    Fail(std::move(call), Overwritten(name, gone.version));
  }
}

void FluidService::On(int trainer, const protocol::Rows& rows) {
  auto found = lookups_.extract({trainer, rows.request});
  if (!found) return;
  Lookup& lookup = found.mapped();
  const protocol::ContractPiece& piece = served_.role.params[static_cast<std::size_t>(lookup.param)].param;
  AnswerTensor(std::move(lookup.call), piece.dtype, piece.shape.WithRows(lookup.count), rows.bytes);
}

// The reply's contract tells which of the trainer's numberings `variable` belongs to.
FluidService::FetchKey FluidService::KeyOf(int trainer, const protocol::Sender& to, std::uint32_t variable,
                                           std::uint64_t version) const {
  return {trainer, Named(trainer, to).params_of_variables()[variable], version};
}

Status FluidService::Overwritten(const std::string& name, std::uint64_t version) const {
  return FailedPrecondition("E-wire-version", "version ", version, " of ", name, " on pserver ",
                            served_.role.address, " is overwritten by a later one");
}

// Tells the handler, once, that the trainer has left: it has received its last reply.
void FluidService::Leave(int trainer) {
  if (At(trainer).caller == nullptr || std::exchange(At(trainer).left, true)) return;
  events_.emplace_back([this, caller = At(trainer).caller] { handler_.OnClosed(caller, OkStatus()); });
}

void FluidService::OnCallerClosed(int trainer) {
  {
    const std::lock_guard lock(mutex_);
    Leave(trainer);
  }
  FlushLater();
}

void FluidService::FailAll(const Status& why) {
  if (!failed_) failed_ = why;
  for (Call& call : std::exchange(held_, {})) Fail(std::move(call), why);
  for (Trainer& trainer : trainers_) {
    for (auto& [param, gradients] : std::exchange(trainer.waiting, {})) {
      for (Waiting& waiting : gradients) Fail(std::move(waiting.call), why);
    }
  }
  for (auto& [key, fetch] : std::exchange(fetches_, {})) {
    for (Call& call : fetch.calls) Fail(std::move(call), why);
  }
  for (auto& [key, lookup] : std::exchange(lookups_, {})) Fail(std::move(lookup.call), why);
  for (auto& [key, call] : std::exchange(saves_, {})) Fail(std::move(call), why);
}

// --- Answers and events are sent without the lock.

void FluidService::Answer(Call call, Result<UnaryReply> reply) {
  answers_.emplace_back(std::move(call.done), std::move(reply));
}

// Answers after the handler has processed all earlier events. If these have ended the job, the answer is the
// job's error instead of `why`.
void FluidService::Refuse(Call call, const Status& why) {
  Greet(LikelyTrainerOf(call));
  events_.emplace_back([this, refused = std::move(call), why]() mutable {
    const std::lock_guard lock(mutex_);
    Fail(std::move(refused), failed_.value_or(why));
  });
}

// Answers INTERNAL: Fluid's trainers retry on UNAVAILABLE, and end with the text of any other error. A
// trainer that is told why the job has failed counts as left.
void FluidService::Fail(Call call, const Status& why) {
  if (failed_) Leave(LikelyTrainerOf(call));
  Answer(std::move(call), Status(StatusCode::kInternal, why.id(), why.message()));
}

void FluidService::AnswerTensor(Call call, DType dtype, const Shape& shape, Payload values) {
  VariableMessage reply{.varname = call.message.out_varname};
  protocol::FluidTensor& tensor = reply.tensor.emplace();
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.values = std::move(values);
  Result<Payload> bytes = protocol::WriteVariableMessage(reply);
  if (!bytes.ok()) return Fail(std::move(call), bytes.status());
  Answer(std::move(call), UnaryReply(*std::move(bytes)));
}

// A thread that is passing on an event looks for more afterwards, so no Flush is posted then.
void FluidService::FlushLater() {
  {
    const std::lock_guard lock(mutex_);
    if (handing_on_ || (answers_.empty() && events_.empty())) return;
  }
  served_.run([service = weak_from_this()] {
    if (const auto here = service.lock()) here->Flush();
  });
}

void FluidService::Flush() {
  std::unique_lock lock(mutex_);
  while (!answers_.empty() || (!events_.empty() && !handing_on_)) {
    if (!answers_.empty()) {
      auto answers = std::exchange(answers_, {});
      lock.unlock();
      for (auto& [done, reply] : answers) done(std::move(reply));
      lock.lock();
      continue;
    }
    handing_on_ = true;
    const std::function<void()> event = std::move(events_.front());
    events_.pop_front();
    lock.unlock();
    event();
    lock.lock();
    handing_on_ = false;
  }
}

}  // namespace penstock::pserver
