// Bindings of keys on pservers: KeyClient of a worker, and the server of keys.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/client/client.h"
#include "executor/client/key_client.h"
#include "executor/process/diagnosis.h"
#include "executor/process/grpc_client.h"
#include "executor/process/grpc_server.h"
#include "executor/protocol/failure.h"
#include "executor/schedule/executor.h"
#include "framework/base/environment.h"
#include "framework/base/log.h"
#include "framework/base/strings.h"
#include "operators/all_ops.h"
#include "python/src/bind.h"
#include "python/src/buffer_view.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/runner.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using client::KeyClient;

DType TypeNamed(const std::string& name) {
  static const std::vector<std::pair<std::string, DType>> kTypes = {
      {"float32", DType::kFp32}, {"float64", DType::kFp64}, {"float16", DType::kFp16},
      {"int8", DType::kInt8},    {"uint8", DType::kUInt8},  {"int16", DType::kInt16},
      {"int32", DType::kInt32},  {"int64", DType::kInt64}};
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  throw StatusError(InvalidArgument("E-kv-key-type", "a key cannot be of type ", Quote(name),
                                    "; use float16/32/64, int8/16/32/64 or uint8"));
}

DType TypeOfElements(const BufferView& view) {
  const std::optional<DType> type = view.dtype();
  if (type && *type != DType::kBool) return *type;
  throw StatusError(InvalidArgument("E-kv-array", "an array of element format ",
                                    Quote((*view).format == nullptr ? "B" : (*view).format),
                                    " is no value of a key"));
}

// The memory of an array, which must be contiguous. It is freed with the GIL: no lock is held with the GIL
// while the client is called.
Tensor TensorOf(py::handle array, bool writes) {
  auto view = std::make_shared<BufferView>(array, "key");
  if (!view->contiguous() || (writes && (*view)->readonly != 0)) {
    throw StatusError(InvalidArgument("E-kv-array", "the array must be contiguous",
                                      writes ? " and writable" : "", "; use numpy.ascontiguousarray"));
  }
  const DType type = TypeOfElements(*view);
  if (!view->aligned(SizeOf(type)))
    throw StatusError(InvalidArgument("E-kv-array", "the array must be aligned; use array.copy()"));
  Shape shape;  // an array without extents has none here
  for (int i = 0; i < (*view)->ndim; ++i) shape.Append((*view)->shape[i]);
  void* const data = (*view)->buf;
  const auto bytes = static_cast<std::size_t>((*view)->len);
  return Tensor(type, shape, Buffer::Borrow(data, bytes, std::move(view)), 0);
}

std::vector<std::int64_t> RowsOf(py::handle array) {
  const Tensor rows = TensorOf(array, false);
  if (rows.dtype() != DType::kInt64)
    throw StatusError(
        InvalidArgument("E-kv-array", "row numbers must be int64, not ", DTypeName(rows.dtype())));
  const auto numbers = rows.Span<std::int64_t>();
  return {numbers.begin(), numbers.end()};
}

// A client and its connections. Every call releases the GIL.
struct Store {
  std::unique_ptr<client::TrainerClient> trainer;
  std::unique_ptr<KeyClient> keys;

  // The first error of `call`, which may wait; Ctrl-C ends the job for this worker.
  void Wait(const std::function<Status()>& call) const {
    Status status;
    RunInterruptibly([&] { status = call(); }, [&] { trainer->Cancel(); });
    Check(std::move(status));
  }
  void Prepare(int key) const { Prepare(std::vector<int>{key}); }
  // Before a push: it may have to wait at the cut of a checkpoint.
  void PrepareToPush(const std::vector<int>& handles) const {
    Prepare(handles);
    bool waits = false;
    {
      const GilReleased others;
      waits = keys->IsAtCut(handles);
    }
    if (waits) Wait([&] { return keys->PassCut(handles); });
  }
  void Prepare(const std::vector<int>& handles) const {
    const auto is_ready = [&](int key) { return keys->IsReady(key); };
    auto waits = handles.end();
    {
      const GilReleased others;
      waits = std::ranges::find_if_not(handles, is_ready);
    }
    for (; waits != handles.end(); ++waits) Wait([&] { return keys->WaitUntilReady(*waits); });
  }
};

