// A link's contract, its connection, and its periodic work (Tick).
#include "executor/client/link.h"

#include <algorithm>
#include <utility>

#include "executor/client/piece_checks.h"
#include "executor/protocol/failure.h"
#include "executor/protocol/native_codec.h"
#include "framework/base/hash.h"
#include "framework/text/job_facts.h"

namespace penstock::client {

Link::Link(const LinkEnvironment& environment, std::string address, int trainer, protocol::Contract contract,
           std::string job_facts)
    : environment_(environment),
      address_(std::move(address)),
      notes_(environment.options.observer, StrCat("pserver ", address_)),
      trace_(environment.options.observer == nullptr ? nullptr : environment.options.observer->tracer(),
             address_, static_cast<std::uint32_t>(trainer)),
      sender_{.job = Fnv1a64(environment.options.job),
              .contract = contract.Hash(),
              .incarnation = environment.options.incarnation,
              .trainer = static_cast<std::uint32_t>(trainer)},
      contract_(std::move(contract)),
      job_facts_(std::move(job_facts)),
      since_(environment.options.clock->Now()) {
  const std::lock_guard lock(mutex_);
  Number({});
  Connect();
}

Status Link::Adopt(const protocol::Contract& contract, const std::string& job_facts) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_ASSIGN_OR_RETURN(protocol::Contract joined, protocol::Join(contract_, contract, address_));
  if (const auto difference = FirstJobDifference(job_facts_, job_facts)) {
    return InvalidArgument("E-job-mismatch", "job: a program that this process ran before ", difference->here,
                           "; this one ", difference->there)
        .With(StrCat(
            "both name pserver ", address_, "; run programs of one transpile, or of several that know ",
            "each other: with one startup_program or beside=, each parameter updated by one program"));
  }
  const bool learned = job_facts_.empty() && !job_facts.empty();
  if (!learned && joined.ToText() == contract_.ToText()) return OkStatus();
  if (learned) job_facts_ = job_facts;
  const protocol::Contract before = std::exchange(contract_, std::move(joined));
  sender_.contract = contract_.Hash();
  Number(before);
  welcome_ = false;
  since_ = environment_.options.clock->Now();
  if (!closed_) SayHello();
  return OkStatus();
}

// A variable of the contract before keeps its slot. Messages already sent keep their positions, which stay
// valid: params come first, and tables are added only by programs that do not train, whose requests are
// answered before the next program is attached.
void Link::Number(const protocol::Contract& before) {
  const std::vector<Slot> slot_before = std::exchange(slot_of_, {});
  const auto number = [&](int position_before) {
    const auto slot = position_before < 0 ? static_cast<Slot>(variables_.size())
                                          : slot_before[static_cast<std::size_t>(position_before)];
    if (position_before < 0) variables_.emplace_back();
    variables_[slot].position = static_cast<std::uint32_t>(slot_of_.size());
    slot_of_.push_back(slot);
    return slot;
  };
  for (const protocol::ContractPiece& param : contract_.params) number(before.FindParam(param.name));
  for (const protocol::ContractPiece& table : contract_.tables) number(before.FindTable(table.name));
  for (const protocol::ContractPiece& grad : contract_.grads)
    variables_[number(before.FindGrad(grad.name))].is_gradient = true;
  for (Variable& variable : variables_) {
    variable.name = notes_.Name(PieceOf(variable).name);
    variable.traced = trace_.NameOf(PieceOf(variable).name);
  }
  tables_by_id_ = MayHaveAnyRow(contract_);
}

std::optional<Slot> Link::FindPush(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const int grad = contract_.FindGrad(name);
  if (grad < 0 && !contract_.Starts(name)) return std::nullopt;
  return slot_of_[static_cast<std::size_t>(grad >= 0 ? grad : contract_.FindParam(name))];
}

std::optional<Slot> Link::FindPull(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const int param = contract_.FindParam(name);
  return param < 0 ? std::nullopt : std::optional(slot_of_[static_cast<std::size_t>(param)]);
}

