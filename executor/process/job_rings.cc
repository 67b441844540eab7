#include "executor/process/job_rings.h"

#include <algorithm>
#include <utility>

#include "executor/collective/arena/threads.h"
#include "executor/collective/rendezvous/contract.h"
#include "executor/observe/report_times.h"
#include "executor/observe/trace/tracer.h"
#include "executor/process/launcher.h"
#include "executor/process/ring_backend.h"
#include "executor/process/start_deadline.h"
#include "framework/base/check.h"
#include "framework/base/hash.h"

namespace penstock::process {
namespace {

Result<std::unique_ptr<CollectiveGroup>> GroupOfOne() {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<CollectiveGroup>> groups,
                            collective::MakeThreadGroups(1));
  return std::move(groups.front());
}

Status NotJoined(int ring) {
  return FailedPrecondition("E-collective-not-joined", "ring ", ring, " cannot be made: no op before, ",
                            "gen_nccl_id or c_gen_nccl_id, has joined the ranks");
}

}  // namespace

JobRings::~JobRings() { Disconnect(); }

Status JobRings::RequirePresence() const {
  const std::lock_guard lock(mutex_);
  if (!left_) return OkStatus();
  return FailedPrecondition("E-collective-left", "this process has left the other ranks",
                            "; a process joins a job once");
}

Status JobRings::Join(const std::vector<std::string>& addresses, int rank) {
  const std::lock_guard meeting(meeting_);
  PENSTOCK_RETURN_IF_ERROR(RequirePresence());
  if (facts_) {
    if (facts_->addresses == addresses && facts_->rank == rank) return OkStatus();
    return FailedPrecondition("E-collective-joined", "this process is rank ", facts_->rank, " of ",
                              penstock::Join(facts_->addresses, ","), " already; it cannot be rank ", rank,
                              " of ", penstock::Join(addresses, ","));
  }
  rendezvous::JoinFacts facts{.addresses = addresses, .rank = rank};
  PENSTOCK_RETURN_IF_ERROR(CheckFacts("a job", facts));
  JobStore job;
  if (addresses.size() > 1) {
    PENSTOCK_ASSIGN_OR_RETURN(report_after_, observe::ReportAfterFromEnvironment());
    PENSTOCK_ASSIGN_OR_RETURN(const Nanoseconds start_limit, StartDeadline());
    const Waiting here(*this);
    cancelled_ = false;
    PENSTOCK_ASSIGN_OR_RETURN(job, JoinJobStore(facts, start_limit, [this] { return cancelled_.load(); }));
    rendezvous::Store& store = *job.store;
    board_ = std::make_unique<rendezvous::WaitBoard>(rendezvous::WaitBoardOptions{
        .rank = facts.rank,
        .ranks = static_cast<int>(addresses.size()),
        .after = report_after_,
        .set = [&store](const std::string& key,
                        std::string value) { return store.Set(key, std::move(value)); },
        .get = [&store](const std::string& key) { return store.Get(key); }});
    PENSTOCK_RETURN_IF_ERROR(board_->Open());
  }
  TellLauncherOfMeeting();
  if (trace::Tracer* const tracer = trace::Tracer::OfThisProcess()) tracer->SetRole(StrCat("trainer ", rank));
  const std::lock_guard lock(mutex_);
  job_ = std::move(job);
  facts_ = std::move(facts);
  return OkStatus();
}

Status JobRings::MakeRing(int ring, int group_ranks) {
  const std::lock_guard meeting(meeting_);
  PENSTOCK_RETURN_IF_ERROR(RequirePresence());
  if (groups_.contains(ring)) return RequireGroups(ring, group_ranks);
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<CollectiveGroup> group, GroupOfAll(ring, group_ranks));
  {
    const std::lock_guard lock(mutex_);
    groups_.emplace(ring, std::move(group));
    group_ranks_.emplace(ring, group_ranks);
  }
  if (board_ != nullptr && group_ranks_.size() > 1 && watch_ == nullptr) WatchWaits();
  return OkStatus();
}

void JobRings::WatchWaits() {
  constexpr int kLooks = 10;  // before the first report is due
  watch_ = std::make_unique<RingWatch>(report_after_ / kLooks, [this] { return LookAtWaits(); });
}