// What exit() calls with the process's status, after Python has ended: only here is that of `sys.exit(3)`
// known. The stores are never destroyed: threads may use them until the process is gone.
std::vector<std::shared_ptr<Store>>& StoresThatEnd() {
  static auto* const stores = new std::vector<std::shared_ptr<Store>>();
  return *stores;
}

void EndStores(int status, void* of_process) {
  if (getpid() != static_cast<pid_t>(reinterpret_cast<std::intptr_t>(of_process))) return;  // a forked child
  const int code = status & 0xff;
  for (const std::shared_ptr<Store>& store : StoresThatEnd()) {
    if (code != 0) {
      store->trainer->Abandon(Unavailable("E-trainer-exit", "its process ended with exit code ", code,
                                          " before it had completed"));
      continue;
    }
    const Status completed = store->keys->Complete();
    if (!completed.ok()) Log(LogSeverity::kError, StrCat("at exit: ", completed));
  }
  if (code == 0) process::Diagnosis::OfThisProcess().End();
}

class Ticket {
 public:
  Ticket(std::shared_ptr<Store> store, KeyClient::Ticket work)
      : store_(std::move(store)), work_(std::move(work)) {}
  ~Ticket() {
    const GilReleased others;
    work_.reset();
  }
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  bool Done() const {
    const GilReleased others;
    return store_->keys->Done(work_);
  }
  void Wait() const {
    if (Done()) {
      Status status;
      {
        const GilReleased others;
        status = store_->keys->WaitFor(work_);
      }
      return Check(std::move(status));
    }
    store_->Wait([&] { return store_->keys->WaitFor(work_); });
  }

 private:
  std::shared_ptr<Store> store_;
  KeyClient::Ticket work_;
};

class PyKeyClient {
 public:
  PyKeyClient(const std::vector<std::string>& servers, int rank, int workers, bool sync, std::int64_t bound,
              const std::optional<std::string>& job, const std::optional<std::string>& token)
      : rank_(rank), workers_(workers) {
    Check(env::CheckAll());
    process::GrpcClientOptions options = Take(process::GrpcClientOptions::FromEnvironment());
    options.trainers = workers;
    if (job) options.job = *job;
    if (token) options.token = *token;
    store_->trainer = Take(process::MakeKeyTrainer(std::move(options), rank));
    client::TrainerClient& trainer = *store_->trainer;
    store_->keys = std::make_unique<KeyClient>(
        trainer.session(), [&trainer](const std::function<bool()>& answer) { return trainer.Wait(answer); },
        client::KeyClientOptions{
            .servers = servers, .rank = rank, .workers = workers, .sync = sync, .bound = bound});
    Status status;
    {
      const GilReleased others;
      status = store_->keys->Attach();
    }
    Check(std::move(status));
  }
  ~PyKeyClient() {
    const GilReleased others;
    store_.reset();
  }
  PyKeyClient(const PyKeyClient&) = delete;
  PyKeyClient& operator=(const PyKeyClient&) = delete;

  int rank() const { return rank_; }
  int workers() const { return workers_; }

