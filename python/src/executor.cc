// Bindings of Executor, which runs programs with the GIL released and reacts to Ctrl-C.
#include "executor/schedule/executor.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/client/initial_values.h"
#include "executor/client/movable.h"
#include "executor/client/shared_client.h"
#include "executor/communicator/communicator.h"
#include "executor/process/diagnosis.h"
#include "executor/process/grpc_client.h"
#include "executor/process/grpc_server.h"
#include "executor/process/job_rings.h"
#include "executor/process/launcher.h"
#include "executor/process/start_deadline.h"
#include "executor/protocol/failure.h"
#include "framework/base/environment.h"
#include "framework/base/log.h"
#include "framework/roles/views.h"
#include "framework/runtime/batch_queue.h"
#include "operators/all_ops.h"
#include "python/src/arrivals.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/feeds.h"
#include "python/src/gil.h"
#include "python/src/process_rings.h"
#include "python/src/profiler.h"
#include "python/src/program_box.h"
#include "python/src/runner.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// The client of the parameter servers, the communicator and the rings of this process. A process is one
// trainer and has one of each, however many executors it creates.
struct ProcessClient {
  explicit ProcessClient(std::unique_ptr<RpcClient> made)
      : movable(dynamic_cast<client::Movable*>(made.get())), shared(std::move(made)) {
    shared.set_communicator(&communicator);
  }
  client::Movable* const movable;  // the client; null on Fluid's wire
  client::SharedClient shared;
  const std::unique_ptr<RpcClient> of_communicator = shared.NewHelper();
  communicator::Communicator communicator{*of_communicator};
  process::JobRings rings;  // for ranks without servers
};

std::unique_ptr<ProcessClient>& ClientSlot() {
  static auto* slot = new std::unique_ptr<ProcessClient>();
  return *slot;
}

pid_t client_made_by = 0;

// The wire of this process's job: that of its first executor if it names one, otherwise PENSTOCK_WIRE.
std::string& ProcessWire() {
  static auto* wire = new std::string();
  return *wire;
}

ProcessClient& ThisProcess(const std::string& wire = {}) {
  std::unique_ptr<ProcessClient>& client = ClientSlot();
  if (client_made_by != getpid()) {
    process::GrpcClientOptions options = Take(process::GrpcClientOptions::FromEnvironment());
    if (!wire.empty()) options.wire = wire;
    const std::string chosen = options.wire.empty() ? "native" : options.wire;
    std::unique_ptr<RpcClient> made = Take(process::MakeGrpcClient(std::move(options)));
    (void)client.release();  // the parent's, not destroyed here: its threads exist only in the parent
    client = std::make_unique<ProcessClient>(std::move(made));
    client->shared.set_leaves_pulls(true);
    SetArrivals(client->of_communicator.get());
    client_made_by = getpid();
    ProcessWire() = chosen;
  }
  if (!wire.empty() && wire != ProcessWire()) {
    throw StatusError(FailedPrecondition("E-wire-mixed", "this process speaks the wire ",
                                         Quote(ProcessWire()), ", and an executor asks for ", Quote(wire),
                                         "; one job has one wire"));
  }
  return *client;
}

process::GrpcServerOptions ServerOptions() {
  process::GrpcServerOptions options = Take(process::GrpcServerOptions::FromEnvironment());
  options.wire = ProcessWire();
  return options;
}

std::atomic<int> running = 0;     // runs in progress
std::atomic<bool> ended = false;  // the process is about to end: no run may start

struct Running {
  Running() { ++running; }
  ~Running() { --running; }
};

// Reports to the servers and the other ranks how this process ended, then ends connections and gRPC's
// threads. They are kept if a daemon thread is still in a run, because it may use them.
void EndClient(const Status& how) {
  SetArrivals(nullptr);
  if (how.ok()) {
    const Status completed = ClientSlot()->shared.Complete();
    if (!completed.ok()) Log(LogSeverity::kError, StrCat("at exit: ", completed));
  } else {
    ClientSlot()->shared.Abandon(how);
  }
  ClientSlot()->rings.Leave(how);
  if (running != 0) return;
  ClientSlot()->rings.Disconnect();
  ClientSlot()->shared.Disconnect();
}

