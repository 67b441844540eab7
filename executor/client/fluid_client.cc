#include "executor/client/fluid_client.h"

#include <algorithm>
#include <chrono>

#include "executor/observe/wait.h"
#include "executor/protocol/contract.h"
#include "executor/transport/dial.h"
#include "framework/roles/collective_views.h"
#include "framework/roles/trainer_facts.h"
#include "framework/tensor/variable.h"
#include "framework/text/policies.h"

namespace penstock::client {
namespace {

// How often, and for how long, to look whether a server that has not answered speaks the native wire.
constexpr Nanoseconds kLookEvery = std::chrono::seconds(1);
constexpr Nanoseconds kLookFor = std::chrono::milliseconds(200);

// For a call to a server that has answered before: it may wait for other trainers, without a limit.
constexpr Nanoseconds kNoDeadline = std::chrono::hours(24 * 365);

template <typename T>
Payload CopyOf(std::span<const T> values) {
  return Payload::Of(std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
}

// Rejects programs that need what Fluid's servers cannot do, or what this client does not support yet.
Status RequireFluids(const Program& program) {
  PENSTOCK_ASSIGN_OR_RETURN(const JobPolicies policies, ReadPolicies(program.meta()));
  const auto refused = [](const char* policy) {
    return Unimplemented("E-contract-policy", policy, " does not run on Fluid's wire (wire=fluid); ",
                         "transpile without it, or use the native wire");
  };
  if (policies.staleness) return refused(kStalenessPolicy);
  if (policies.backup_trainers > 0) return refused(kBackupTrainersPolicy);
  if (!policies.rows.empty()) return refused(kRowsPolicy);
  if (!policies.compression.empty()) return refused(kCompressionPolicy);
  for (const OpEntry& entry : program.main().ops()) {
    if (roles::CollectiveView(*entry.op).kind() != roles::CollectiveKind::kNone)
      return refused("exchange dense=allreduce, dense parameters over rings of trainers,");
  }
  if (!roles::ReadTrainer(program).by_communicator) return OkStatus();
  return Unimplemented("E-contract-mode", "a communicator does not run on Fluid's wire yet; transpile ",
                       "without runtime_split_send_recv, or use the native wire");
}

}  // namespace

FluidClient::FluidClient(FluidClientOptions options) : options_(std::move(options)) {}

FluidClient::~FluidClient() = default;

// --- Attaching programs and declaring variables.

Status FluidClient::Attach(const Program& program) {
  PENSTOCK_RETURN_IF_ERROR(RequireFluids(program));
  PENSTOCK_ASSIGN_OR_RETURN(const protocol::TrainerContracts facts, protocol::ReadTrainer(program));
  if (facts.trainer_id) {
    trainer_ = *facts.trainer_id;
    if (options_.on_trainer) options_.on_trainer(trainer_);
  }
  lands_at_barrier_ = facts.pulls_complete_at_barrier;
  for (const roles::CommOp& one : roles::ReadTrainer(program).ops) {
    if (one.kind == roles::CommOp::Kind::kStep) counter_ = one.whole;
  }
  for (const auto& [address, contract] : facts.contracts) {
    async_ |= !contract.grads.empty() && !facts.pulls_complete_at_barrier;
    for (const protocol::ContractPiece& piece : contract.starts) first_values_.emplace(address, piece.name);
  }
  return OkStatus();
}

FluidClient::Server& FluidClient::ServerAt(const std::string& address) {
  const std::lock_guard lock(mutex_);
  if (servers_.empty()) {
    options_.report(
        "this trainer uses Fluid's wire, which has no exactly-once delivery: a gradient that is resent after "
        "its connection broke may count twice");
  }
  std::unique_ptr<Server>& server = servers_[address];
  if (server == nullptr) {
    server = std::make_unique<Server>();
    server->address = address;
    server->notes = observe::PeerNotes(options_.observer, StrCat("pserver ", address));
    server->calls = transport::MakeUnaryClient(address, protocol::kFluidService);
    if (cancelled_) server->calls->Cancel();
  }
  return *server;
}

Result<FluidClient::Piece> FluidClient::Declare(const RemotePiece& piece) {
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  const LinkTrace trace(options_.observer == nullptr ? nullptr : options_.observer->tracer(), piece.pserver,
                        static_cast<std::uint32_t>(trainer_));
  return Piece{.remote = piece,
               .server = &ServerAt(piece.pserver),
               .first_value = first_values_.contains({piece.pserver, piece.name}),
               .lands_at_barrier = lands_at_barrier_,
               .trace = trace,
               .traced = trace.NameOf(piece.name)};
}

Result<PushHandle> FluidClient::DeclarePush(const RemotePiece& piece) {
  PENSTOCK_ASSIGN_OR_RETURN(Piece declared, Declare(piece));
  pushes_.push_back(std::move(declared));
  return PushHandle{static_cast<int>(pushes_.size()) - 1};
}

Result<PullHandle> FluidClient::DeclarePull(const RemotePiece& piece) {
  PENSTOCK_ASSIGN_OR_RETURN(Piece declared, Declare(piece));
  pulls_.push_back(std::move(declared));
  return PullHandle{static_cast<int>(pulls_.size()) - 1};
}

Result<RowsHandle> FluidClient::DeclareRows(const RemotePiece& piece) {
  PENSTOCK_ASSIGN_OR_RETURN(Piece declared, Declare(piece));
  tables_.push_back(std::move(declared));
  return RowsHandle{static_cast<int>(tables_.size()) - 1};
}

Result<PeersHandle> FluidClient::DeclarePeers(const std::vector<std::string>& pservers, int) {
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  std::vector<Server*>& group = groups_.emplace_back();
  for (const std::string& address : pservers) group.push_back(&ServerAt(address));
  return PeersHandle{static_cast<int>(groups_.size()) - 1};
}

// --- The calls of a step.

Result<protocol::VariableMessage> FluidClient::MessageOf(const Piece& piece, const Variable& value) const {
  protocol::VariableMessage message{.varname = piece.remote.name, .trainer_id = trainer_};
  if (const auto* rows = value.If<SelectedRows>()) {
    message.tensor = protocol::FluidTensor{
        .dtype = rows->value.dtype(),
        .shape = rows->value.shape(),
        .values = CopyOf(std::span<const std::byte>(rows->value.raw(), rows->value.bytes())),
        .rows = protocol::FluidRows{.height = rows->height, .numbers = CopyOf(std::span(rows->rows))}};
  } else if (const auto* tensor = value.If<Tensor>()) {
    // An initial value is copied, because the pull that follows overwrites it.
    message.tensor = protocol::FluidTensor::Of(piece.first_value ? tensor->Clone() : *tensor);
    message.tensor->lod.clear();  // has no meaning for a gradient
  } else {
    return InvalidArgument("E-send-kind", "send: only tensors and rows of them are sent");
  }
  return message;
}

// A variable of several chunks leads to the merge of its first one. Without barriers, messages have no number
// that both sides know.
void FluidClient::TraceSend(const Piece& piece, const protocol::VariableMessage& message) const {
  if (async_ || !piece.trace.on()) return;
  piece.trace.Sends(piece.traced, 0, piece.first_value ? 0 : step(), message.tensor->values.size());
}

Status FluidClient::Push(PushHandle handle, const Variable& value) {
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  Piece& piece = pushes_[static_cast<std::size_t>(handle.index)];
  if (async_ && piece.pushed) PENSTOCK_RETURN_IF_ERROR(CompleteSends());
  if (std::exchange(piece.pushed, true)) {
    if (piece.first_value) return OkStatus();  // the server keeps its value
    return FailedPrecondition("E-send-twice", "send: ", piece.remote.name, " was sent before in step ",
                              step());
  }
  PENSTOCK_ASSIGN_OR_RETURN(const protocol::VariableMessage message, MessageOf(piece, value));
  sends_open_ = true;
  if (message.tensor->rows && message.tensor->values.size() == 0) return OkStatus();  // as in Fluid
  TraceSend(piece, message);
  return Start(
      {.kind = Kind::kSend, .server = piece.server, .method = "SendVariable", .retries = options_.retries},
      message);
}

// Sends the increment 1, as Fluid's trainers do.
Status FluidClient::CountStep(PeersHandle pservers) {
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  Tensor one(DType::kInt64, {1});
  one.Data<std::int64_t>()[0] = 1;
  const protocol::VariableMessage message{
      .varname = counter_, .tensor = protocol::FluidTensor::Of(one), .trainer_id = trainer_};
  sends_open_ = true;
  for (Server* server : groups_[static_cast<std::size_t>(pservers.index)]) {
    PENSTOCK_RETURN_IF_ERROR(
        Start({.kind = Kind::kSend, .server = server, .method = "DistributeNotify"}, message));
  }
  return OkStatus();
}

Status FluidClient::CompleteSends() {
  if (!sends_open_) return OkStatus();
  PENSTOCK_RETURN_IF_ERROR(Wait(Kind::kSend));
  sends_open_ = false;
  for (Piece& piece : pushes_) piece.pushed = piece.first_value && piece.pushed;
  return OkStatus();
}

Status FluidClient::EndStep(PeersHandle pservers) {
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  PENSTOCK_RETURN_IF_ERROR(CompleteSends());
  PENSTOCK_RETURN_IF_ERROR(StartAll(pservers, "SendVariable", protocol::kBatchBarrier));
  PENSTOCK_RETURN_IF_ERROR(Wait(Kind::kControl));
  in_get_ = true;
  const std::lock_guard lock(mutex_);
  ++step_;
  if (options_.observer != nullptr) {
    options_.observer->SetSteps(step_);
    options_.observer->recorder().Record(observe::EventKind::kStepEnded, step_ - 1);
  }
  return OkStatus();
}

// After the fetch_barrier the server has left phase GET for this trainer, and Fluid reads the current value
// with GetVariableNoBarrier. An async server has no phases; a pull includes the sends that it has answered.
Status FluidClient::PullAhead(PullHandle handle, Variable& out) {
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  if (async_) PENSTOCK_RETURN_IF_ERROR(CompleteSends());
  const bool phase = in_get_ || async_;
  const Piece& piece = pulls_[static_cast<std::size_t>(handle.index)];
  Tensor& tensor = out.As<Tensor>();
  tensor.Refit(piece.remote.dtype, piece.remote.shape);
  protocol::VariableMessage message{
      .varname = piece.remote.name, .out_varname = piece.remote.name, .trainer_id = trainer_};
  if (!phase) message.varname += protocol::kWithoutBarrier;
  return Start({.kind = Kind::kFetch,
                .server = piece.server,
                .method = phase ? "GetVariable" : "GetVariableNoBarrier",
                .retries = options_.retries,
                .out = tensor},
               message);
}

Status FluidClient::CompleteAhead() { return Wait(Kind::kFetch); }

Status FluidClient::Pull(PullHandle handle, Variable& out) {
  PENSTOCK_RETURN_IF_ERROR(PullAhead(handle, out));
  const Piece& piece = pulls_[static_cast<std::size_t>(handle.index)];
  return piece.lands_at_barrier ? OkStatus() : Wait(Kind::kFetch);
}

// A table sharded by id has no declared number of rows. Its rows are requested as Fluid's older op does:
// varname is the name of the ids' variable, and there is no table_name.
Status FluidClient::PullRows(RowsHandle handle, std::span<const std::int64_t> ids, Tensor& out) {
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  const Piece& piece = tables_[static_cast<std::size_t>(handle.index)];
  const auto count = static_cast<Dim>(ids.size());
  out.Reset(piece.remote.dtype, piece.remote.shape.WithRows(count));
  if (ids.empty()) return OkStatus();
  const bool by_id = piece.remote.shape.rank() == 0 || piece.remote.shape[0] == kUnknownDim;
  protocol::VariableMessage message{
      .varname = by_id ? piece.remote.name : StrCat("prefetch_send@", piece.remote.pserver),
      .out_varname = StrCat("prefetch_recv@", piece.remote.pserver)};
  if (!by_id) message.table_name = piece.remote.name;
  message.tensor =
      protocol::FluidTensor{.dtype = DType::kInt64, .shape = Shape{count, 1}, .values = CopyOf(ids)};
  return Start({.kind = Kind::kRows,
                .server = piece.server,
                .method = "PrefetchVariable",
                .retries = options_.retries,
                .out = out},
               message);
}

Status FluidClient::CompleteRows() { return Wait(Kind::kRows); }

Status FluidClient::CompletePulls(PeersHandle pservers) {
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  PENSTOCK_RETURN_IF_ERROR(Wait(Kind::kFetch));
  PENSTOCK_RETURN_IF_ERROR(Wait(Kind::kSend));  // initial values
  if (!in_get_) return OkStatus();              // a second barrier would wait for the next step of the others
  PENSTOCK_RETURN_IF_ERROR(StartAll(pservers, "GetVariable", protocol::kFetchBarrier));
  PENSTOCK_RETURN_IF_ERROR(Wait(Kind::kControl));
  in_get_ = false;
  return OkStatus();
}

// --- Saves, initial values, and the end.

Status FluidClient::SaveTable(PeersHandle pservers, const std::string& /*table*/,
                              const std::vector<std::string>& files) {
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  const std::vector<Server*>& group = groups_[static_cast<std::size_t>(pservers.index)];
  for (std::size_t i = 0; i < group.size(); ++i) {
    PENSTOCK_RETURN_IF_ERROR(Start({.kind = Kind::kSave, .server = group[i], .method = "CheckpointNotify"},
                                   {.varname = protocol::kSaveNotify, .out_varname = files[i]}));
  }
  return Wait(Kind::kSave);
}

Status FluidClient::SetInitial(const std::vector<InitialPiece>& pieces) {
  if (pieces.empty()) return OkStatus();
  return Unimplemented("E-load-remote", "Fluid's wire cannot give servers the value of ", pieces.front().name,
                       " that this trainer has set; load it on the pservers, or use the native wire");
}

std::uint64_t FluidClient::step() const {
  const std::lock_guard lock(mutex_);
  return step_;
}

Status FluidClient::Complete() {
  if (std::exchange(completed_, true)) return OkStatus();
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  for (const auto& [address, server] : servers_) {
    PENSTOCK_RETURN_IF_ERROR(Start({.kind = Kind::kControl, .server = server.get(), .method = "SendVariable"},
                                   {.varname = protocol::kFluidComplete, .trainer_id = trainer_}));
  }
  return Wait(Kind::kControl);
}

void FluidClient::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (status_.ok()) status_ = Cancelled("E-cancelled", "cancelled in step ", step_);
  for (const auto& [address, server] : servers_) server->calls->Cancel();
  changed_.notify_all();
}

Status FluidClient::CheckOpen() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

// --- Calls in flight.

Status FluidClient::Start(Flight flight, const protocol::VariableMessage& message) {
  PENSTOCK_ASSIGN_OR_RETURN(flight.request, protocol::WriteVariableMessage(message));
  flight.what = StrCat(flight.method, " of ", message.varname);
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(status_);
  Flights& flights = Of(flight.kind);
  ++flights.unanswered;
  Launch(flights.all.emplace_back(std::move(flight)));
  return OkStatus();
}

void FluidClient::Launch(Flight& flight) {
  const Nanoseconds timeout = flight.server->answered ? kNoDeadline : options_.connect_deadline;
  flight.server->notes.Sent(flight.request.size());
  flight.server->calls->Call(
      flight.method, flight.request, timeout,
      [this, &flight](Result<transport::UnaryReply> reply) { OnReply(flight, std::move(reply)); });
}

void FluidClient::OnReply(Flight& flight, Result<transport::UnaryReply> reply) {
  const std::lock_guard lock(mutex_);
  if (reply.ok()) flight.server->answered = true;
  if (reply.ok() && *reply) flight.server->notes.Received((*reply)->size());
  flight.server->notes.Moved();
  if (!reply.ok() && reply.status().id() == "E-rpc-unavailable" && flight.retries > 0 && !cancelled_) {
    --flight.retries;
    flight.server->notes.Resent();
    flight.server->calls->Call(
        flight.method, flight.request, options_.reconnect_deadline,
        [this, &flight](Result<transport::UnaryReply> again) { OnReply(flight, std::move(again)); });
    return;
  }
  flight.reply = std::move(reply);
  if (--Of(flight.kind).unanswered == 0) changed_.notify_all();
}

Status FluidClient::StartAll(PeersHandle pservers, const std::string& method, const std::string& varname) {
  for (Server* server : groups_[static_cast<std::size_t>(pservers.index)]) {
    PENSTOCK_RETURN_IF_ERROR(
        Start({.kind = Kind::kControl, .server = server, .method = method}, {.varname = varname}));
  }
  return OkStatus();
}

std::string FluidClient::WaitsFor(Kind kind) const {
  const std::list<Flight>& all = Of(kind).all;
  const auto first =
      std::find_if(all.begin(), all.end(), [](const Flight& flight) { return !flight.reply.has_value(); });
  return StrCat(first->what, " on pserver ", first->server->address,
                first->server->answered ? "" : ", which has not answered yet");
}

std::string FluidClient::FirstSilent(Kind kind) const {
  const std::list<Flight>& all = Of(kind).all;
  const auto first = std::find_if(all.begin(), all.end(), [](const Flight& flight) {
    return !flight.reply.has_value() && !flight.server->answered;
  });
  return first == all.end() ? std::string() : first->server->address;
}

// gRPC cannot tell a server of another protocol from one that has not started.
Status FluidClient::RequireWireOf(const std::string& address) {
  Status status = address.empty() ? OkStatus() : transport::RequireNotNative(address, kLookFor);
  if (status.ok()) return status;
  const std::lock_guard lock(mutex_);
  if (status_.ok()) status_ = status;
  for (const auto& [where, server] : servers_) server->calls->Cancel();
  return status;
}

// Waits until all calls of the kind are answered, then takes the replies.
Status FluidClient::Wait(Kind kind) {
  std::unique_lock lock(mutex_);
  const auto settled = [&] { return !status_.ok() || Of(kind).unanswered == 0; };
  if (!settled()) {
    observe::Wait wait(options_.observer, SystemClock(), step_, options_.report_after);
    while (!changed_.wait_for(lock, std::min(wait.ToNextReport(), kLookEvery), settled)) {
      const std::string silent = FirstSilent(kind);
      const bool reports = wait.ToNextReport() <= Nanoseconds(0);
      const std::string line = reports ? StrCat("waiting ", WholeSeconds(wait.Lasted()), " s in step ", step_,
                                                ": ", WaitsFor(kind))
                                       : std::string();
      if (reports) wait.Reported();
      lock.unlock();
      if (reports) options_.report(line);
      PENSTOCK_RETURN_IF_ERROR(RequireWireOf(silent));
      lock.lock();
    }
  }
  PENSTOCK_RETURN_IF_ERROR(status_);
  std::list<Flight> landed = std::exchange(Of(kind).all, {});
  lock.unlock();
  for (Flight& flight : landed) {
    Status landed_as = Land(flight);
    if (landed_as.ok()) continue;
    Status status = std::move(landed_as).In(flight.what);
    return kind == Kind::kSave ? status : Fail(std::move(status));  // a failed save does not end the job
  }
  return OkStatus();
}

Status FluidClient::Land(Flight& flight) {
  PENSTOCK_RETURN_IF_ERROR(flight.reply->status());
  if (!flight.out) return OkStatus();
  const std::string& address = flight.server->address;
  const transport::UnaryReply& reply = **flight.reply;
  if (!reply || reply->size() == 0) {
    return FailedPrecondition("E-recv-unknown", "pserver ", address, " has no variable of that name");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const protocol::VariableMessage message, protocol::ReadVariableMessage(*reply));
  const Tensor& out = *flight.out;
  if (!message.tensor || message.tensor->rows || message.tensor->dtype != out.dtype() ||
      message.tensor->values.size() != out.bytes()) {
    return DataLoss(
        "E-recv-type", "pserver ", address, " answers with ",
        message.tensor ? StrCat(DTypeName(message.tensor->dtype), message.tensor->shape) : "no tensor",
        " where ", DTypeName(out.dtype()), out.shape(), " was asked for");
  }
  message.tensor->values.CopyTo(out.raw());
  return OkStatus();
}

// Keeps the first error.
Status FluidClient::Fail(Status why) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = status_.ok();
    if (first) status_ = why;
  }
  if (first && options_.on_reaction && why.code() != StatusCode::kCancelled) options_.on_reaction(why);
  return why;
}

}  // namespace penstock::client
