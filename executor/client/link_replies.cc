// Handles a server's replies. A reply that matches no message in flight is a duplicate and is ignored.
#include <algorithm>
#include <utility>

#include "executor/client/link.h"
#include "executor/protocol/any_step.h"
#include "executor/protocol/failure.h"
#include "executor/protocol/message_text.h"
#include "executor/protocol/native_codec.h"
#include "executor/protocol/payload_bytes.h"
#include "executor/protocol/row_shards.h"
#include "framework/base/log.h"
#include "framework/base/strings.h"

namespace penstock::client {
namespace {

// Whether a failure that a server sends before its welcome concerns this trainer itself.
bool IsRefusal(const Status& why) {
  return StartsWith(why.id(), "E-plan-") || StartsWith(why.id(), "E-rpc-") ||
         StartsWith(why.id(), "E-contract-");
}

}  // namespace

void Link::OnMessage(const std::shared_ptr<Connection>& from, Message message) {
  if (protocol::IsBatch(message)) {
    const auto batch = protocol::DecodeReplies(message, protocol::ChecksumOver(*from));
    return batch.ok() ? OnReplies(from, batch->sender, batch->messages) : OnUnreadable(from, batch.status());
  }
  const auto one = protocol::DecodeReply(message, protocol::ChecksumOver(*from));
  return one.ok() ? OnReplies(from, one->sender, {&one->message, 1}) : OnUnreadable(from, one.status());
}

void Link::OnUnreadable(const std::shared_ptr<Connection>& from, const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (from != connection_ || ended_) return;
  }
  environment_.host.OnLinkFailure(Status(why).In(StrCat("pserver ", address_)), false);
}

// What the replies of a batch allow to be sent travels together, too.
void Link::OnReplies(const std::shared_ptr<Connection>& from, const protocol::Sender& sender,
                     std::span<const protocol::Reply> replies) {
  Status failure;
  bool by_peer = false, changed = false;
  const protocol::Left* left = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (from != connection_ || ended_) return;
    heard_ = environment_.options.clock->Now();
    const bool for_us = sender.trainer == sender_.trainer && sender.incarnation == sender_.incarnation;
    const bool holds = replies.size() > 1;
    if (holds) ++held_;
    for (const protocol::Reply& reply : replies) {
      const bool is_failure = std::holds_alternative<protocol::Failure>(reply);
      if (!for_us && !is_failure) continue;
      notes_.Received(protocol::PayloadBytes(reply));
      if (protocol::ShowsMessage(reply))
        Log(LogSeverity::kInfo, StrCat("from pserver ", address_, ": ", protocol::TextOf(reply)));
      TakeDurable(sender.durable_version);
      failure = Take(reply, sender.contract);
      by_peer = is_failure && (was_welcome_ || !IsRefusal(failure));
      if (!failure.ok()) break;
      if (std::holds_alternative<protocol::Left>(reply)) left = &std::get<protocol::Left>(reply);
    }
    if (holds && --held_ == 0) SendBatch();
    changed = std::exchange(changed_, false);
  }
  if (!failure.ok()) return environment_.host.OnLinkFailure(std::move(failure), by_peer);
  if (left != nullptr) environment_.host.OnLeft(*left);
  if (changed) notes_.Moved();
  if (changed) environment_.options.on_change();
}

Status Link::Take(const protocol::Reply& reply, std::uint64_t contract) {
  const bool is_welcome = std::holds_alternative<protocol::Welcome>(reply);
  if (is_welcome && (welcome_ || contract != sender_.contract)) return OkStatus();  // outdated or duplicate
  return std::visit([this](const auto& message) { return On(message); }, reply);
}