// exit() calls it with the process's status, after Python has ended. Only here is the status of
// `raise SystemExit(3)` known: Python's own hooks run earlier and do not see it.
void OnProcessExit(int status, void*) {
  const int code = status & 0xff;
  if (getpid() != client_made_by) return;
  EndClient(code == 0 ? OkStatus()
                      : Unavailable("E-trainer-exit", "its process ended with exit code ", code,
                                    " before it had completed"));
}

// Called at the interpreter's end. A forked child has the client, but not its threads, so it does nothing.
void EndRpc(bool thread_failed) {
  LeaveRunsBehind();
  if (ended || getpid() != client_made_by) return;
  ended = true;
  if (thread_failed) {
    const GilReleased others;
    EndClient(Unavailable("E-trainer-exit", "an exception ended a thread that ran its programs"));
  } else {
    on_exit(&OnProcessExit, nullptr);  // registered late, so it runs before the destructors of objects in use
  }
}

// Called at the end of a child of multiprocessing, which ends by os._exit: exit() is never called there.
void EndChildRpc(const std::string& why) {
  if (ended || getpid() != client_made_by) return;
  const GilReleased others;
  EndClient(why.empty() ? OkStatus() : Unavailable("E-trainer-exit", why));
  ended = true;
}

// Reports the trainer's failure in Python to its servers and the other ranks: the exception's last line, and
// the lines of its traceback.
void AbandonRpc(const std::string& message, const std::vector<std::string>& details, bool interrupted) {
  if (ended || client_made_by != getpid()) return;
  Status why =
      interrupted ? Cancelled("E-cancelled", message) : FailedPrecondition(protocol::kTrainerRaised, message);
  for (const std::string& line : details) why.With(line);
  const GilReleased others;
  ClientSlot()->shared.Abandon(why);
  ClientSlot()->rings.Leave(why);
}

// Reports a peer's failure to the other ranks, which may wait for this rank and may not know of the failure.
void AbandonRings(const std::string& message) {
  if (ended || client_made_by != getpid()) return;
  const GilReleased others;
  ClientSlot()->rings.Leave(Unavailable("E-trainer-exit", message));
}

// Checks the settings of the process before its first use of the servers. Returns `wire`.
const std::string& Checked(const std::string& wire, double start_s) {
  Check(env::CheckAll());
  if (start_s != 0) Check(process::SetStartDeadline(start_s));
  return wire;
}

class PyExecutor {
 public:
  PyExecutor(const std::string& wire, double start_s)
      : rpc_(ThisProcess(Checked(wire, start_s)).shared.NewUser()),
        executor_(AllOps(),
                  {.rpc = rpc_.get(), .rings = &ClientSlot()->rings, .timer = &TimerOfThisProcess()}),
        server_(Take(process::MakeGrpcServer(AllOps(), executor_, ServerOptions()))) {
    executor_.set_server(server_.get());
  }

  // Returns a LoDTensor or a LoDTensorArray for each fetch.
  py::list Run(const ProgramBox& box, const std::shared_ptr<ScopeBox>& scope, const py::list& feeds,
               const std::vector<std::string>& fetches) {
    const Running here;
    RequireOpen();
    const ScopeInUse scope_in_use(scope);
    const std::vector<exec::Feed> values = FeedsOf(feeds);
    exec::Executor::Compiled compiled = executor_.FindCompiled(box.program, values, fetches);
    if (compiled == nullptr) compiled = Compile(box, values, fetches);
    std::optional<Result<std::vector<Variable>>> result;
    communicator::Communicator& communicator = ClientSlot()->communicator;
    for (ScopeBox* each = scope.get(); each != nullptr; each = each->parent.get()) {
      if (each->changed.empty()) continue;
      const Program wiring = communicator.WiringOf(box.program);
      if (initial_.Concerns(wiring)) HandOver(wiring, *scope, each->changed);
    }
    if (communicator.AwaitsBegin(box.program)) Begin(communicator, scope);
    if (exec::Executor::MayWait(*compiled)) {
      RunInterruptibly([&] { result = executor_.Run(compiled, scope->scope, values); },
                       [&] {
                         executor_.Cancel();
                         BatchQueue::CancelWaits();
                       });
    } else {
      RunHere([&](const std::function<bool()>& interrupted) {
        result = executor_.Run(compiled, scope->scope, values, interrupted);
      });
    }
    NoteReaction(result->status());
    return HandlesOf(Take(*std::move(result)));
  }

