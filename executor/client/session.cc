// A session's calls: each finds its link and hands the work to it.
#include "executor/client/session.h"

#include <algorithm>

#include "executor/protocol/saved_name.h"
#include "framework/ir/program.h"

namespace penstock::client {

Link* Session::FindLink(const std::string& address) const {
  const auto found = links_.find(address);
  return found == links_.end() ? nullptr : found->second.get();
}

Status Session::Attach(const Program& program) {
  PENSTOCK_ASSIGN_OR_RETURN(const protocol::TrainerContracts facts, protocol::ReadTrainer(program));
  if (facts.contracts.empty()) return OkStatus();  // the program uses no server
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  if (facts.trainer_id.has_value() && trainer_ >= 0 && *facts.trainer_id != trainer_) {
    return InvalidArgument("E-contract-trainer", "this process was trainer ", trainer_,
                           ", and now runs a program of trainer ", *facts.trainer_id);
  }
  if (facts.trainer_id.has_value()) trainer_ = *facts.trainer_id;
  if (trainer_ < 0) {
    return InvalidArgument("E-contract-trainer",
                           "no recv, barrier or lookup of the program has a trainer_id of 0 or more");
  }
  ends_steps_ |= facts.ends_steps;
  copies_pushes_ |= facts.ends_steps && facts.pushes_after_pulls;
  landing_ = facts.pulls_complete_at_barrier ? Landing::kWithOthers : Landing::kAlone;
  const std::string& job_facts = program.meta().job_facts;
  for (const auto& [address, contract] : facts.contracts) {
    if (Link* link = FindLink(address)) {
      PENSTOCK_RETURN_IF_ERROR(link->Adopt(contract, job_facts));
    } else {
      links_.emplace(address, std::make_unique<Link>(environment_, address, trainer_, contract, job_facts));
    }
  }
  return OkStatus();
}

Status Session::AttachKeys(const std::vector<std::string>& servers, int trainer) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  trainer_ = trainer;
  for (const std::string& address : servers) {
    std::unique_ptr<Link>& link = links_[address];
    if (link == nullptr)
      link = std::make_unique<Link>(environment_, address, trainer_, protocol::Contract(), std::string());
  }
  return OkStatus();
}

Link& Session::LinkTo(const std::string& server) {
  const std::lock_guard lock(mutex_);
  return *links_.at(server);
}

Result<PushHandle> Session::DeclarePush(const RemotePiece& piece) {
  const std::lock_guard lock(mutex_);
  Link* link = FindLink(piece.pserver);
  const std::optional<Slot> slot = link == nullptr ? std::nullopt : link->FindPush(piece.name);
  if (!slot) {
    return InvalidArgument("E-contract-unknown", piece.name, " is sent to pserver ", piece.pserver,
                           " by no op of the programs attached");
  }
  pushes_.push_back({.link = link, .slot = *slot});
  return PushHandle{static_cast<int>(pushes_.size()) - 1};
}

Result<PullHandle> Session::DeclarePull(const RemotePiece& piece) {
  const std::lock_guard lock(mutex_);
  Link* link = FindLink(piece.pserver);
  const std::optional<Slot> slot = link == nullptr ? std::nullopt : link->FindPull(piece.name);
  if (!slot) {
    return InvalidArgument("E-contract-unknown", piece.name, " is received from pserver ", piece.pserver,
                           " by no op of the programs attached");
  }
  pulls_.push_back({.link = link, .slot = *slot, .landing = landing_});
  return PullHandle{static_cast<int>(pulls_.size()) - 1};
}

Result<RowsHandle> Session::DeclareRows(const RemotePiece& piece) {
  const std::lock_guard lock(mutex_);
  Link* link = FindLink(piece.pserver);
  const std::optional<Slot> slot = link == nullptr ? std::nullopt : link->FindRows(piece.name);
  if (!slot) {
    return InvalidArgument("E-contract-unknown", "rows of ", piece.name, " on pserver ", piece.pserver,
                           " are asked for by no op of the programs attached");
  }
  tables_.push_back({.link = link, .slot = *slot});
  return RowsHandle{static_cast<int>(tables_.size()) - 1};
}