// Whether this trainer can go on with a server that has so many of its steps.
Status Link::CheckStep(std::uint64_t named) const {
  const std::uint64_t step = environment_.steps.step();
  const Joins joins = environment_.options.joins;
  if (joins == Joins::kAtZero && named > step) {
    return FailedPrecondition("E-rpc-restart", "pserver ", address_, " has had ", named, " steps of trainer ",
                              sender_.trainer, ", which is at step ", step, ": the trainer was restarted");
  }
  // A server that only a later program names has not been asked before.
  const bool late = joins != Joins::kAtZero && environment_.steps.joined() && !was_welcome_;
  const bool fits =
      named == protocol::kAnyStep || (joins == Joins::kAtLowest ? named >= step : named <= step);
  if (!late || fits) return OkStatus();
  return FailedPrecondition("E-resume-step", "pserver ", address_, " has had ", named, " steps of trainer ",
                            sender_.trainer, ", whose new process begins with step ", step,
                            " because the pservers of its startup program say so")
      .With("restart the job; a trainer returns where its startup program receives from every pserver");
}

// Whether this trainer has what a server lacks that was started again. The steps before this trainer's own
// were sent by a process that is gone, with what it kept.
Status Link::CheckLacks(const protocol::WelcomeBody& welcome) const {
  const std::uint64_t joined_at = environment_.steps.joined_at();
  if (incarnation_ == 0 || welcome.incarnation <= incarnation_ || welcome.version >= joined_at)
    return OkStatus();
  return FailedPrecondition("E-resume-step", "pserver ", address_, " was started again with ",
                            welcome.version, " steps, and trainer ", sender_.trainer,
                            ", which was started again too, has only ", "those from step ", joined_at, " on")
      .With("restart the job from its last checkpoint: --max_restart N does");
}

Status Link::On(const protocol::Welcome& welcome) {
  // The answer to a hello from before the step was known.
  if (tells_step_ && welcome.steps_ended < environment_.steps.step()) return OkStatus();
  tells_step_ = false;
  PENSTOCK_RETURN_IF_ERROR(CheckStep(welcome.steps_ended));
  if (!environment_.steps.TakeFirstStep(welcome.first_step)) {
    return FailedPrecondition("E-resume-differs", "pserver ", address_, " continues after step ",
                              welcome.first_step, ", another pserver after step ",
                              environment_.steps.first_step().value_or(0))
        .With("start all pservers with the same PENSTOCK_RESUME_STEP; the launcher's --resume does");
  }
  if (LogsDetail(1))
    Log(LogSeverity::kInfo, StrCat("pserver ", address_, " has welcomed trainer ", sender_.trainer));
  const protocol::WelcomeBody& cut = welcome.body;
  PENSTOCK_RETURN_IF_ERROR(CheckLacks(cut));
  const bool sane =
      cut.part_bytes > 0 && cut.part_bytes <= kMaxBodyBytes && cut.window > 0 &&
      cut.chunk_rows.size() >= contract_.variable_count() &&
      std::none_of(cut.chunk_rows.begin(), cut.chunk_rows.end(),
                   [](std::uint64_t rows) { return rows == 0; }) &&
      (cut.shards.empty() || cut.shards.size() >= contract_.variable_count()) &&
      std::ranges::all_of(
          cut.shards, [](std::uint32_t shards) { return shards > 0 && shards <= protocol::kShardsMax; }) &&
      (!was_welcome_ || cut.part_bytes == cut_.part_bytes);
  if (!sane || !CutVariables(cut)) {
    return DataLoss("E-rpc-welcome", "pserver ", address_, " sent an invalid chunk layout");
  }
  welcome_ = was_welcome_ = true;
  if (!Recovers()) window_below_ = cut.window;
  const bool started_again = TakeIncarnation(cut);
  // A server that was started again before this trainer has joined may have fewer steps than it had before.
  if (!named_step_ || (started_again && !environment_.steps.joined())) named_step_ = welcome.steps_ended;
  changed_ = changed_ || environment_.steps.first_step_awaited() || !environment_.steps.joined();
  notes_.Record(observe::EventKind::kPeerCame, environment_.steps.step());
  log_.Release(KeyOf(protocol::Hello{}));
  if (lost_) Resume(started_again);
  SendAllThatWaited();
  return OkStatus();
}