  // Asks for the rows that the next run looks up, if the queue has its batch already. Does not wait.
  void LookAhead(const ProgramBox& box, const std::vector<std::string>& names, const BatchQueue& next,
                 const std::vector<std::string>& fetches) {
    const std::optional<Batch> batch = next.TryPeek();
    if (closed_ || ended || !batch || batch->size() != names.size()) return;
    std::vector<exec::Feed> feeds;
    for (std::size_t i = 0; i < names.size(); ++i) feeds.push_back({names[i], (*batch)[i]});
    const GilReleased others;
    executor_.LookAhead(box.program, feeds, fetches);
  }

  // kInvalidArgument E-server-programs: there is no program, or they are of different pservers or jobs.
  static void RequireOnePserver(const std::vector<ServedProgram>& served) {
    if (served.empty())
      throw StatusError(InvalidArgument("E-server-programs", "the list of programs to be served is empty"));
    const roles::ServeView first(*served.front().op);
    for (const ServedProgram& each : served) {
      const roles::ServeView other(*each.op);
      if (other.address() != first.address()) {
        throw StatusError(InvalidArgument("E-server-programs", "programs of pserver ", first.address(),
                                          " and of ", other.address(), " are not served by one process"));
      }
      if (other.trainers() != first.trainers()) {
        throw StatusError(InvalidArgument("E-server-programs", "programs for ", first.trainers(), " and for ",
                                          other.trainers(), " trainers are not of one job"));
      }
    }
  }

  // Serves the pserver programs of several transpiles at one address until all trainers have completed.
  void Serve(const std::vector<std::shared_ptr<ProgramBox>>& boxes, const std::shared_ptr<ScopeBox>& scope) {
    const Running here;
    RequireOpen();
    const ScopeInUse scope_in_use(scope);
    std::vector<Program> programs;
    for (const auto& box : boxes) programs.push_back(box->program);
    std::vector<ServedProgram> served;
    for (const Program& program : programs) {
      const std::vector<OpEntry>& ops = program.main().ops();
      const auto serve = std::find_if(ops.begin(), ops.end(), [](const OpEntry& entry) {
        return roles::CommOf(*entry.op) == roles::Comm::kServe;
      });
      if (serve == ops.end()) {
        throw StatusError(InvalidArgument("E-server-programs", "one of the ", programs.size(),
                                          " programs to be served together is not a pserver's"));
      }
      served.push_back({.program = &program, .op = serve->op.get()});
    }
    RequireOnePserver(served);
    Status status;
    RunInterruptibly([&] { status = server_->ServeTogether(served, scope->scope); },
                     [&] { server_->Cancel(); });
    Check(std::move(status));
  }

  // Ends a step without gradients at the program's servers, so that a later pull asks for a later version.
  void EndStep(const ProgramBox& box, const std::vector<std::string>& pservers, int trainer_id) {
    RequireOpen();
    if (rpc_->step() == 0) return;  // the servers still take initial values
    Check(rpc_->Attach(box.program));
    const PeersHandle peers = Take(rpc_->DeclarePeers(pservers, trainer_id));
    Status status;
    RunInterruptibly([&] { status = rpc_->EndStep(peers); }, [&] { rpc_->Cancel(); });
    Check(std::move(status));
  }