Result<PeersHandle> Session::DeclarePeers(const std::vector<std::string>& pservers) {
  const std::lock_guard lock(mutex_);
  std::vector<Link*> group;
  for (const std::string& address : pservers) {
    Link* link = FindLink(address);
    if (link == nullptr) {
      return InvalidArgument("E-contract-unknown", "a barrier names pserver ", address,
                             ", which no attached program names");
    }
    group.push_back(link);
  }
  groups_.push_back(std::move(group));
  return PeersHandle{static_cast<int>(groups_.size()) - 1};
}

Status Session::CheckOpen() const {
  PENSTOCK_RETURN_IF_ERROR(status_);
  if (!completing_) return OkStatus();
  return FailedPrecondition("E-rpc-completed", "this trainer has completed and cannot train any more");
}

Status Session::PushInitial(const InitialPiece& piece) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  if (Link* link = FindLink(piece.pserver)) return link->PushInitial(piece);
  return InvalidArgument("E-contract-unknown", piece.name, " is received from pserver ", piece.pserver,
                         " by no op of the programs attached");
}

template <typename Send>
Status Session::PushWith(PushHandle handle, const Send& send) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  const Declared& declared = Of(pushes_, handle.index);
  if (ends_steps_ && declared.link->HasPushed(declared.slot)) EndOpenStep();
  PENSTOCK_RETURN_IF_ERROR(send(*declared.link, declared.slot));
  open_ = open_ || declared.link->HasPushed();
  return OkStatus();
}

Status Session::Push(PushHandle handle, const Tensor& value, const Tensor& residual) {
  return PushWith(handle, [&](Link& link, Slot slot) {
    return copies_pushes_ ? link.Push(slot, value.Clone(), residual) : link.Push(slot, value, residual);
  });
}

Status Session::PushRows(PushHandle handle, const SelectedRows& value) {
  return PushWith(handle, [&](Link& link, Slot slot) { return link.PushRows(slot, value); });
}

Status Session::CountStep(PeersHandle handle) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  if (counted_ && !ends_steps_) {
    return FailedPrecondition("E-send-count", "send: step ", steps_.step(), " was counted before");
  }
  if (counted_) EndOpenStep();
  counted_ = true;
  for (Link* link : groups_[static_cast<std::size_t>(handle.index)]) link->CountStep();
  return OkStatus();
}

// Ends the step at all servers: a later pull from any of them may have to wait for this step's gradients.
void Session::EndOpenStep() {
  for (const auto& [address, link] : links_) link->EndStep();
  CountStepEnded();
  open_ = counted_ = false;
}

void Session::CountStepEnded() {
  steps_.EndStep();
  if (options_.observer != nullptr) options_.observer->SetSteps(step());
}

Status Session::EndStep(PeersHandle handle) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  const std::vector<Link*>& group = groups_[static_cast<std::size_t>(handle.index)];
  for (const auto& [address, link] : links_) {
    if (!link->HasPushed() || std::find(group.begin(), group.end(), link.get()) != group.end()) continue;
    return FailedPrecondition("E-step-barrier", "send_barrier: gradients were sent to pserver ", address,
                              ", which it does not name");
  }
  for (Link* link : group) link->EndStep();
  CountStepEnded();
  open_ = counted_ = false;
  return OkStatus();
}

Status Session::PullAs(PullHandle handle, Tensor& out, std::optional<Landing> landing) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  if (ends_steps_ && open_) EndOpenStep();
  const Declared& declared = Of(pulls_, handle.index);
  return declared.link->Pull(declared.slot, out, landing.value_or(declared.landing), steps_.step());
}

Status Session::PullNext(PullHandle handle, Tensor& out) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  const Declared& declared = Of(pulls_, handle.index);
  return declared.link->Pull(declared.slot, out, Landing::kWithOthers, steps_.step() + 1);
}

