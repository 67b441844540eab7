#include "executor/client/session.h"

#include <algorithm>

#include "framework/ir/program.h"
#include "framework/text/job_facts.h"

namespace penstock::client {

void Session::Close() {
  const std::lock_guard lock(mutex_);
  for (auto& [address, peer] : peers_) {
    if (!peer->closed) peer->connection->Close();
  }
}

void Session::Abort() {
  const std::lock_guard lock(mutex_);
  for (auto& [address, peer] : peers_) {
    if (!peer->closed) peer->connection->Abort();
  }
}

bool Session::AllClosed() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& entry) { return entry.second->closed; });
}

Status Session::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

std::uint64_t Session::step() const {
  const std::lock_guard lock(mutex_);
  return step_;
}

int Session::trainer() const {
  const std::lock_guard lock(mutex_);
  return trainer_;
}

Status Session::Attach(const Program& program) {
  PENSTOCK_ASSIGN_OR_RETURN(const protocol::TrainerContracts facts, protocol::ReadTrainer(program));
  if (facts.contracts.empty()) return OkStatus();  // it speaks to no server
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  if (facts.trainer_id.has_value() && trainer_ >= 0 && *facts.trainer_id != trainer_) {
    return InvalidArgument("E-contract-trainer", "this process was trainer ", trainer_,
                           ", and now runs a program of trainer ", *facts.trainer_id);
  }
  if (facts.trainer_id.has_value()) trainer_ = *facts.trainer_id;
  if (trainer_ < 0) {
    return InvalidArgument("E-contract-trainer",
                           "no recv or barrier of the program says a trainer_id of 0 or more");
  }
  at_barrier_ = facts.pulls_complete_at_barrier;
  for (const auto& [address, contract] : facts.contracts)
    PENSTOCK_RETURN_IF_ERROR(AdoptContract(address, contract, program.meta().job_facts));
  return OkStatus();
}

// A start-up program and the main program each know a part: the contract grows, and the server is told again.
Status Session::AdoptContract(const std::string& address, const protocol::Contract& contract,
                              const std::string& job_facts) {
  std::unique_ptr<Peer>& peer = peers_[address];
  if (peer == nullptr) {
    peer = std::make_unique<Peer>();
    peer->address = address;
    peer->contract = contract;
    peer->contract_hash = contract.Hash();
    peer->job_facts = job_facts;
    peer->since = options_.clock->Now();
    Connect(*peer);
    return OkStatus();
  }
  PENSTOCK_ASSIGN_OR_RETURN(protocol::Contract joined, protocol::Join(peer->contract, contract, address));
  if (const auto difference = FirstJobDifference(peer->job_facts, job_facts)) {
    return InvalidArgument("E-job-mismatch", "job: a program that this process ran before ", difference->here,
                           "; this one ", difference->there)
        .With(StrCat("both name pserver ", address, "; run programs of one transpile"));
  }
  const bool learned = peer->job_facts.empty() && !job_facts.empty();
  if (!learned && joined.ToText() == peer->contract.ToText()) return OkStatus();
  if (learned) peer->job_facts = job_facts;
  peer->contract = std::move(joined);
  peer->contract_hash = peer->contract.Hash();
  peer->welcome = false;
  peer->since = options_.clock->Now();
  if (!peer->closed) Hello(*peer);
  return OkStatus();
}

void Session::Connect(Peer& peer) {
  peer.closed = false;
  peer.heard = options_.clock->Now();
  peer.connection = transport_.Connect(peer.address, *this);
  Hello(peer);
}

void Session::Hello(Peer& peer) {
  ForgetHellos(peer);
  const protocol::HelloBody body{.job = options_.job,
                                 .trainers = static_cast<std::uint32_t>(options_.trainers),
                                 .contract = peer.contract.ToText(),
                                 .job_facts = peer.job_facts};
  SendKept(peer, {.kind = protocol::MessageKind::kHello, .step = step_},
           Payload::Of(protocol::WriteHello(body)));
}