  // Throws kFailedPrecondition E-executor-closed after Close().
  void RequireOpen() const {
    if (closed_ || ended)
      throw StatusError(FailedPrecondition("E-executor-closed", "the executor is closed; make a new one"));
  }

  // Makes runs in progress on other threads end with an error.
  void Cancel() {
    const GilReleased others;
    executor_.Cancel();
    BatchQueue::CancelWaits();
  }

  // Reports to the servers that this trainer has completed, and waits for their answer. Does nothing while
  // another executor of the process uses the servers.
  void Close() {
    if (closed_ || ended) return;
    closed_ = true;
    Status status;
    RunInterruptibly([&] { status = rpc_->Complete(); }, [&] { rpc_->Cancel(); });
    Check(std::move(status));
  }

 private:
  exec::Executor::Compiled Compile(const ProgramBox& box, const std::vector<exec::Feed>& feeds,
                                   const std::vector<std::string>& fetches) {
    // The copy shares all data, and does not change if another Python thread changes the program meanwhile.
    const Program program = box.program;
    std::optional<Result<exec::Executor::Compiled>> compiled;
    RunHere([&](const std::function<bool()>&) { compiled = executor_.Compile(program, feeds, fetches); });
    return Take(*std::move(compiled));
  }

  void HandOver(const Program& program, ScopeBox& scope, client::ChangedVars& changed) {
    client::ChangedVars taken = std::exchange(changed, {});
    Status status;
    RunInterruptibly(
        [&] {
          status = rpc_->CompleteLeft();
          if (status.ok()) status = client::InitialValues::HandOver(program, scope.scope, taken, *rpc_);
        },
        [&] { rpc_->Cancel(); });
    changed.merge(taken);  // values that no program has taken over yet
    Check(std::move(status));
  }

  void Begin(communicator::Communicator& communicator, const std::shared_ptr<ScopeBox>& scope) {
    Status status;
    RunInterruptibly([&] { status = communicator.Begin({scope, &scope->scope}); }, [&] { rpc_->Cancel(); });
    Check(std::move(status));
  }

  const std::unique_ptr<RpcClient> rpc_;
  client::InitialValues initial_;
  exec::Executor executor_;
  std::unique_ptr<ServerLoop> server_;
  bool closed_ = false;
};

// Reports to the servers that this process's trainer has completed, even if executors are open.
void CompleteRpc() {
  if (ended || client_made_by != getpid()) return;
  Status status;
  RunInterruptibly([&] { status = ClientSlot()->shared.Complete(); },
                   [&] { ClientSlot()->of_communicator->Cancel(); });
  Check(std::move(status));
}

// [(parameter, by rows, [(piece, address, rows)])]
using GeoPieces = std::vector<std::tuple<std::string, std::string, Dim>>;
using GeoVariables = std::vector<std::tuple<std::string, bool, GeoPieces>>;

communicator::GeoSettings GeoSettingsOf(const GeoVariables& variables, int trainers, int push_every) {
  communicator::GeoSettings settings{.trainers = trainers, .push_every = push_every};
  for (const auto& [name, rows, pieces] : variables) {
    communicator::GeoVariable& variable =
        settings.variables.emplace_back(communicator::GeoVariable{.name = name, .rows = rows});
    for (const auto& [piece, address, count] : pieces) variable.pieces.push_back({piece, address, count});
  }
  return settings;
}

void CheckCommunicator(const ProgramBox& box, communicator::ModeName mode) {
  Check(communicator::CheckProgram(box.program, {.mode = mode}));
}

void CheckGeoCommunicator(const ProgramBox& box, const GeoVariables& variables, int trainers,
                          int push_every) {
  Check(communicator::CheckProgram(box.program, {.mode = communicator::ModeName::kGeo,
                                                 .geo = GeoSettingsOf(variables, trainers, push_every)}));
}