// Returns false if a variable is cut into other chunks than before.
bool Link::CutVariables(const protocol::WelcomeBody& cut) {
  cut_.part_bytes = cut.part_bytes;
  cut_.window = cut.window;
  cut_.cut_every = cut.cut_every;
  for (Variable& variable : variables_) {
    variable.by_turn = false;
    if (variable.key != nullptr) continue;  // cut by the answer to its declaration
    const protocol::ContractPiece& piece = PieceOf(variable);
    const std::uint32_t shards = cut.shards.empty() ? 1 : cut.shards[variable.position];
    if (variable.cut.shards != 0 && variable.cut.shards != shards) return false;
    variable.cut.shards = shards;
    if (!piece.shape.IsKnown() && !piece.rows) continue;  // only requested by rows
    const std::size_t row_bytes = static_cast<std::size_t>(piece.shape.RowWidth()) * SizeOf(piece.dtype);
    const std::uint64_t rows = piece.shape.rank() == 0 ? 1 : static_cast<std::uint64_t>(piece.shape[0]);
    const std::size_t chunk_rows = piece.rows
                                       ? rows
                                       : std::clamp<std::uint64_t>(cut.chunk_rows[variable.position], 1,
                                                                   std::max<std::uint64_t>(rows, 1));
    if (variable.cut.chunk_rows != 0 && variable.cut.chunk_rows != chunk_rows) return false;
    variable.cut = {.chunks = piece.rows ? shards : (rows + chunk_rows - 1) / chunk_rows,
                    .chunk_rows = chunk_rows,
                    .bytes_per_chunk = chunk_rows * row_bytes,
                    .bytes = rows * row_bytes,
                    .part_bytes = cut.part_bytes,
                    .compression = piece.compression,
                    .rows = piece.rows,
                    .shards = shards,
                    .row_bytes = row_bytes};
  }
  for (const std::uint32_t position : cut.by_turn) {
    if (Variable* variable = At(position)) variable->by_turn = true;
  }
  return true;
}

Status Link::On(const protocol::Pushed& pushed) {
  TakeCredit(pushed.at, pushed.welcome_below);
  const SentKey key =
      KeyOf(protocol::Push{.at = pushed.at, .step = pushed.step, .part = pushed.part, .bytes = {}});
  const std::optional<protocol::Event> sent = log_.Take(key);
  if (!sent) return OkStatus();
  if (KeepAcknowledged(std::get<protocol::Push>(*sent))) {
    const Variable& variable = *At(pushed.at.variable);
    notes_.Record(observe::EventKind::kPushTaken, pushed.step, variable.name);
    EndPush(variable, pushed.step);
  }
  SendByPriority();
  SendCompleteIfLast();
  return OkStatus();
}

Status Link::On(const protocol::StepEnded& ended) {
  const std::optional<protocol::Event> sent =
      log_.Take(KeyOf(protocol::EndStep{.step = ended.step, .variables = {}}));
  if (!sent) return OkStatus();
  KeepEnded(std::get<protocol::EndStep>(*sent));
  SendCompleteIfLast();
  return OkStatus();
}

Status Link::On(const protocol::StepCounted& counted) {
  if (!Acknowledge(KeyOf(protocol::CountStep{.step = counted.step}))) return OkStatus();
  if (!KeepCounted(counted.step)) return OkStatus();
  if (environment_.steps.EndPush(counted.step)) changed_ = true;
  return OkStatus();
}

Status Link::On(const protocol::Credit& credit) {
  TakeCredit(credit.at, credit.welcome_below);
  return OkStatus();
}

Status Link::On(const protocol::Answer& answer) {
  answer_ = answer.lacking;
  TakeCredit(answer.at, answer.welcome_below);
  return OkStatus();
}

void Link::TakeCredit(const protocol::ChunkRef& at, std::uint64_t welcome_below) {
  Variable* variable = At(at.variable);
  if (variable == nullptr || at.chunk >= variable->cut.chunks) return;
  std::vector<std::uint64_t>& below = variable->welcome_below;
  if (below.size() <= at.chunk) below.resize(at.chunk + std::size_t{1}, 0);
  below[at.chunk] = std::max(below[at.chunk], welcome_below);
  if (durable_.left() > 0) SendAgain(slot_of_[at.variable], at.chunk);
  SendWaiting(*variable);
}

