// Carries out the state machine's decisions.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "executor/pserver/pserver.h"

namespace penstock::pserver {
namespace {

// The reply, with the trainer's own numbers for variables.
template <typename T>
protocol::Reply InTermsOf(const TrainerTerms& terms, const T& reply) {
  if constexpr (requires { reply.at; }) {
    const auto& [chunk, is_gradient] = reply.at;
    return reply.About({is_gradient ? terms.PushedFor(chunk.param) : terms.VariableOf(chunk.param),
                        static_cast<std::uint32_t>(chunk.chunk)});
  } else {
    return reply;
  }
}

template <typename Send>
void ForEachPart(const Tensor& value, std::size_t part_bytes, const Send& send) {
  for (std::size_t begin = 0; begin < value.bytes(); begin += part_bytes)
    send(Payload::Of(value, begin, std::min(part_bytes, value.bytes() - begin)));
}

}  // namespace

void Pserver::Execute(Actions actions) {
  for (Action& action : actions) {
    if (auto* merge = std::get_if<MergeAction>(&action)) {
      Start(std::move(*merge));
    } else if (const auto* run = std::get_if<RunAction>(&action)) {
      Start(*run);
    } else if (const auto* save = std::get_if<SaveAction>(&action)) {
      Start(*save);
    } else if (const auto* reply = std::get_if<ReplyAction>(&action)) {
      Reply(*reply);
    } else if (const auto* left = std::get_if<LeftAction>(&action)) {
      Tell(*left);
    } else if (const auto* measure = std::get_if<MeasureAction>(&action)) {
      Start(*measure);
    } else if (const auto* tell = std::get_if<TellSumsAction>(&action)) {
      Start(*tell);
    } else if (auto* combine = std::get_if<CombineAction>(&action)) {
      Start(std::move(*combine));
    } else if (const auto* cut = std::get_if<CutAction>(&action)) {
      Start(*cut);
    } else if (const auto* write = std::get_if<WriteCutAction>(&action)) {
      Start(*write);
    } else if (const auto* end = std::get_if<EndAction>(&action)) {
      OnEnd(end->why);
    }
  }
}

void Pserver::Done(const std::function<void(Actions&)>& decide) {
  const std::lock_guard lock(mutex_);
  Actions next;
  decide(next);
  Execute(std::move(next));
  ReportIfBack();
}

void Pserver::Start(MergeAction merge) {
  notes_.Taken(merge);
  std::size_t bytes = 0;
  for (const Payload& part : merge.parts) bytes += part.size();
  const std::size_t queue = store_->QueueOf(merge.param, merge.chunk);
  queues_->Push(queue, SizeOf(bytes), [this, bytes, merge = std::move(merge)]() mutable {
    const Nanoseconds begin = trace_.Now();
    const Status status = store_->Merge(merge);
    trace_.Merged(merge, bytes, begin);
    merge.parts.clear();  // frees the received memory
    Done([&](Actions& next) {
      if (status.ok()) {
        machine_->MergeDone(merge.param, merge.chunk, next);
      } else {
        machine_->Fail(status, next);
      }
    });
  });
}

// The update of a small key takes less time than waking a thread.
void Pserver::Start(const RunAction& run) {
  notes_.Started(run);
  const ChunkQueues::Size size =
      ServesKeys() ? SizeOf(store_->ChunkBytes(run.param, run.chunk)) : ChunkQueues::Size::kLarge;
  queues_->Push(store_->QueueOf(run.param, run.chunk), size, [this, run] {
    const Nanoseconds begin = trace_.Now();
    const Status status = store_->Run(run, blocks_);
    trace_.Ran(run, begin);
    notes_.Ran(run);
    if (run.param >= 0 && store_->HasRowPolicy(run.param)) NoteRows({run.param, run.chunk});
    Done([&](Actions& next) { machine_->BlockDone(run.param, run.chunk, status, next); });
  });
}

// After rows were updated or read, on the queue of the shard.
void Pserver::NoteRows(ChunkId at) {
  notes_.Rows(at, store_->RowCountsOf(at.param, at.chunk), store_->ColdCountsOf(at.param, at.chunk));
  if (store_->BeginSweep(at.param, at.chunk)) SweepRows(at);
}

// Between the table's other jobs. Nothing waits for it.
void Pserver::SweepRows(ChunkId at) {
  queues_->Push(store_->QueueOf(at.param, at.chunk), ChunkQueues::Size::kLarge, [this, at] {
    const bool more = store_->Sweep(at.param, at.chunk);
    notes_.Rows(at, store_->RowCountsOf(at.param, at.chunk), store_->ColdCountsOf(at.param, at.chunk));
    if (more) SweepRows(at);
  });
}

void Pserver::Start(const MeasureAction& measure) {
  queues_->Push(store_->QueueOf(measure.param, measure.chunk), ChunkQueues::Size::kLarge, [this, measure] {
    const Status status = store_->Measure(measure, blocks_);
    Done([&](Actions& next) { machine_->MeasureDone(measure.param, measure.chunk, status, next); });
  });
}

// Runs on the queue of the learning-rate block, before the Combine that ends the step.
void Pserver::Start(const TellSumsAction& tell) {
  queues_->Push(store_->QueueOf(-1, 0), ChunkQueues::Size::kSmall, [this, tell] {
    const Payload sums = store_->OwnSums();
    Done([&](Actions&) { others_.Tell(tell.step, sums); });
  });
}

void Pserver::Start(CombineAction combine) {
  queues_->Push(store_->QueueOf(-1, 0), ChunkQueues::Size::kLarge, [this, combine = std::move(combine)] {
    const Status status = store_->Combine(combine, blocks_);
    Done([&](Actions& next) { machine_->CombineDone(status, next); });
  });
}

void Pserver::Start(const SaveAction& action) {
  if (!store_->IsTable(action.save.param)) return CopyState(action.save);
  const std::size_t shards = store_->chunk_count(action.save.param);
  const auto parts = std::make_shared<TableParts>(shards);
  for (std::size_t shard = 0; shard < shards; ++shard)
    CopyForSave(action.save, static_cast<int>(shard), parts);
}

// Each shard is copied between its other jobs; the table is written while it changes.
void Pserver::CopyForSave(const SaveEvent& save, int shard, const std::shared_ptr<TableParts>& parts) {
  queues_->Push(store_->QueueOf(save.param, shard), ChunkQueues::Size::kLarge, [this, save, shard, parts] {
    std::optional<TableCopy> copy = store_->CopyForSave(save.param, shard);
    if (!copy) return CopyForSave(save, shard, parts);
    parts->of[static_cast<std::size_t>(shard)] = *std::move(copy);
    if (--parts->left == 0) options_.run([this, save, parts] { WriteSaved(save, *parts); });
  });
}

void Pserver::WriteSaved(const SaveEvent& save, TableParts& parts) {
  const Nanoseconds begin = trace_.Now();
  Status status = store_->SaveTable(save, JoinShards(std::move(parts.of)), blocks_, *options_.disk);
  trace_.Saved(save, begin);
  Saved(save, std::move(status));
}

// Each chunk is copied between its other jobs; the last copy continues with WriteState.
void Pserver::CopyState(const SaveEvent& save) {
  const std::shared_ptr<StateCopy> copy = store_->BeginStateCopy(save.param);
  const auto chunks = static_cast<int>(store_->chunk_count(save.param));
  for (int chunk = 0; chunk < chunks; ++chunk) {
    queues_->Push(store_->QueueOf(save.param, chunk), ChunkQueues::Size::kLarge, [this, save, chunk, copy] {
      store_->CopyState(save.param, chunk, *copy);
      if (--copy->chunks_left == 0) WriteState(save, copy);
    });
  }
}

void Pserver::WriteState(const SaveEvent& save, const std::shared_ptr<StateCopy>& copy) {
  queues_->Push(store_->QueueOf(-1, 0), ChunkQueues::Size::kLarge, [this, save, copy] {
    store_->CopyRates(*copy);
    options_.run([this, save, copy] {
      const Nanoseconds begin = trace_.Now();
      Status status = ChunkStore::WriteState(*options_.disk, save.file, copy->tensors);
      trace_.Saved(save, begin);
      Saved(save, std::move(status));
    });
  });
}

void Pserver::Saved(const SaveEvent& save, Status status) {
  Done([&](Actions& next) {
    if (status.ok()) status = saves_.Wrote(save.file);
    if (status.ok() && store_->IsTable(save.param) && store_->KeepsState(save.param))
      status = saves_.Wrote(ChunkStore::StateFileOf(save.file));
    machine_->SaveDone(save, status, next);
  });
  queues_->RunSmall();
}

// A copy for a checkpoint is complete.
void Pserver::Copied(const std::function<void()>& put) {
  Done([&](Actions& next) {
    put();
    machine_->CutCopied(next);
  });
  queues_->RunSmall();
}

// A queue is serial, so a copy has the chunk as it is now; it is made later (CopyNextCut), or by the chunk's
// next update.
void Pserver::Start(const CutAction& cut) {
  if (ServesKeys()) return StartKeyCut(cut);
  if (!cut_began_) cut_began_ = options_.clock->Now();
  using Size = ChunkQueues::Size;
  const std::size_t queue = store_->QueueOf(cut.param, cut.chunk);
  if (cut.param < 0) {
    queues_->Push(queue, Size::kLarge, [this] {
      Copied([this, shared = store_->CopyShared()] { checkpoints_->PutShared(shared); });
    });
  } else if (store_->IsTable(cut.param)) {
    queues_->Push(queue, Size::kLarge, [this, cut, changes = checkpoints_->TakesChanges()] {
      store_->BeginCut(cut.param, cut.chunk, changes);
      CopyForCheckpoint(cut);
    });
  } else {
    queues_->Push(queue, Size::kSmall, [this, cut, copy = checkpoints_->CopyFor(cut.param, *store_)] {
      store_->BeginCut(cut.param, cut.chunk, copy);
    });
    cuts_.push_back({cut.param, cut.chunk});
    if (!std::exchange(copies_cuts_, true)) CopyNextCut();
  }
}

// A portion at a time, between the shard's other jobs, when a core has nothing else to do, and no faster than
// portions are written.
void Pserver::CopyForCheckpoint(const CutAction& cut) {
  const auto copy = [this, cut] {
    if (Ended().has_value()) return;
    CutPortion portion = store_->CopyForCheckpoint(cut.param, cut.chunk);
    if (!portion.is_last && portion.rows.empty()) return CopyForCheckpoint(cut);
    PortionQueue::Portion put{.bytes = portion.rows.bytes(), .write = {}, .next = {}};
    if (!portion.is_last) put.next = [this, cut] { CopyForCheckpoint(cut); };
    put.write = [this, cut, portion = std::move(portion)]() mutable {
      checkpoints_->WriteRows(cut.step, cut.param, std::move(portion.rows));
      if (portion.is_last) options_.run([this] { Copied([] {}); });
    };
    portions_.Put(std::move(put));
  };
  options_.aside([this, queue = store_->QueueOf(cut.param, cut.chunk), copy] {
    queues_->Push(queue, ChunkQueues::Size::kLarge, copy);
  });
}

// One after the other, each when a core has nothing else to do: trainers wait for the values of the same
// step. The copies that updates have made meanwhile are counted here too.
void Pserver::CopyNextCut() {
  options_.aside([this] {
    const std::lock_guard lock(mutex_);
    copies_cuts_ = !cuts_.empty() && !ended_.has_value();
    if (!copies_cuts_) return;
    const ChunkId at = cuts_.front();
    cuts_.pop_front();
    queues_->Push(store_->QueueOf(at.param, at.chunk), ChunkQueues::Size::kLarge, [this, at] {
      store_->CopyCut(at.param, at.chunk);
      Copied([] {});
      CopyNextCut();
    });
  });
}

void Pserver::Start(const WriteCutAction& write) {
  if (ServesKeys()) return WriteKeyCut(write);
  options_.aside([this, write, values = checkpoints_->Take(),
                  began = *std::exchange(cut_began_, std::nullopt)]() mutable {
    const Status status = checkpoints_->Write(write, values);
    values.clear();  // before the next copies
    const Nanoseconds now = options_.clock->Now();
    cut_clock_.Took(now, now - began);
    checkpoints_->TookMilliseconds(
        static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(now - began).count()));
    if (status.ok()) {
      const std::chrono::duration<double> took = now - began;
      options_.report(StrCat("pserver ", facts_.address, ": its part of ", checkpoints_->FolderOf(write.step),
                             " is written after ", std::round(took.count() * 100) / 100, " s"));
    }
    options_.run([this, status] {
      Done([&](Actions& next) { machine_->CutWritten(status, next); });
      queues_->RunSmall();
    });
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
      reply.asked.changed ? ReplyChanged(action.trainer, reply) : ReplyRows(action.trainer, reply);
    } else if constexpr (std::is_same_v<T, CreditReply>) {
      SendLater(action.trainer, InTermsOf(admission_.terms(action.trainer), reply));
    } else {
      SendTo(action.trainer, InTermsOf(admission_.terms(action.trainer), reply));
    }
  };
  std::visit(answer, action.reply);
}