Result<PushHandle> Session::DeclarePush(const RemotePiece& piece) {
  const std::lock_guard lock(mutex_);
  const auto peer = peers_.find(piece.pserver);
  if (peer == peers_.end() ||
      (peer->second->contract.FindGrad(piece.name) < 0 && !peer->second->contract.Starts(piece.name))) {
    return InvalidArgument("E-contract-unknown", piece.name, " is sent to pserver ", piece.pserver,
                           " by no op of the programs attached");
  }
  pushes_.push_back({.peer = peer->second.get(), .name = piece.name});
  return PushHandle{static_cast<int>(pushes_.size()) - 1};
}

Result<PullHandle> Session::DeclarePull(const RemotePiece& piece) {
  const std::lock_guard lock(mutex_);
  const auto peer = peers_.find(piece.pserver);
  if (peer == peers_.end() || peer->second->contract.FindParam(piece.name) < 0) {
    return InvalidArgument("E-contract-unknown", piece.name, " is received from pserver ", piece.pserver,
                           " by no op of the programs attached");
  }
  pulls_.push_back({.peer = peer->second.get(), .name = piece.name, .at_barrier = at_barrier_});
  return PullHandle{static_cast<int>(pulls_.size()) - 1};
}

Result<PeersHandle> Session::DeclarePeers(const std::vector<std::string>& pservers) {
  const std::lock_guard lock(mutex_);
  std::vector<Peer*> group;
  for (const std::string& address : pservers) {
    const auto peer = peers_.find(address);
    if (peer == peers_.end()) {
      return InvalidArgument("E-contract-unknown", "a barrier names pserver ", address,
                             ", which no program attached does");
    }
    group.push_back(peer->second.get());
  }
  groups_.push_back(std::move(group));
  return PeersHandle{static_cast<int>(groups_.size()) - 1};
}

Status Session::CheckOpen() const {
  PENSTOCK_RETURN_IF_ERROR(status_);
  if (!completing_) return OkStatus();
  return FailedPrecondition("E-rpc-completed", "this trainer has completed; it cannot go on training");
}

namespace {

Status RequireType(const protocol::ContractPiece& piece, const Tensor& value) {
  if (!piece.rows && value.initialized() && value.dtype() == piece.dtype && value.shape() == piece.shape)
    return OkStatus();
  return InvalidArgument(
      "E-send-shape", "send: ", piece, " is declared, the value is ",
      value.initialized() ? StrCat(DTypeName(value.dtype()), value.shape()) : std::string("missing"));
}

}  // namespace

Status Session::Push(PushHandle handle, const Tensor& value) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  const Declared& declared = pushes_[static_cast<std::size_t>(handle.index)];
  Peer& peer = *declared.peer;
  const int grad = peer.contract.FindGrad(declared.name);
  if (grad < 0) return PushStart(peer, peer.contract.FindParam(declared.name), value);
  PENSTOCK_RETURN_IF_ERROR(RequireType(PieceOf(peer, static_cast<std::uint32_t>(grad)), value));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t variable, OpenPush(declared));
  Enqueue(peer, {.kind = protocol::MessageKind::kPush,
                 .step = step_,
                 .variable = variable,
                 .chunk = 0,
                 .value = value,
                 .body = {}});
  return OkStatus();
}

Result<std::uint32_t> Session::OpenPush(const Declared& declared) {
  const auto variable = static_cast<std::uint32_t>(declared.peer->contract.FindGrad(declared.name));
  if (declared.peer->pushed.insert(variable).second) return variable;
  return FailedPrecondition("E-send-twice", "send: ", declared.name, " was sent before in step ", step_);
}

// A first value travels as a push of the parameter itself, in step 0. It is copied, because what comes back
// is written over it. If the start-up program runs again, what the server has stays.
Status Session::PushStart(Peer& peer, int param, const Tensor& value) {
  PENSTOCK_RETURN_IF_ERROR(RequireType(peer.contract.params[static_cast<std::size_t>(param)], value));
  const auto variable = static_cast<std::uint32_t>(param);
  if (!peer.started.insert(variable).second) return OkStatus();
  Enqueue(peer, {.kind = protocol::MessageKind::kPush,
                 .step = 0,
                 .variable = variable,
                 .chunk = 0,
                 .value = value.Clone(),
                 .body = {},
                 .first_value = true});
  return OkStatus();
}