bool Link::Acknowledge(const SentKey& key) {
  if (!log_.Release(key)) return false;
  SendCompleteIfLast();
  return true;
}

Status Link::On(const protocol::Pulled& pulled) {
  Variable* variable = At(pulled.at.variable);
  if (variable == nullptr) return OkStatus();
  return TakePart(*variable, pulled.at, pulled.version, pulled.part, pulled.bytes);
}

// A resent request may be answered twice, the second time after more updates. The newer answer replaces the
// parts of the older one.
Status Link::On(const protocol::PulledNewest& pulled) {
  Variable* variable = At(pulled.at.variable);
  if (variable == nullptr || pulled.at.chunk >= variable->cut.chunks) return OkStatus();
  Arriving* const in_flight = ArrivingOf(*variable, pulled.version);
  if (in_flight == nullptr || in_flight->chunks_left == 0 || in_flight->changed != nullptr) return OkStatus();
  Arriving& arriving = *in_flight;
  arriving.updates.resize(variable->cut.chunks, 0);
  std::uint64_t& updates = arriving.updates[pulled.at.chunk];
  if (arriving.parts_left[pulled.at.chunk] == 0 || pulled.updates < updates) return OkStatus();
  if (pulled.updates > updates) {
    updates = pulled.updates;
    const std::size_t parts = PartsOf(variable->cut.ChunkOf(pulled.at.chunk).size);
    arriving.parts_left[pulled.at.chunk] = static_cast<std::uint32_t>(parts);
    std::fill_n(arriving.have.begin() + static_cast<std::ptrdiff_t>(pulled.at.chunk * variable->cut.parts()),
                parts, PartIs::kMissing);
  }
  return TakePart(*variable, pulled.at, pulled.version, pulled.part, pulled.bytes);
}

std::optional<Link::AwaitedPart> Link::Awaits(Variable& variable, const protocol::ChunkRef& at,
                                              std::uint64_t version, std::uint32_t part) {
  Arriving* const in_flight = ArrivingOf(variable, version);
  if (in_flight == nullptr || in_flight->chunks_left == 0 || in_flight->changed != nullptr) return {};
  Arriving& arriving = *in_flight;
  const Extent chunk = at.chunk < variable.cut.chunks ? variable.cut.ChunkOf(at.chunk) : Extent{};
  if (part >= PartsOf(chunk.size)) return {};
  PartIs& is = arriving.have[at.chunk * variable.cut.parts() + part];
  if (is == PartIs::kThere) return {};
  const Extent extent = PartOf(chunk, part);
  return AwaitedPart{is, arriving.to.data + extent.begin, extent.size};
}

// Lets a part of a version be received directly into the pulled tensor: every copy of such a part has the
// same bytes. Until the message has arrived or the connection has ended, no other message may write there.
Room Link::RoomFor(const std::shared_ptr<Connection>& from, const std::string& head, std::size_t body) {
  const std::optional<protocol::Decoded<protocol::Pulled>> read = protocol::DecodePulledHead(head);
  if (!read) return {};
  const protocol::Pulled& pulled = read->message;
  const std::lock_guard lock(mutex_);
  if (from != connection_ || ended_) return {};
  if (read->sender.trainer != sender_.trainer || read->sender.incarnation != sender_.incarnation) return {};
  Variable* variable = At(pulled.at.variable);
  if (variable == nullptr) return {};
  const std::optional<AwaitedPart> part = Awaits(*variable, pulled.at, pulled.version, pulled.part);
  if (!part || part->is != PartIs::kMissing || part->size != body) return {};
  part->is = PartIs::kOnItsWay;
  return {ArrivingOf(*variable, pulled.version)->to.buffer, part->to};
}