// The receiver and the sender fields are fixed now; the value is the chunk's when the job runs.
void Pserver::ReplyChunk(int trainer, const PulledReply& reply) {
  if (reply.newest) notes_.Answered(trainer, reply.at);
  const auto [param, chunk] = reply.at;
  const protocol::ChunkRef at{admission_.terms(trainer).VariableOf(param), static_cast<std::uint32_t>(chunk)};
  queues_->Push(store_->QueueOf(param, chunk), SizeOf(store_->ChunkBytes(param, chunk)),
                [this, trainer, reply, at, to = At(trainer).caller, sender = SenderOf(trainer)] {
                  if (reply.newest) return ReplyNewest(trainer, reply, at, to, sender);
                  const auto published = store_->Publish(reply.at.param, reply.at.chunk, reply.version,
                                                         trainer, to != nullptr && to->ReadsChecksums());
                  if (to == nullptr) return;
                  if (published == nullptr) {  // a retry, and every trainer has had its answer
                    to->Reply(sender, protocol::Gone{at, reply.version, reply.welcome_below});
                    return;
                  }
                  const std::size_t bytes = store_->ChunkBytes(reply.at.param, reply.at.chunk);
                  notes_.Published(trainer, reply.at, reply.version, bytes);
                  trace_.Replies(trainer, reply.at, reply.version, bytes);
                  for (std::uint32_t part = 0; part < published->part_count(); ++part) {
                    to->Reply(sender, protocol::Pulled{.at = at,
                                                       .version = reply.version,
                                                       .part = part,
                                                       .welcome_below = reply.welcome_below,
                                                       .bytes = published->part(part)});
                  }
                });
}