std::optional<Slot> Link::FindRows(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const int table = contract_.FindTable(name);
  return table < 0 ? std::nullopt : std::optional(slot_of_[static_cast<std::size_t>(table)]);
}

void Link::Connect() {
  closed_ = false;
  heard_ = environment_.options.clock->Now();
  connection_ = environment_.transport.Connect(address_, *this);
  notes_.Connected();
  SayHello();
}

void Link::SayHello() {
  SendKept(protocol::Hello{.step = environment_.steps.step(),
                           .body = {.job = environment_.options.job,
                                    .trainers = static_cast<std::uint32_t>(environment_.options.trainers),
                                    .contract = contract_.ToText(),
                                    .job_facts = job_facts_,
                                    .process = environment_.options.process}});
}

std::optional<std::uint64_t> Link::named_step() const {
  const std::lock_guard lock(mutex_);
  return named_step_;
}

void Link::Joined() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t step = environment_.steps.step();
  if (environment_.options.joins != Joins::kAtHighest || *named_step_ >= step) return;
  tells_step_ = true;
  welcome_ = false;
  since_ = environment_.options.clock->Now();
  if (!closed_) SayHello();
}

void Link::Complete() {
  const std::lock_guard lock(mutex_);
  completing_ = true;
  if (completed_) return;
  environment_.steps.Begin(Work::kCompletes);
  SendCompleteIfLast();
}

void Link::End(const Status& why) {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  if (closed_ || completed_) return;
  // Sent even before the welcome: the hello may be in flight, and the reason follows it.
  SendMessage(protocol::Failure{why}, sender_.contract);
  connection_->Close();
}

void Link::Close() {
  const std::lock_guard lock(mutex_);
  if (!closed_) connection_->Close();
}

void Link::Abort() {
  const std::lock_guard lock(mutex_);
  if (!closed_) connection_->Abort();
}

bool Link::IsClosed() const {
  const std::lock_guard lock(mutex_);
  return closed_ && closing_ == 0;
}

// Calls the host without holding the lock. `closing_` keeps IsClosed false until that call has returned, so
// this object is not destroyed meanwhile.
void Link::OnClosed(const std::shared_ptr<Connection>& from, const Status& why) {
  std::optional<Status> failure;
  bool by_peer = false, lost = false;
  {
    const std::lock_guard lock(mutex_);
    if (from != connection_) return;
    ++closing_;
    closed_ = true;
    batch_.Clear();  // what was in it is in the log
    closed_at_ = environment_.options.clock->Now();
    if (was_welcome_) notes_.Record(observe::EventKind::kPeerLeft, environment_.steps.step());
    // A server that has not started refuses the connection, and Tick retries; other reasons are permanent.
    const bool may_pass = why.ok() || why.code() == StatusCode::kUnavailable;
    if (!ended_ && !completed_ && !may_pass) {
      failure = Status(why).In(StrCat("pserver ", address_));
    } else if (!ended_ && !completed_ && was_welcome_) {
      const std::string how = why.ok() ? std::string("it closed the connection")
                                       : StrCat(why.message(), protocol::SilenceText(closed_at_ - heard_));
      by_peer = true;
      lost = environment_.options.reconnect_deadline > Nanoseconds(0);
      if (!lost) {
        failure = Gone(how);
      } else if (welcome_ = false; !lost_) {
        lost_ = Lost{.at = closed_at_, .how = how};
      }
    }
  }
  if (failure) environment_.host.OnLinkFailure(*std::move(failure), by_peer);
  if (lost && environment_.options.on_lost) environment_.options.on_lost();
  const std::lock_guard lock(mutex_);
  --closing_;
  environment_.options.on_change();
}

Status Link::Gone(const std::string& how) const {
  return Unavailable("E-peer-lost", "pserver ", address_, " is gone: ", how, " (step ",
                     environment_.steps.step(), ", seen by trainer ", sender_.trainer, ")");
}