Status Link::TakePart(Variable& variable, const protocol::ChunkRef& at, std::uint64_t version,
                      std::uint32_t part, const Payload& bytes) {
  const std::optional<AwaitedPart> awaited = Awaits(variable, at, version, part);
  if (!awaited) return OkStatus();
  Arriving& arriving = *ArrivingOf(variable, version);
  if (bytes.size() != awaited->size) {
    return DataLoss("E-rpc-part-size", "pserver ", address_, " sent ", bytes.size(), " bytes as part ", part,
                    " of ", PieceOf(variable).name);
  }
  if (bytes.pieces().empty() || bytes.pieces().front().data != awaited->to) {
    if (awaited->is == PartIs::kOnItsWay) return OkStatus();  // a duplicate, while the transport writes there
    bytes.CopyTo(awaited->to);
  }
  awaited->is = PartIs::kThere;
  if (--arriving.parts_left[at.chunk] > 0) return OkStatus();
  trace_.Arrived(trace::FlowKind::kPull, variable.traced, at.chunk, version,
                 variable.cut.ChunkOf(at.chunk).size);
  if (--arriving.chunks_left == 0) {
    notes_.Record(observe::EventKind::kPullAnswered, version, variable.name, variable.cut.bytes);
    variable.key == nullptr ? EndPull(arriving) : EndKeyPull(*variable.key, arriving);
  }
  Acknowledge(KeyOf(protocol::Pull{.at = at, .version = version}));
  if (variable.key != nullptr) SendPushesBehind(variable);
  return OkStatus();
}

Link::Arriving* Link::ArrivingOf(Variable& variable, std::uint64_t version) {
  if (variable.key != nullptr) {
    const auto found = variable.key->pulls.find(version);
    return found == variable.key->pulls.end() ? nullptr : &found->second;
  }
  return variable.arriving.active && variable.arriving.version == version ? &variable.arriving : nullptr;
}

void Link::EndPull(Arriving& arriving) {
  arriving.active = false;
  targets_.Remove(arriving.to.data);
  arriving.to = {};
  arriving.changed.reset();
  --pulls_;
  const bool last = environment_.steps.End(Work::kPulls);
  if (last || arriving.landing == Landing::kAlone || environment_.steps.SignalsEachPull()) changed_ = true;
}

// Why this server no longer has a version with which this process, a new one of its trainer, repeats a step
// that another server lacks; nullopt: it repeats none.
std::optional<Status> Link::CannotRepeat(std::uint64_t version, const protocol::ContractPiece& piece) const {
  const std::uint64_t named = named_step_.value_or(protocol::kAnyStep);
  if (named == protocol::kAnyStep || named <= version) return std::nullopt;
  return FailedPrecondition("E-resume-step", "pserver ", address_, " has had ", named, " steps of trainer ",
                            sender_.trainer, " and no longer has version ", version, " of ", piece.name,
                            ", with which its new process repeats a step that another pserver lacks")
      .With("restart the job from its last checkpoint: --max_restart N does");
}

Status Link::On(const protocol::Gone& gone) {
  Variable* variable = At(gone.at.variable);
  if (variable == nullptr || ArrivingOf(*variable, gone.version) == nullptr) return OkStatus();
  if (auto why = CannotRepeat(gone.version, PieceOf(*variable))) return *std::move(why);
  return FailedPrecondition("E-recv-version", "recv: version ", gone.version, " of ", PieceOf(*variable).name,
                            " on pserver ", address_,
                            " is overwritten by a later one; receive before the next gradients are sent");
}

Status Link::On(const protocol::Saved& saved) {
  if (!Acknowledge(KeyOf(protocol::Save{.request = saved.request, .body = {}}))) return OkStatus();
  if (saved_.ok()) saved_ = saved.status;
  if (environment_.steps.End(Work::kSaves)) changed_ = true;
  return OkStatus();
}

Status Link::TakeSaved() {
  const std::lock_guard lock(mutex_);
  return std::exchange(saved_, OkStatus());
}

Status Link::On(const protocol::Completed&) {
  if (!std::exchange(completed_, true) && completing_ && environment_.steps.End(Work::kCompletes))
    changed_ = true;
  Acknowledge(KeyOf(protocol::Complete{}));
  connection_->Close();
  return OkStatus();
}

Status Link::On(const protocol::Failure& failure) {
  if (failure.why.code() != StatusCode::kCancelled) return failure.why;
  return protocol::FailureOf(StrCat("pserver ", address_), failure.why);
}

}  // namespace penstock::client