  int Declare(const std::string& name, const std::string& dtype, const std::vector<Dim>& shape, bool rows,
              const py::object& value) {
    const client::KeyType type{
        .name = name, .dtype = TypeNamed(dtype), .shape = Shape(std::span<const Dim>(shape)), .rows = rows};
    Tensor initial = value.is_none() || rank_ != 0 ? Tensor() : TensorOf(value, false);
    return Call<int>([&] { return keys().Declare(type, initial); });
  }
  int DeclareTable(const std::string& name, const std::string& dtype, Dim width, const std::string& spec) {
    return Call<int>([&] { return keys().DeclareTable(name, TypeNamed(dtype), width, spec); });
  }
  std::unique_ptr<Ticket> Push(int key, const py::object& value, int priority) {
    const Tensor tensor = TensorOf(value, false);
    Open().PrepareToPush({key});
    return TicketOf([&] { return keys().Push(key, tensor, priority); });
  }
  std::unique_ptr<Ticket> PushAll(const std::vector<int>& handles, const std::vector<py::object>& values,
                                  int priority) {
    const std::vector<KeyClient::Given> given = GivenOf(handles, values, false);
    Open().PrepareToPush(handles);
    return TicketOf([&] { return keys().PushAll(given, priority); });
  }
  std::unique_ptr<Ticket> PullAll(const std::vector<int>& handles, const std::vector<py::object>& outs,
                                  int /*priority*/) {
    const std::vector<KeyClient::Given> given = GivenOf(handles, outs, true);
    return TicketOf([&] { return keys().PullAll(given); });
  }
  std::unique_ptr<Ticket> PushRows(int key, const py::object& rows, const py::object& values, int priority) {
    const std::vector<std::int64_t> numbers = RowsOf(rows);
    const Tensor tensor = TensorOf(values, false);
    Open().PrepareToPush({key});
    return TicketOf([&] { return keys().PushRows(key, numbers, tensor, priority); });
  }
  std::unique_ptr<Ticket> Pull(int key, const py::object& out, int /*priority*/) {
    const Tensor tensor = TensorOf(out, true);
    Open().Prepare(key);
    return TicketOf([&] { return keys().Pull(key, tensor); });
  }
  std::unique_ptr<Ticket> PullRows(int key, const py::object& rows, const py::object& out, int /*priority*/) {
    const std::vector<std::int64_t> numbers = RowsOf(rows);
    const Tensor tensor = TensorOf(out, true);
    Open().Prepare(key);
    return TicketOf([&] { return keys().PullRows(key, numbers, tensor); });
  }
  void SetOptimizer(const std::string& text, bool keep_state) {
    Open().Wait([&] { return keys().SetOptimizer(text, keep_state); });
  }
  void SetCompression(float threshold) {
    Open().Wait([&] { return keys().SetCompression(threshold); });
  }
  void Barrier() {
    Open().Wait([&] { return keys().Barrier(); });
  }
  std::uint64_t Rounds(int key) {
    Open().Prepare(key);
    return Call<std::uint64_t>([&] { return keys().Rounds(key); });
  }
  std::uint64_t GoneWorkers() {
    std::uint64_t gone = 0;
    Open().Wait([&] {
      Result<std::uint64_t> counted = keys().GoneWorkers();
      if (counted.ok()) gone = *counted;
      return std::move(counted).status();
    });
    return gone;
  }
  std::uint64_t LostServers() {
    Open();
    const GilReleased others;
    return keys().LostServers();
  }
  void Wait() {
    Open().Wait([&] { return keys().WaitForAll(); });
  }
  void Complete() {
    if (store_ == nullptr || completed_) return;
    store_->Wait([&] { return keys().Complete(); });
    completed_ = true;
    process::Diagnosis::OfThisProcess().End();
  }
  // Completes when the process ends with status 0, and abandons otherwise.
  void EndWithProcess() {
    if (store_ == nullptr || std::exchange(completed_, true)) return;
    StoresThatEnd().push_back(store_);
    if (StoresThatEnd().size() == 1) on_exit(&EndStores, reinterpret_cast<void*>(std::intptr_t{getpid()}));
  }
  void Abandon(const std::string& reason) {
    if (store_ == nullptr || completed_) return;
    const GilReleased others;
    store_->trainer->Abandon(FailedPrecondition(protocol::kTrainerRaised, reason));
  }
  // Tickets that still live keep the connections.
  void Close() {
    const GilReleased others;
    store_.reset();
  }

 private:
  KeyClient& keys() { return *store_->keys; }
  std::vector<KeyClient::Given> GivenOf(const std::vector<int>& handles,
                                        const std::vector<py::object>& arrays, bool writes) {
    if (arrays.size() != handles.size()) {
      throw StatusError(InvalidArgument("E-kv-array", handles.size(), " keys come with ", arrays.size(),
                                        " arrays; give one for each"));
    }
    std::vector<KeyClient::Given> given;
    given.reserve(handles.size());
    for (std::size_t i = 0; i < handles.size(); ++i)
      given.push_back({handles[i], TensorOf(arrays[i], writes)});
    Open().Prepare(handles);
    return given;
  }
  Store& Open() {
    if (store_ == nullptr) throw StatusError(FailedPrecondition("E-kv-closed", "the key client is closed"));
    return *store_;
  }
  template <typename T>
  T Call(const std::function<Result<T>()>& call) {
    Open();
    std::optional<Result<T>> result;
    {
      const GilReleased others;
      result.emplace(call());
    }
    return Take(*std::move(result));
  }
  std::unique_ptr<Ticket> TicketOf(const std::function<Result<KeyClient::Ticket>()>& call) {
    return std::make_unique<Ticket>(store_, Call<KeyClient::Ticket>(call));
  }