std::vector<rendezvous::WaitedOperation> JobRings::RunningOfAll(bool* blocked) const {
  std::vector<rendezvous::WaitedOperation> out;
  for (const auto& [ring, group] : groups_) {
    if (!group_ranks_.contains(ring)) continue;  // a ring of this process alone
    const std::optional<CollectiveGroup::Running> running = group->running();
    if (!running) continue;
    if (blocked != nullptr) *blocked |= running->blocks_caller;
    out.push_back({.ring = ring, .number = running->number, .text = running->text});
  }
  return out;
}

std::vector<rendezvous::WaitedOperation> JobRings::Waits() {
  const std::lock_guard lock(mutex_);
  bool blocked = waits();
  std::vector<rendezvous::WaitedOperation> out = RunningOfAll(&blocked);
  if (!blocked) out.clear();
  return out;
}

bool JobRings::LookAtWaits() {
  const std::optional<Status> vain = board_->Look(Waits());
  if (!vain) return true;
  const std::lock_guard lock(mutex_);
  for (const auto& [ring, group] : groups_) group->Abort(*vain);
  return false;
}

Status JobRings::MakeOwnRing(int ring) {
  const std::lock_guard meeting(meeting_);
  PENSTOCK_RETURN_IF_ERROR(RequirePresence());
  if (groups_.contains(ring)) return OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<CollectiveGroup> group, GroupOfOne());
  const std::lock_guard lock(mutex_);
  groups_.emplace(ring, std::move(group));
  return OkStatus();
}

Status JobRings::MakeSubRing(int ring, const std::vector<int>& members) {
  const std::lock_guard meeting(meeting_);
  PENSTOCK_RETURN_IF_ERROR(RequirePresence());
  PENSTOCK_CHECK(!groups_.contains(ring), "a ring of some ranks has a number of its own");
  if (members.size() > 1 && job_.store == nullptr) return NotJoined(ring);
  std::optional<Result<std::unique_ptr<CollectiveGroup>>> made;
  if (members.size() == 1) {
    made = GroupOfOne();
  } else {
    const auto at = std::find(members.begin(), members.end(), facts_->rank);
    PENSTOCK_CHECK(at != members.end(), "a ring of some ranks includes this one");
    const Waiting here(*this);
    made = MakeRingGroup(
        *job_.store, {.number = ring, .members = members, .rank = static_cast<int>(at - members.begin())}, 0);
  }
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<CollectiveGroup> group, *std::move(made));
  const std::lock_guard lock(mutex_);
  groups_.emplace(ring, std::move(group));
  return OkStatus();
}

void JobRings::DropSubRing(int ring) {
  const std::lock_guard meeting(meeting_);
  std::unique_ptr<CollectiveGroup> group;
  const std::lock_guard lock(mutex_);
  if (const auto at = groups_.find(ring); at != groups_.end()) {
    group = std::move(at->second);
    groups_.erase(at);
  }
}

std::vector<rendezvous::WaitedOperation> JobRings::Running() {
  const std::lock_guard lock(mutex_);
  return RunningOfAll();
}

void JobRings::EndOperations(const Status& why) {
  const std::lock_guard lock(mutex_);
  for (const auto& [ring, group] : groups_) group->Abort(why);
}

Result<rendezvous::Store*> JobRings::StoreOfJob() const {
  PENSTOCK_RETURN_IF_ERROR(RequirePresence());
  const std::lock_guard lock(mutex_);
  if (job_.store != nullptr) return job_.store.get();
  return FailedPrecondition("E-collective-not-joined", "this process has not joined other ranks");
}

Status JobRings::Tell(const std::string& key, std::string value) {
  const std::shared_lock use(store_use_);
  PENSTOCK_ASSIGN_OR_RETURN(rendezvous::Store* const store, StoreOfJob());
  return store->Set(key, std::move(value));
}

Result<std::string> JobRings::Ask(const std::string& key) {
  const std::shared_lock use(store_use_);
  PENSTOCK_ASSIGN_OR_RETURN(rendezvous::Store* const store, StoreOfJob());
  const Waiting here(*this);
  return store->Get(key);
}

Result<std::int64_t> JobRings::Count(const std::string& counter, std::int64_t by) {
  const std::shared_lock use(store_use_);
  PENSTOCK_ASSIGN_OR_RETURN(rendezvous::Store* const store, StoreOfJob());
  return store->Add(counter, by);
}

