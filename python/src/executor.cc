// Executor: runs programs with the GIL released and Ctrl-C heard.
#include "executor/schedule/executor.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/pserver/failure.h"
#include "executor/rpc/grpc_client.h"
#include "executor/rpc/grpc_server.h"
#include "framework/runtime/batch_queue.h"
#include "operators/all_ops.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/program_box.h"
#include "python/src/runner.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// The process's one client of its parameter servers: a trainer is a process, whatever executors it makes.
std::unique_ptr<RpcClient>& ClientSlot() {
  static auto* slot = new std::unique_ptr<RpcClient>();
  return *slot;
}

pid_t client_made_by = 0;

RpcClient& ProcessClient() {
  std::unique_ptr<RpcClient>& client = ClientSlot();
  if (client_made_by != getpid()) {
    (void)client.release();  // a parent's; what waits in it waits in the parent
    client = Take(MakeGrpcClient(GrpcClientOptions::FromEnvironment()));
    client_made_by = getpid();
  }
  return *client;
}

std::atomic<int> running = 0;     // executors that are in a run
std::atomic<bool> ended = false;  // by EndRpc: the client is gone

struct Running {
  Running() { ++running; }
  ~Running() { --running; }
};

// At the interpreter's end: connections and gRPC's threads end before main does. A run that a daemon thread
// has not left keeps the client, for it may still use it. A child process has the client, but not its
// threads.
void EndRpc() {
  LeaveRunsBehind();
  if (running > 0 || getpid() != client_made_by) return;
  ended = true;
  const py::gil_scoped_release others;
  ClientSlot().reset();
}

// The trainer's failure in Python, for its servers: the exception's last line, and lines of its traceback.
void AbandonRpc(const std::string& message, const std::vector<std::string>& details, bool interrupted) {
  if (ended || client_made_by != getpid()) return;
  Status why = interrupted ? Cancelled("E-cancelled", message) : FailedPrecondition(kTrainerRaised, message);
  for (const std::string& line : details) why.With(line);
  const py::gil_scoped_release others;
  ClientSlot()->Abandon(why);
}

class PyExecutor {
 public:
  PyExecutor()
      : rpc_(ProcessClient()),
        executor_(AllOps(), {.rpc = &rpc_}),
        server_(Take(MakeGrpcServer(AllOps(), executor_, GrpcServerOptions::FromEnvironment()))) {
    executor_.set_server(server_.get());
  }

  std::vector<TensorHandle> Run(const ProgramBox& box, const std::shared_ptr<ScopeBox>& scope,
                                const py::list& feeds, const std::vector<std::string>& fetches) {
    const Running here;
    if (closed_ || ended)
      throw StatusError(FailedPrecondition("E-executor-closed", "the executor is closed; make a new one"));
    const ScopeInUse scope_in_use(scope);
    const std::vector<Feed> values = Feeds(feeds);
    Executor::Compiled compiled = executor_.FindCompiled(box.program, values, fetches);
    if (compiled == nullptr) compiled = Compile(box, values, fetches);
    std::optional<Result<std::vector<Variable>>> result;
    if (Executor::MayWait(*compiled)) {
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
    std::vector<TensorHandle> out;
    for (Variable& value : Take(*std::move(result))) out.emplace_back(std::move(value));
    return out;
  }

  // Tells the servers that this trainer is done, and waits until they know.
  void Close() {
    if (closed_ || ended) return;
    closed_ = true;
    Status status;
    RunInterruptibly([&] { status = rpc_.Complete(); }, [&] { rpc_.Cancel(); });
    Check(std::move(status));
  }

 private:
  Executor::Compiled Compile(const ProgramBox& box, const std::vector<Feed>& feeds,
                             const std::vector<std::string>& fetches) {
    // A copy shares everything; it stays as it is when another Python thread changes the program meanwhile.
    const Program program = box.program;
    std::optional<Result<Executor::Compiled>> compiled;
    RunHere([&](const std::function<bool()>&) { compiled = executor_.Compile(program, feeds, fetches); });
    return Take(*std::move(compiled));
  }

  // [(name, LoDTensor or array)]
  static std::vector<Feed> Feeds(const py::list& feeds) {
    std::vector<Feed> out;
    for (const py::handle& feed : feeds) {
      const auto [name, value] = feed.cast<std::pair<std::string, py::object>>();
      const bool is_tensor = py::isinstance<TensorHandle>(value);
      out.push_back({name, is_tensor ? value.cast<const TensorHandle&>().tensor() : BorrowArray(value)});
    }
    return out;
  }

  RpcClient& rpc_;
  Executor executor_;
  std::unique_ptr<ServerLoop> server_;
  bool closed_ = false;
};

}  // namespace

void BindExecutor(py::module_& m) {
  py::class_<PyExecutor>(m, "Executor")
      .def(py::init<>())
      .def("run", &PyExecutor::Run)
      .def("close", &PyExecutor::Close);
  m.def("abandon_rpc", &AbandonRpc);
  m.def("end_rpc", &EndRpc);
}

}  // namespace penstock::python