  const int rank_, workers_;
  bool completed_ = false;
  std::shared_ptr<Store> store_ = std::make_shared<Store>();
};

void ServeKeys(const std::string& address, int workers, const std::optional<std::string>& job,
               const std::optional<std::string>& token, int threads) {
  Check(env::CheckAll());
  process::GrpcServerOptions options = Take(process::GrpcServerOptions::FromEnvironment());
  if (job) options.job = *job;
  if (token) options.token = *token;
  options.threads = threads;
  exec::Executor executor(AllOps(), {});
  const std::unique_ptr<process::KeyServer> server =
      Take(process::MakeKeyServer(AllOps(), executor, std::move(options)));
  Status status;
  RunInterruptibly([&] { status = server->ServeKeys(address, workers); }, [&] { server->CancelKeys(); });
  Check(std::move(status));
}

}  // namespace

void BindKeyStore(py::module_& m) {
  py::class_<Ticket>(m, "KvTicket").def("done", &Ticket::Done).def("wait", &Ticket::Wait);
  py::class_<PyKeyClient>(m, "KvClient")
      .def(py::init<const std::vector<std::string>&, int, int, bool, std::int64_t,
                    const std::optional<std::string>&, const std::optional<std::string>&>(),
           py::arg("servers"), py::arg("rank"), py::arg("workers"), py::kw_only(), py::arg("sync") = true,
           py::arg("bound") = 1'000'000, py::arg("job") = py::none(), py::arg("token") = py::none())
      .def_property_readonly("rank", &PyKeyClient::rank)
      .def_property_readonly("workers", &PyKeyClient::workers)
      .def("declare", &PyKeyClient::Declare, py::arg("name"), py::arg("dtype"), py::arg("shape"),
           py::arg("rows") = false, py::arg("value") = py::none())
      .def("declare_table", &PyKeyClient::DeclareTable, py::arg("name"), py::arg("dtype"), py::arg("width"),
           py::arg("spec"))
      .def("push", &PyKeyClient::Push, py::arg("handle"), py::arg("value"), py::arg("priority") = 0)
      .def("push_rows", &PyKeyClient::PushRows, py::arg("handle"), py::arg("rows"), py::arg("values"),
           py::arg("priority") = 0)
      .def("pull", &PyKeyClient::Pull, py::arg("handle"), py::arg("out"), py::arg("priority") = 0)
      .def("push_all", &PyKeyClient::PushAll, py::arg("handles"), py::arg("values"), py::arg("priority") = 0)
      .def("pull_all", &PyKeyClient::PullAll, py::arg("handles"), py::arg("outs"), py::arg("priority") = 0)
      .def("pull_rows", &PyKeyClient::PullRows, py::arg("handle"), py::arg("rows"), py::arg("out"),
           py::arg("priority") = 0)
      .def("set_optimizer", &PyKeyClient::SetOptimizer, py::arg("text"), py::arg("keep_state") = false)
      .def("set_compression", &PyKeyClient::SetCompression, py::arg("threshold"))
      .def("barrier", &PyKeyClient::Barrier)
      .def("rounds", &PyKeyClient::Rounds, py::arg("handle"))
      .def("gone_workers", &PyKeyClient::GoneWorkers)
      .def("lost_servers", &PyKeyClient::LostServers)
      .def("wait", &PyKeyClient::Wait)
      .def("complete", &PyKeyClient::Complete)
      .def("end_with_process", &PyKeyClient::EndWithProcess)
      .def("abandon", &PyKeyClient::Abandon, py::arg("reason"))
      .def("close", &PyKeyClient::Close);
  m.def("serve_keys", &ServeKeys, py::arg("address"), py::arg("workers"), py::arg("job") = py::none(),
        py::arg("token") = py::none(), py::arg("threads") = 0);
}

}  // namespace penstock::python