// On the chunk's queue.
void Pserver::ReplyNewest(int trainer, const PulledReply& reply, const protocol::ChunkRef& at,
                          const std::shared_ptr<Caller>& to, const protocol::Sender& sender) {
  const auto [value, updates] = store_->PublishNewest(reply.at.param, reply.at.chunk, trainer, reply.version,
                                                      to != nullptr && to->ReadsChecksums());
  if (to == nullptr) return;
  const std::size_t bytes = store_->ChunkBytes(reply.at.param, reply.at.chunk);
  notes_.Published(trainer, reply.at, reply.version, bytes);
  trace_.Replies(trainer, reply.at, reply.version, bytes);
  for (std::uint32_t part = 0; part < value->part_count(); ++part) {
    to->Reply(sender, protocol::PulledNewest{.at = at,
                                             .version = reply.version,
                                             .updates = updates,
                                             .part = part,
                                             .bytes = value->part(part)});
  }
}

// The name of a request for rows in the trainer's contract; empty if it is not traced.
std::string Pserver::TracedName(int trainer, const RowsEvent& asked) const {
  return !trace_.on()   ? std::string()
         : ServesKeys() ? machine_->name(asked.param)
                        : admission_.terms(trainer).contract().Variable(asked.variable).name;
}

void Pserver::ReplyRows(int trainer, const RowsReply& reply) {
  const RowsEvent& asked = reply.asked;
  const ChunkId at{asked.param, asked.chunk};
  if (reply.newest) notes_.Answered(trainer, at);
  queues_->Push(store_->QueueOf(asked.param, asked.chunk), SizeOf(store_->GatheredBytes(asked)),
                [this, at, trainer, asked, newest = reply.newest, to = At(trainer).caller,
                 sender = SenderOf(trainer), name = TracedName(trainer, asked)] {
                  if (to == nullptr) return;
                  if (const Status fits = store_->CheckShard(asked); !fits.ok())
                    return Done([&](Actions& next) { machine_->Fail(fits, next); });
                  notes_.Published(trainer, at, asked.version, store_->GatheredBytes(asked));
                  trace_.RepliesRows(trainer, asked, name, store_->GatheredBytes(asked));
                  protocol::Rows part{.variable = asked.variable,
                                      .request = static_cast<std::uint32_t>(asked.request),
                                      .version = asked.version,
                                      .bytes = {}};
                  if (newest)
                    part.updates = static_cast<std::uint32_t>(store_->VersionOf(at.param, at.chunk));
                  Result<Tensor> rows = store_->Gather(asked);
                  if (!rows.ok()) return Done([&](Actions& next) { machine_->Fail(rows.status(), next); });
                  if (store_->HasRowPolicy(at.param)) NoteRows(at);
                  ForEachPart(*std::move(rows), options_.part_bytes, [&](Payload bytes) {
                    part.bytes = std::move(bytes);
                    to->Reply(sender, part);
                    ++part.part;
                  });
                });
}