Status JobRings::RequireGroups(int ring, int group_ranks) const {
  const auto at = group_ranks_.find(ring);
  const int made = at == group_ranks_.end() ? 0 : at->second;
  if (group_ranks == 0 || group_ranks == made) return OkStatus();
  return FailedPrecondition("E-collective-ring-made", "ring ", ring, " was made ",
                            made == 0 ? "without groups of ranks" : StrCat("with groups of ", made, " ranks"),
                            "; it cannot have groups of ", group_ranks)
      .With(
          "note: set hierarchical_allreduce_inter_nranks alike in DistributeTranspilerConfig and in "
          "BuildStrategy");
}

Result<std::unique_ptr<CollectiveGroup>> JobRings::GroupOfAll(int ring, int group_ranks) {
  if (!facts_) return NotJoined(ring);
  if (job_.store == nullptr) return GroupOfOne();
  rendezvous::Ring all{.number = ring, .rank = facts_->rank};
  for (std::size_t r = 0; r < facts_->addresses.size(); ++r) all.members.push_back(static_cast<int>(r));
  const Waiting here(*this);
  return MakeRingGroup(*job_.store, all, group_ranks);
}

Status JobRings::Begin(const Program& program, int ring, std::string_view label) {
  const std::lock_guard meeting(meeting_);
  PENSTOCK_RETURN_IF_ERROR(RequirePresence());
  if (begun_.contains(program.content_id())) return OkStatus();
  if (job_.store != nullptr) {
    PENSTOCK_RETURN_IF_ERROR(
        Flush(ring));  // here, because all ranks get here; they prepare kernels again at different times
    const Waiting here(*this);
    if (const auto at = groups_.find(ring); at != groups_.end()) {
      const std::string begins = StrCat("begins another program with ", label);
      PENSTOCK_RETURN_IF_ERROR(at->second->Barrier({.label = begins, .tag = Fnv1a64("begin")}).Wait());
    }
    const std::string name = StrCat("program/", begun_.size());
    PENSTOCK_RETURN_IF_ERROR(
        AgreeOnContract(*job_.store, name, rendezvous::ContractOf(program, job_.store->ranks())));
  }
  begun_.insert(program.content_id());
  return OkStatus();
}

Result<CollectiveGroup*> JobRings::Ring(int ring) {
  PENSTOCK_RETURN_IF_ERROR(RequirePresence());
  const std::lock_guard lock(mutex_);
  if (const auto at = groups_.find(ring); at != groups_.end()) return at->second.get();
  return FailedPrecondition("E-collective-no-ring", "no op has made ring ", ring,
                            "; run the startup program first");
}

void JobRings::AbortAll(const Status& why) {
  cancelled_ = true;
  const std::lock_guard lock(mutex_);
  for (const auto& [ring, group] : groups_) group->Abort(why);
  if (job_.store != nullptr) job_.store->Cancel();
}

void JobRings::AbortRing(int ring, const Status& why) {
  const std::lock_guard lock(mutex_);
  if (const auto at = groups_.find(ring); at != groups_.end()) at->second->Abort(why);
}

void JobRings::Leave(const Status& why) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(left_, true)) return;
  if (!why.ok()) {
    for (const auto& [ring, group] : groups_) group->Abort(why);
  }
  if (job_.store != nullptr) job_.store->Leave(why);
}

void JobRings::Disconnect() {
  cancelled_ = true;  // ends a LookAtWaits that waits for the store
  watch_.reset();
  std::map<int, std::unique_ptr<CollectiveGroup>> groups;
  JobStore job;
  {
    const std::lock_guard lock(mutex_);
    if (job_.store != nullptr) job_.store->Cancel();  // ends Ask
  }
  const std::unique_lock unused(store_use_);
  {
    const std::lock_guard lock(mutex_);
    groups = std::exchange(groups_, {});
    job = std::exchange(job_, {});
  }
  groups.clear();  // before the store, so that other ranks see the end in the group that they use
}

void JobRings::StartOver(const Status& why) {
  GiveUp(why);
  Leave(why);
  Disconnect();
  const std::lock_guard meeting(meeting_);
  ForgetRuns();
  board_.reset();
  const std::lock_guard lock(mutex_);
  facts_.reset();
  group_ranks_.clear();
  begun_.clear();
  cancelled_ = false;
  left_ = false;
}

}  // namespace penstock::process