bool Session::IsPulling(PullHandle handle) const {
  const std::lock_guard lock(mutex_);
  const Declared& declared = Of(pulls_, handle.index);
  return declared.link->IsPulling(declared.slot);
}

bool Session::PullWaitsAtBarrier(PullHandle handle) const {
  const std::lock_guard lock(mutex_);
  return Of(pulls_, handle.index).landing == Landing::kWithOthers;
}

bool Session::IsPullingInto(const Tensor& tensor) const {
  if (PullsDone() || !tensor.initialized()) return false;
  const std::byte* const begin = tensor.raw();
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(
      links_, [&](const auto& entry) { return entry.second->IsPullingInto(begin, begin + tensor.bytes()); });
}

Status Session::PullRows(RowsHandle handle, std::span<const std::int64_t> ids, Tensor& out) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  Declared& declared = tables_[static_cast<std::size_t>(handle.index)];
  if (ends_steps_ && open_ && declared.asked_before > steps_.step()) EndOpenStep();
  declared.asked_before = steps_.step() + 1;
  if (!TakeAhead(declared, ids, out)) declared.link->PullRows(declared.slot, ids, out);
  return OkStatus();
}

// In a program without barriers the step ends here, as it would with the next step's lookup.
Status Session::PullRowsAhead(RowsHandle handle, std::span<const std::int64_t> ids) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  if (ends_steps_ && open_) EndOpenStep();
  const Declared& declared = tables_[static_cast<std::size_t>(handle.index)];
  Ahead& ahead = ahead_[{declared.link, declared.slot}];
  ahead = {.ids = {ids.begin(), ids.end()},
           .step = steps_.step(),
           .asked = options_.clock->Now(),
           .arrived = std::make_shared<std::atomic<std::int64_t>>(0)};
  declared.link->PullRows(declared.slot, ids, ahead.rows, ahead.arrived);
  return OkStatus();
}

bool Session::TakeAhead(const Declared& declared, std::span<const std::int64_t> ids, Tensor& out) {
  const auto found = ahead_.find({declared.link, declared.slot});
  if (found == ahead_.end()) return false;
  const Ahead ahead = std::move(found->second);
  ahead_.erase(found);
  const bool fits = ahead.step == steps_.step() && std::ranges::equal(ahead.ids, ids);
  if (fits) out = ahead.rows;
  if (options_.observer == nullptr) return fits;
  const std::int64_t arrived = ahead.arrived->load();
  const Nanoseconds until = arrived > 0 ? Nanoseconds(arrived) : options_.clock->Now();
  options_.observer->CountLookupAhead(fits, until - ahead.asked);
  return fits;
}

Status Session::PullChanged(PullHandle handle, std::shared_ptr<SelectedRows> out) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  const Declared& declared = Of(pulls_, handle.index);
  return declared.link->PullChanged(declared.slot, std::move(out), declared.landing);
}

Status Session::SaveTable(PeersHandle handle, const std::string& table,
                          const std::vector<std::string>& files) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  for (const auto& [address, link] : links_) (void)link->TakeSaved();
  const std::vector<Link*>& group = groups_[static_cast<std::size_t>(handle.index)];
  for (std::size_t i = 0; i < group.size(); ++i) {
    group[i]->Save(table, options_.checkpoint_folder.empty()
                              ? files[i]
                              : protocol::NameInFolder(options_.checkpoint_folder, files[i]));
  }
  return OkStatus();
}

Status Session::TakeSaved() {
  const std::lock_guard lock(mutex_);
  Status first;
  for (const auto& [address, link] : links_) {
    Status saved = link->TakeSaved();
    if (first.ok()) first = std::move(saved);
  }
  return first;
}

std::uint64_t Session::entries_visited() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t visited = 0;
  for (const auto& [address, link] : links_) visited += link->entries_visited();
  return visited;
}

}  // namespace penstock::client