void StartGeoCommunicator(const ProgramBox& box, const GeoVariables& variables, int trainers,
                          int push_every) {
  Check(
      ThisProcess().communicator.Start(box.program, {.mode = communicator::ModeName::kGeo,
                                                     .geo = GeoSettingsOf(variables, trainers, push_every),
                                                     .parts = Take(process::TrainerPartsFromEnvironment())}));
}

void StartCommunicator(const ProgramBox& box, communicator::ModeName mode, std::size_t queue_max,
                       std::size_t merge_max, int patience_ms, std::size_t rounds_before_receive,
                       bool receives_apart) {
  const communicator::QueueLimits queues = {
      .queue_max = queue_max, .merge_max = merge_max, .patience = std::chrono::milliseconds(patience_ms)};
  const communicator::AsyncSettings async = {.queues = queues,
                                             .rounds_before_receive = rounds_before_receive,
                                             .receives_apart = receives_apart,
                                             .observer = &process::Diagnosis::OfThisProcess().observer()};
  Check(ThisProcess().communicator.Start(box.program, {.mode = mode, .async = async}));
}

void StopCommunicator() {
  if (ended || client_made_by != getpid()) return;
  Status status;
  RunInterruptibly([&] { status = ClientSlot()->communicator.Stop(); },
                   [&] { ClientSlot()->of_communicator->Cancel(); });
  Check(std::move(status));
}

void FlushCommunicator() {
  if (ended || client_made_by != getpid()) return;
  Status status;
  RunInterruptibly([&] { status = ClientSlot()->communicator.Flush(); },
                   [&] { ClientSlot()->of_communicator->Cancel(); });
  Check(std::move(status));
}

// Whether pservers still expect steps of this process's trainer.
bool RpcIsOpen() { return !ended && client_made_by == getpid() && ClientSlot()->shared.open(); }

// The complete steps of the job before this start of it; E-resume-early: no server has told this process. In
// geo-SGD those that the trainer has made by itself.
std::uint64_t FirstStep() {
  Result<std::uint64_t> step =
      FailedPrecondition("E-resume-early", "this process has no parameter servers yet");
  if (!ended && client_made_by == getpid()) {
    RunInterruptibly([&] { step = ClientSlot()->shared.FirstStep(); },
                     [&] { ClientSlot()->of_communicator->Cancel(); });
  }
  if (!step.ok() || *step == 0) return Take(std::move(step));
  const std::optional<std::uint64_t> own = Take(communicator::TrainerParts::StepsIn(
      Take(process::TrainerPartsFromEnvironment()), ClientSlot()->shared.trainer()));
  return own.value_or(*step);
}

client::Movable& MovableClient() {
  if (ended || client_made_by != getpid() || ClientSlot()->movable == nullptr) {
    throw StatusError(FailedPrecondition(
        "E-scale-program", "this process has no parameter servers that can be replaced by others"));
  }
  return *ClientSlot()->movable;
}

// Client::Movable. The values on their way are in the scope afterwards.
std::uint64_t StepHere() {
  client::Movable& client = MovableClient();
  Status status;
  RunInterruptibly([&] { status = ClientSlot()->of_communicator->CompleteLeft(); },
                   [&] { ClientSlot()->of_communicator->Cancel(); });
  Check(std::move(status));
  return client.step_here();
}

void MovePservers() {
  client::Movable& client = MovableClient();
  Status status;
  RunInterruptibly([&] { status = client.Move(); }, [&] { ClientSlot()->of_communicator->Cancel(); });
  Check(std::move(status));
}

// Connects with a program's servers without running it: after they were replaced by others, its part of the
// contract is theirs, too.
void AttachPservers(const ProgramBox& box) {
  Status status;
  RunInterruptibly([&] { status = ClientSlot()->of_communicator->Attach(box.program); },
                   [&] { ClientSlot()->of_communicator->Cancel(); });
  Check(std::move(status));
}

// The program that shows on which servers a program's parameters are.
std::shared_ptr<ProgramBox> WiringOf(const ProgramBox& box) {
  if (client_made_by != getpid()) return std::make_shared<ProgramBox>(box);
  return std::make_shared<ProgramBox>(ProgramBox{ClientSlot()->communicator.WiringOf(box.program)});
}