Status Session::EndStep(PeersHandle handle) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  const std::vector<Peer*>& group = groups_[static_cast<std::size_t>(handle.index)];
  for (const auto& [address, peer] : peers_) {
    if (peer->pushed.empty() || std::find(group.begin(), group.end(), peer.get()) != group.end()) continue;
    return FailedPrecondition("E-step-barrier", "send_barrier: gradients were sent to pserver ", address,
                              ", which it does not name");
  }
  for (Peer* peer : group) {
    const std::vector<std::uint32_t> variables(peer->pushed.begin(), peer->pushed.end());
    peer->pushed.clear();
    Enqueue(*peer, {.kind = protocol::MessageKind::kEndStep,
                    .step = step_,
                    .variable = 0,
                    .chunk = 0,
                    .value = {},
                    .body = Payload::Of(protocol::WriteVariables(variables))});
  }
  ++step_;
  return OkStatus();
}

Status Session::Pull(PullHandle handle, Tensor& out) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  const Declared& declared = pulls_[static_cast<std::size_t>(handle.index)];
  Peer& peer = *declared.peer;
  const int param = peer.contract.FindParam(declared.name);
  const protocol::ContractPiece& piece = peer.contract.params[static_cast<std::size_t>(param)];
  const auto variable = static_cast<std::uint32_t>(param);
  if (peer.arriving.contains(variable)) {
    return FailedPrecondition("E-recv-twice", "recv: ", declared.name, " is on its way already");
  }
  out.Refit(piece.dtype, piece.shape);
  Arriving& arriving = peer.arriving[variable];
  arriving.version = step_;
  arriving.out = out;
  Enqueue(peer, {.kind = protocol::MessageKind::kPull,
                 .step = step_,
                 .variable = variable,
                 .chunk = 0,
                 .value = {},
                 .body = {}});
  return OkStatus();
}

Status Session::Complete() {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(status_);
  if (completing_) return OkStatus();
  completing_ = true;
  for (auto& [address, peer] : peers_) {
    Enqueue(*peer, {.kind = protocol::MessageKind::kComplete,
                    .step = 0,
                    .variable = 0,
                    .chunk = 0,
                    .value = {},
                    .body = {}});
  }
  return OkStatus();
}

void Session::Cancel() {
  const std::lock_guard lock(mutex_);
  if (CompleteDoneLocked()) return;
  Fail(Cancelled("E-cancelled", "cancelled in step ", step_));
}

bool Session::EarlierPushesDone(std::uint64_t before) const {
  const std::lock_guard lock(mutex_);
  return first_values_open_ == 0 && (pushes_open_.empty() || pushes_open_.begin()->first >= before);
}

std::uint64_t Session::entries_visited() const {
  const std::lock_guard lock(mutex_);
  return entries_visited_;
}

bool Session::PullsDone() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return entry.second->arriving.empty(); });
}

bool Session::IsPulling(PullHandle handle) const {
  const std::lock_guard lock(mutex_);
  const Declared& declared = pulls_[static_cast<std::size_t>(handle.index)];
  const int param = declared.peer->contract.FindParam(declared.name);
  return declared.peer->arriving.contains(static_cast<std::uint32_t>(param));
}

bool Session::PullWaitsAtBarrier(PullHandle handle) const {
  const std::lock_guard lock(mutex_);
  return pulls_[static_cast<std::size_t>(handle.index)].at_barrier;
}

bool Session::CompleteDone() const {
  const std::lock_guard lock(mutex_);
  return CompleteDoneLocked();
}

bool Session::CompleteDoneLocked() const {
  return completing_ &&
         std::all_of(peers_.begin(), peers_.end(), [](const auto& entry) { return entry.second->completed; });
}

}  // namespace penstock::client