void Pserver::ReplyChanged(int trainer, const RowsReply& reply) {
  const RowsEvent& asked = reply.asked;
  notes_.Answered(trainer, {asked.param, 0});
  queues_->Push(store_->QueueOf(asked.param, 0), SizeOf(store_->ChunkBytes(asked.param, 0)),
                [this, trainer, asked, to = At(trainer).caller, sender = SenderOf(trainer),
                 name = TracedName(trainer, asked)] {
                  if (to == nullptr) return;
                  const ChunkStore::Changed changed = store_->GatherChanged(asked);
                  notes_.Published(trainer, {asked.param, 0}, asked.version, changed.bytes.bytes());
                  trace_.RepliesRows(trainer, asked, name, changed.bytes.bytes());
                  protocol::ChangedRows part{
                      .variable = asked.variable,
                      .version = asked.version,
                      .updates = static_cast<std::uint32_t>(store_->VersionOf(asked.param, 0)),
                      .rows = changed.rows,
                      .bytes = {}};
                  if (changed.rows == 0) return to->Reply(sender, part);
                  ForEachPart(changed.bytes, options_.part_bytes, [&](Payload bytes) {
                    part.bytes = std::move(bytes);
                    to->Reply(sender, part);
                    ++part.part;
                  });
                });
}

protocol::Sender Pserver::SenderOf(int trainer) const {
  return {.job = admission_.job_hash(),
          .contract = admission_.terms(trainer).hash(),
          .incarnation = admission_.incarnation(trainer),
          .trainer = static_cast<std::uint32_t>(trainer),
          .durable_version = machine_->durable_version(trainer)};
}

// Sends once the lock is free. For credits: one message of a trainer may give credit to all others. They only
// grow, so their order among other replies does not matter.
void Pserver::SendLater(int trainer, protocol::Reply reply) {
  const std::shared_ptr<Caller>& to = At(trainer).caller;
  if (to == nullptr) return;
  notes_.Sent(trainer, 0);
  queues_->Push(kQueueOfCredits, ChunkQueues::Size::kSmall,
                [to, sender = SenderOf(trainer), reply = std::move(reply)] { to->Reply(sender, reply); });
}

void Pserver::SendTo(int trainer, protocol::Reply reply) {
  const std::shared_ptr<Caller>& to = At(trainer).caller;
  if (to == nullptr) return;
  notes_.Sent(trainer, 0);
  to->Reply(SenderOf(trainer), std::move(reply));
}

}  // namespace penstock::pserver