bool CommunicatorRuns() { return client_made_by == getpid() && ClientSlot()->communicator.running(); }

}  // namespace

process::JobRings& RingsOfThisProcess() {
  if (ended) throw StatusError(FailedPrecondition("E-run-late", "the process is about to end"));
  return ThisProcess().rings;
}

void ArriveInRuns() {
  if (client_made_by == getpid()) ClientSlot()->shared.set_leaves_pulls(false);
}

void NoteReaction(const Status& status) {
  const bool of_ranks = StartsWith(status.id(), "E-collective-peer") || status.id() == "E-rendezvous-gone" ||
                        status.id() == "E-rendezvous-timeout";
  if (of_ranks) process::TellLauncherOfReaction(status);
}

void LeaveRings() {
  if (ended || client_made_by != getpid()) return;
  ClientSlot()->rings.Leave(OkStatus());
  if (running == 0) ClientSlot()->rings.Disconnect();
}

void StartRingsOver(const std::string& why) {
  if (ended || client_made_by != getpid()) return;
  if (running != 0) {
    throw StatusError(FailedPrecondition("E-elastic-running", "hvd.elastic: a thread of this process runs a ",
                                         "program; end it before the ranks start over"));
  }
  ClientSlot()->rings.StartOver(why.empty() ? OkStatus() : Unavailable("E-trainer-exit", why));
}

void BindExecutor(py::module_& m) {
  py::class_<PyExecutor>(m, "Executor")
      .def(py::init<const std::string&, double>(), py::arg("wire") = "", py::arg("start_s") = 0.0)
      .def("run", &PyExecutor::Run, py::arg("program"), py::arg("scope"), py::arg("feeds"),
           py::arg("fetches"))
      .def("look_ahead", &PyExecutor::LookAhead, py::arg("program"), py::arg("names"), py::arg("next"),
           py::arg("fetches"))
      .def("serve", &PyExecutor::Serve)
      .def("end_step", &PyExecutor::EndStep)
      .def("require_open", &PyExecutor::RequireOpen)
      .def("cancel", &PyExecutor::Cancel)
      .def("close", &PyExecutor::Close);
  m.def("abandon_rpc", &AbandonRpc);
  m.def("abandon_rings", &AbandonRings);
  m.def("complete_rpc", &CompleteRpc);
  m.def("process_wire", [] { return ProcessWire(); });
  py::enum_<communicator::ModeName>(m, "CommunicatorMode")
      .value("SYNC", communicator::ModeName::kSync)
      .value("ASYNC", communicator::ModeName::kAsync)
      .value("HALF_ASYNC", communicator::ModeName::kHalfAsync)
      .value("GEO", communicator::ModeName::kGeo);
  m.def("check_communicator", &CheckCommunicator);
  m.def("start_communicator", &StartCommunicator, py::arg("program"), py::arg("mode"), py::arg("queue_max"),
        py::arg("merge_max"), py::arg("patience_ms"), py::arg("rounds_before_receive"),
        py::arg("receives_apart"));
  m.def("check_geo_communicator", &CheckGeoCommunicator);
  m.def("start_geo_communicator", &StartGeoCommunicator);
  m.def("stop_communicator", &StopCommunicator);
  m.def("communicator_runs", &CommunicatorRuns);
  m.def("flush_communicator", &FlushCommunicator);
  m.def("rpc_is_open", &RpcIsOpen);
  m.def("first_step", &FirstStep);
  m.def("step_here", &StepHere);
  m.def("move_pservers", &MovePservers);
  m.def("attach_pservers", &AttachPservers);
  m.def("wiring_of", &WiringOf);
  m.def("end_rpc", &EndRpc, py::arg("thread_failed"));
  m.def("end_child_rpc", &EndChildRpc, py::arg("why"));
}

}  // namespace penstock::python
