// Carries out what the state machine decides.
#include <algorithm>

#include "executor/pserver/pserver.h"

namespace penstock::pserver {
namespace {

// A reply that has no bytes of the store, as the trainer with these terms reads it.

protocol::Reply Typed(const TrainerTerms& terms, const PushedReply& reply) {
  return protocol::Pushed{
      .at = {reply.initial ? terms.VariableOf(reply.at.param) : terms.PushedFor(reply.at.param),
             static_cast<std::uint32_t>(reply.at.chunk)},
      .step = reply.step,
      .part = reply.part,
      .welcome_below = reply.welcome_below};
}
protocol::Reply Typed(const TrainerTerms&, const StepEndedReply& reply) {
  return protocol::StepEnded{reply.step};
}
protocol::Reply Typed(const TrainerTerms& terms, const GoneReply& reply) {
  return protocol::Gone{.at = {terms.VariableOf(reply.at.param), static_cast<std::uint32_t>(reply.at.chunk)},
                        .version = reply.version,
                        .welcome_below = reply.welcome_below};
}
protocol::Reply Typed(const TrainerTerms&, const RowsGoneReply& reply) {
  return protocol::RowsGone{.variable = reply.asked.variable,
                            .request = static_cast<std::uint32_t>(reply.asked.request),
                            .version = reply.asked.version};
}
protocol::Reply Typed(const TrainerTerms& terms, const CreditReply& reply) {
  return protocol::Credit{.at = {terms.PushedFor(reply.at.param), static_cast<std::uint32_t>(reply.at.chunk)},
                          .welcome_below = reply.welcome_below};
}
protocol::Reply Typed(const TrainerTerms&, const SavedReply& reply) {
  return protocol::Saved{reply.request, reply.status};
}
protocol::Reply Typed(const TrainerTerms&, const CompletedReply&) { return protocol::Completed{}; }
protocol::Reply Typed(const TrainerTerms&, const FailureReply& reply) { return protocol::Failure{reply.why}; }

template <typename Send>
void ForEachPart(const Tensor& value, std::size_t part_bytes, const Send& send) {
  for (std::size_t begin = 0; begin < value.bytes(); begin += part_bytes)
    send(Payload::Of(value, begin, std::min(part_bytes, value.bytes() - begin)));
}

}  // namespace

void Pserver::Execute(Actions actions) {
  for (std::size_t i = 0; i < actions.size(); ++i) {  // grows on the way
    const Action action = std::move(actions[i]);
    if (const auto* merge = std::get_if<MergeAction>(&action)) {
      Start(*merge, actions);
    } else if (const auto* run = std::get_if<RunAction>(&action)) {
      Start(*run);
    } else if (const auto* save = std::get_if<SaveAction>(&action)) {
      Start(*save);
    } else if (const auto* reply = std::get_if<ReplyAction>(&action)) {
      Reply(*reply);
    } else if (const auto* left = std::get_if<LeftAction>(&action)) {
      Tell(*left);
    } else if (const auto* end = std::get_if<EndAction>(&action)) {
      OnEnd(end->why);
    }
  }
}

void Pserver::Start(const MergeAction& merge, Actions& actions) {
  std::size_t bytes = 0;
  for (const Payload& part : merge.parts) bytes += part.size();
  const auto done = [this](const MergeAction& merged, const Status& status, Actions& next) {
    if (status.ok()) {
      machine_->MergeDone(merged.param, merged.chunk, next);
    } else {
      machine_->Fail(status, next);
    }
  };
  if (bytes <= options_.inline_bytes) {
    done(merge, store_->Merge(merge), actions);
    return;
  }
  options_.run([this, merge, done] {
    const Status status = store_->Merge(merge);
    const std::lock_guard lock(mutex_);
    Actions next;
    done(merge, status, next);
    Execute(std::move(next));
  });
}

void Pserver::Start(const RunAction& run) {
  options_.run([this, run] {
    const Status status = store_->Run(run, blocks_);
    const std::lock_guard lock(mutex_);
    Actions next;
    machine_->BlockDone(run.param, run.chunk, status, next);
    Execute(std::move(next));
  });
}

// What is written is a copy, so updates go on meanwhile.
void Pserver::Start(const SaveAction& action) {
  store_->PublishTable(action.save.param);
  options_.run([this, save = action.save] {
    Status status = store_->SaveTable(save, blocks_);
    const std::lock_guard lock(mutex_);
    if (status.ok()) status = checkpoints_.Wrote(save.file);
    Actions next;
    machine_->SaveDone(save, status, next);
    Execute(std::move(next));
  });
}

void Pserver::Tell(const LeftAction& left) {
  options_.report(StrCat("trainer ", left.trainer, " completed at step ", left.steps, "; pserver ",
                         facts_.address, " counts its gradients as zeros from then on"));
  for (int t = 0; t < facts_.trainers; ++t) {
    if (machine_->completed(t) || !admission_.Admitted(t)) continue;
    SendTo(t, protocol::Left{.trainer = static_cast<std::uint64_t>(left.trainer), .steps = left.steps});
  }
}

void Pserver::Reply(const ReplyAction& action) {
  const auto answer = [&](const auto& reply) {
    using T = std::decay_t<decltype(reply)>;
    if constexpr (std::is_same_v<T, PulledReply>) {
      ReplyChunk(action.trainer, reply);
    } else if constexpr (std::is_same_v<T, RowsReply>) {
      ReplyRows(action.trainer, reply.asked);
    } else {
      SendTo(action.trainer, Typed(admission_.terms(action.trainer), reply));
    }
  };
  std::visit(answer, action.reply);
}

void Pserver::ReplyChunk(int trainer, const PulledReply& reply) {
  const Tensor& value = store_->Snapshot(reply.at.param, reply.at.chunk, reply.version);
  protocol::Pulled part{.at = {admission_.terms(trainer).VariableOf(reply.at.param),
                               static_cast<std::uint32_t>(reply.at.chunk)},
                        .version = reply.version,
                        .welcome_below = reply.welcome_below,
                        .bytes = {}};
  ForEachPart(value, options_.part_bytes, [&](Payload bytes) {
    part.bytes = std::move(bytes);
    SendTo(trainer, part);
    ++part.part;
  });
}

void Pserver::ReplyRows(int trainer, const RowsEvent& asked) {
  protocol::Rows part{.variable = asked.variable,
                      .request = static_cast<std::uint32_t>(asked.request),
                      .version = asked.version,
                      .bytes = {}};
  ForEachPart(store_->Gather(asked), options_.part_bytes, [&](Payload bytes) {
    part.bytes = std::move(bytes);
    SendTo(trainer, part);
    ++part.part;
  });
}

protocol::Sender Pserver::SenderOf(int trainer) const {
  return {.job = admission_.job_hash(),
          .contract = admission_.terms(trainer).hash(),
          .incarnation = admission_.incarnation(trainer),
          .trainer = static_cast<std::uint32_t>(trainer),
          .durable_version = machine_->durable_version()};
}

void Pserver::SendTo(int trainer, protocol::Reply reply) {
  const std::shared_ptr<Caller>& to = At(trainer).caller;
  if (to != nullptr) to->Reply(SenderOf(trainer), std::move(reply));
}

}  // namespace penstock::pserver