// Whether a server whose connection has broken may still come back. The kernel closes what a process listens
// on when the process ends, so a host that refuses connections says that it has ended. It may be started
// again.
Status Link::CheckReturn(Nanoseconds now) {
  const SessionOptions& options = environment_.options;
  const bool ended = !closed_ && connection_->refused();
  if (ended && !Recovers()) return Gone(lost_->how);
  if (ended) lost_->ended = true;
  // One that is started again has as long as it had at the start.
  if (now - lost_->at <= options.reconnect_deadline) return OkStatus();
  if (lost_->ended && now - lost_->at <= options.connect_deadline) return OkStatus();
  return Gone(StrCat(lost_->how, ", and it could not be reached for ", WholeSeconds(now - lost_->at), " s"))
      .With("note: the launcher's --reconnect_s or PENSTOCK_RECONNECT_S sets this time");
}

// Sends again what the lost connection may not have delivered; the server recognises what it has.
void Link::Resume(bool started_again) {
  const Nanoseconds now = environment_.options.clock->Now();
  environment_.options.report(
      StrCat("pserver ", address_,
             started_again ? " was started again, and is connected after " : " is connected again after ",
             protocol::OutageText(now - lost_->at), ": ", lost_->how));
  lost_.reset();
  for (Variable& variable : variables_) {  // the message that gave it credit may be lost
    if (!variable.waiting.empty()) variable.waiting.front().asked = now - environment_.options.resend_after;
    // A part that the connection was receiving does not come any more.
    std::ranges::replace(variable.arriving.have, PartIs::kOnItsWay, PartIs::kMissing);
    if (variable.key == nullptr) continue;
    for (auto& [version, arriving] : variable.key->pulls)
      std::ranges::replace(arriving.have, PartIs::kOnItsWay, PartIs::kMissing);
  }
  log_.SendAgain(now, now, [&](const RetentionLog::Sent& sent) {
    notes_.Resent();
    SendMessage(sent.event, sent.contract);
  });
  if (started_again) SendAllAgain();
}

Status Link::Tick() {
  const std::lock_guard lock(mutex_);
  if (completed_ || ended_) return OkStatus();
  const SessionOptions& options = environment_.options;
  const Nanoseconds now = options.clock->Now();
  if (lost_) PENSTOCK_RETURN_IF_ERROR(CheckReturn(now));
  if (!welcome_ && !lost_ && now - since_ > options.connect_deadline) {
    return DeadlineExceeded("E-peer-connect", "pserver ", address_, " has not answered for ",
                            WholeSeconds(now - since_), " s")
        .With("it was not started, or the job ended before this trainer came: its log says which");
  }
  if (closed_) {
    // The first time at once: a host that refuses shows that the process has ended.
    const bool first = lost_ && lost_->at == closed_at_;
    if (first || now - closed_at_ >= options.reconnect_after) Connect();
    return OkStatus();
  }
  for (std::size_t position = 0; pushes_waiting_ > 0 && welcome_ && position < slot_of_.size(); ++position) {
    if (slot_of_[position] == kNoSlot) continue;
    Variable& variable = variables_[slot_of_[position]];
    if (variable.waiting.empty()) continue;        // ask: a message with credit may have been lost
    PendingPush& push = variable.waiting.front();  // those behind it wait for this one
    if (now - push.asked < options.resend_after) continue;
    push.asked = now;
    SendMessage(
        protocol::Ask{
            .about = protocol::ChunkRef{variable.position, push.chunk}, .step = push.step, .waits_for = {}},
        sender_.contract);
  }
  AskForCredit(now);
  RequestCut();
  if (welcome_) SendByPriority();
  log_.SendAgain(now - options.resend_after, now, [&](const RetentionLog::Sent& sent) {
    if (!MaySend(sent.event)) return;
    notes_.Resent();
    SendMessage(sent.event, sent.contract);
  });
  return OkStatus();
}

std::uint64_t Link::entries_visited() const {
  const std::lock_guard lock(mutex_);
  return visited_;
}

}  // namespace penstock::client
