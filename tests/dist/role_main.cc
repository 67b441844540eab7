// Runs one role of a job as a process, for tests: runs a startup program, sets values, then serves or trains.
//
//   penstock_role --startup F --main F [--values DIR] [--job NAME] [--token T]
//     a pserver:  no more flags (its program has a listen_and_serv)
//     a trainer:  --steps N --feeds DIR --fetches A,B --save DIR
//   faults:       --die_after N     kills itself in its N-th push (trainer) or block (pserver)
//                 --headroom_mb N   limits the growth of a server's address space from its start on
//                 --ready_headroom_mb N   the same, from when the server is ready
//                 --step_delay_ms N a trainer waits this long before each step
//                 --delay_seed S    waits up to 20 ms before each push, pull and block
//                 --lossy           late, repeated and lost messages, by the delay seed (lossy_transport.h)
//
// Values, feeds (in DIR/s<step>) and saved variables (fetches in DIR/s<step>, all variables of the scope in
// DIR at the end) are files of one tensor each. Exit code: 0 success; 1 an error at run time, on standard
// error; 2 bad input.
#include <gflags/gflags.h>
#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <random>

#include "executor/client/client.h"
#include "executor/process/grpc_client.h"
#include "executor/process/grpc_server.h"
#include "executor/pserver/loop.h"
#include "executor/schedule/executor.h"
#include "executor/transport/grpc_transport.h"
#include "framework/base/files.h"
#include "framework/tensor/chunk.h"
#include "framework/tensor/serialize.h"
#include "framework/text/program_file.h"
#include "operators/all_ops.h"
#include "tests/dist/lossy_transport.h"

DEFINE_string(startup, "", "the startup program");
DEFINE_string(main, "", "the program");
DEFINE_string(values, "", "folder of values set after the startup program");
DEFINE_string(job, "", "the job's name");
DEFINE_string(token, "", "the job's token");
DEFINE_string(wire, "", "native or fluid");
DEFINE_int32(trainers, 0, "how many trainers this process is told of; 0: it is not");
DEFINE_int32(steps, 0, "steps of a trainer");
DEFINE_string(feeds, "", "folder of folders s<step>; after the last, the first again");
DEFINE_string(fetches, "", "names, by comma");
DEFINE_string(save, "", "folder that gets what was fetched and the final values");
DEFINE_int32(die_after, 0, "kills itself in its N-th push or block; 0: never");
DEFINE_uint64(delay_seed, 0, "0: no delays");
DEFINE_bool(lossy, false, "messages come late, twice or never");
DEFINE_uint64(descriptors, 0, "how many it may have; 0: as many as whoever starts it");
DEFINE_int32(headroom_mb, -1, "address space that a server may take from its start on; -1: any");
DEFINE_int32(ready_headroom_mb, -1, "the same once it is ready");
DEFINE_int32(step_delay_ms, 0, "a trainer waits so long before each step");
DEFINE_int32(table_shards, 0, "of a pserver: how many each table has that can have several; 0: by its size");
DEFINE_uint64(early_bytes, 0, "of a pserver, as PserverOptions says; 0: as many as it takes by itself");
DEFINE_int32(reconnect_ms, 60000, "how long a peer whose connection has broken is waited for");
DEFINE_string(transport, gflags::StringFromEnv("PENSTOCK_TRANSPORT", ""), "auto or tcp");
DEFINE_uint64(chunk_bytes, 0, "of a pserver; 0: as its program says");

namespace penstock::test {
namespace {

namespace fs = std::filesystem;

// Injected faults.
class Faults {
 public:
  void Delay() {
    if (FLAGS_delay_seed == 0) return;
    std::unique_lock lock(mutex_);
    const std::chrono::microseconds delay(random_() % 20'000);
    never_.wait_for(lock, delay, [] { return false; });
  }
  void Pause(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    never_.wait_for(lock, time, [] { return false; });
  }
  void CountDown() {
    const std::lock_guard lock(mutex_);
    if (FLAGS_die_after > 0 && ++count_ == FLAGS_die_after) std::raise(SIGKILL);
  }

 private:
  std::mutex mutex_;
  std::condition_variable never_;
  std::mt19937_64 random_{FLAGS_delay_seed};
  int count_ = 0;
};

class FaultyClient : public RpcClient {
 public:
  FaultyClient(RpcClient& inner, Faults& faults) : inner_(inner), faults_(faults) {}
  Status Attach(const Program& program) override { return inner_.Attach(program); }
  Result<PushHandle> DeclarePush(const RemotePiece& piece) override { return inner_.DeclarePush(piece); }
  Result<PullHandle> DeclarePull(const RemotePiece& piece) override { return inner_.DeclarePull(piece); }
  Result<RowsHandle> DeclareRows(const RemotePiece& piece) override { return inner_.DeclareRows(piece); }
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>& pservers, int id) override {
    return inner_.DeclarePeers(pservers, id);
  }
  Status Push(PushHandle piece, const Variable& value) override {
    faults_.Delay();
    faults_.CountDown();
    return inner_.Push(piece, value);
  }
  Status EndStep(PeersHandle pservers) override { return inner_.EndStep(pservers); }
  Status Pull(PullHandle piece, Variable& out) override {
    faults_.Delay();
    return inner_.Pull(piece, out);
  }
  Status PullRows(RowsHandle piece, std::span<const std::int64_t> ids, Tensor& out) override {
    faults_.Delay();
    return inner_.PullRows(piece, ids, out);
  }
  Status CompleteRows() override { return inner_.CompleteRows(); }
  Status SaveTable(PeersHandle pservers, const std::string& table,
                   const std::vector<std::string>& files) override {
    return inner_.SaveTable(pservers, table, files);
  }
  Status CompletePulls(PeersHandle pservers) override { return inner_.CompletePulls(pservers); }
  Status Complete() override { return inner_.Complete(); }
  void Cancel() override { inner_.Cancel(); }

 private:
  RpcClient& inner_;
  Faults& faults_;
};

class FaultyRunner : public BlockRunner {
 public:
  FaultyRunner(BlockRunner& inner, Faults& faults) : inner_(inner), faults_(faults) {}
  Status RunBlock(const Program& program, int block, Scope& scope) override {
    faults_.Delay();
    faults_.CountDown();
    return inner_.RunBlock(program, block, scope);
  }
  Result<std::unique_ptr<PreparedBlock>> PrepareBlock(const Program& program, int block,
                                                      std::vector<std::string> keeps) override {
    PENSTOCK_ASSIGN_OR_RETURN(auto prepared, inner_.PrepareBlock(program, block, std::move(keeps)));
    return std::unique_ptr<PreparedBlock>(std::make_unique<Faulty>(std::move(prepared), faults_));
  }

 private:
  class Faulty : public PreparedBlock {
   public:
    Faulty(std::unique_ptr<PreparedBlock> inner, Faults& faults)
        : inner_(std::move(inner)), faults_(faults) {}
    Status Run(Scope& scope) override {
      faults_.Delay();
      faults_.CountDown();
      return inner_->Run(scope);
    }

   private:
    const std::unique_ptr<PreparedBlock> inner_;
    Faults& faults_;
  };
  BlockRunner& inner_;
  Faults& faults_;
};

// Limits the address space, like `ulimit -v`.
void LeaveHeadroom(std::int32_t mb) {
  if (mb < 0) return;
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most =
      pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + (static_cast<std::size_t>(mb) << 20);
  const rlimit limit = {most, most};
  PENSTOCK_CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

void Report(const std::string& line) {
  std::cerr << line << "\n";
  if (line.find("is ready") != std::string::npos) LeaveHeadroom(FLAGS_ready_headroom_mb);
}

// The peak resident set of this process so far.
std::size_t PeakKb() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kb = 0;
    if (word == "VmHWM:" && status >> kb) return kb;
  }
  return 0;
}

Result<Tensor> ReadTensorFile(const fs::path& path) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path.string()));
  std::string_view left = bytes;
  return ReadTensor(left);
}

Status SaveTensor(const fs::path& path, const Tensor& tensor) {
  fs::create_directories(path.parent_path());
  std::string bytes;
  AppendTensor(bytes, tensor);
  return WriteFile(path.string(), bytes);
}

Result<std::vector<exec::Feed>> ReadTensors(const fs::path& folder) {
  std::vector<exec::Feed> feeds;
  for (const auto& entry : fs::directory_iterator(folder)) {
    PENSTOCK_ASSIGN_OR_RETURN(Tensor tensor, ReadTensorFile(entry.path()));
    feeds.push_back({entry.path().filename().string(), std::move(tensor)});
  }
  return feeds;
}

Status Train(exec::Executor& executor, const Program& program, Scope& scope, Faults& faults) {
  const std::vector<std::string> fetches =
      FLAGS_fetches.empty() ? std::vector<std::string>() : Split(FLAGS_fetches, ',');
  const fs::path save = FLAGS_save;
  int feed_steps = 0;
  while (fs::is_directory(fs::path(FLAGS_feeds) / StrCat("s", feed_steps))) ++feed_steps;
  for (int step = 0; step < FLAGS_steps; ++step) {
    const std::string name = StrCat("s", step);
    faults.Pause(std::chrono::milliseconds(FLAGS_step_delay_ms));
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<exec::Feed> feeds,
                              ReadTensors(fs::path(FLAGS_feeds) / StrCat("s", step % feed_steps)));
    PENSTOCK_ASSIGN_OR_RETURN(std::vector<Variable> got, executor.Run(program, scope, feeds, fetches));
    for (std::size_t i = 0; i < fetches.size(); ++i) {
      PENSTOCK_RETURN_IF_ERROR(SaveTensor(save / name / fetches[i], got[i].As<Tensor>()));
    }
  }
  return OkStatus();
}

// The tensors in a role's scope at its end.
Status SaveScope(Scope& scope) {
  if (FLAGS_save.empty()) return OkStatus();
  for (const std::string& name : scope.Names()) {
    const auto* tensor = scope.Find(name)->If<Tensor>();
    if (tensor != nullptr && tensor->initialized())
      PENSTOCK_RETURN_IF_ERROR(SaveTensor(fs::path(FLAGS_save) / name, *tensor));
  }
  return OkStatus();
}

// The transport of a role.
struct Wires {
  std::unique_ptr<LossyTransport> lossy;  // of a server; null: the server uses its own transport
  std::unique_ptr<pserver::NativeWire> wire;
  std::unique_ptr<RpcClient> client;
  std::unique_ptr<ServerLoop> server;
};

Result<Wires> MakeWires(const OpRegistry& ops, BlockRunner& runner) {
  Wires wires;
  PENSTOCK_ASSIGN_OR_RETURN(
      wires.client,
      process::MakeGrpcClient({.job = FLAGS_job,
                               .token = FLAGS_token,
                               .trainers = FLAGS_trainers,
                               .reconnect_deadline = std::chrono::milliseconds(FLAGS_reconnect_ms),
                               .carrier = FLAGS_transport,
                               .wire = FLAGS_wire,
                               .report = {}}));
  PENSTOCK_ASSIGN_OR_RETURN(
      wires.server,
      process::MakeGrpcServer(
          ops, runner,
          {.job = FLAGS_job,
           .token = FLAGS_token,
           .chunk_limit = FLAGS_chunk_bytes == 0 ? std::nullopt : std::optional(FLAGS_chunk_bytes),
           .table_shards = FLAGS_table_shards == 0 ? std::nullopt : std::optional(FLAGS_table_shards),
           .early_bytes = FLAGS_early_bytes == 0 ? std::nullopt : std::optional(FLAGS_early_bytes),
           .carrier = FLAGS_transport,
           .wire = FLAGS_wire,
           .reconnect_deadline = std::chrono::milliseconds(FLAGS_reconnect_ms),
           .report = Report}));
  return wires;
}

// Reports at its end the numbers of lost and repeated messages.
class ReportingTransport : public LossyTransport {
 public:
  using LossyTransport::LossyTransport;
  ~ReportingTransport() override {
    std::cerr << "messages lost " << lost() << " repeated " << repeated() << "\n";
  }
};

Result<Wires> MakeLossyWires(const OpRegistry& ops, BlockRunner& runner) {
  PENSTOCK_ASSIGN_OR_RETURN(const transport::Carrier carrier, transport::CarrierOf(FLAGS_transport));
  const auto lossy = [&] {
    return std::make_unique<ReportingTransport>(
        transport::MakeGrpcTransport({.token = FLAGS_token, .report = Report, .carrier = carrier}),
        FLAGS_delay_seed, MessageFaults());
  };
  client::ClientOptions client;
  client.session.job = FLAGS_job;
  client.session.resend_after = std::chrono::milliseconds(100);
  client.report = Report;
  pserver::LoopOptions loop;
  loop.threads = 2;
  loop.pserver.job = FLAGS_job;
  loop.pserver.report = Report;
  if (FLAGS_chunk_bytes != 0) loop.pserver.chunk_limit = FLAGS_chunk_bytes;
  if (FLAGS_table_shards != 0) loop.pserver.table_shards.exactly = FLAGS_table_shards;
  if (FLAGS_early_bytes != 0) loop.pserver.early_bytes = FLAGS_early_bytes;
  Wires wires;
  wires.client = std::make_unique<client::TrainerClient>(lossy(), std::move(client));
  wires.lossy = lossy();
  wires.wire = std::make_unique<pserver::NativeWire>(*wires.lossy);
  wires.server = std::make_unique<pserver::PserverLoop>(*wires.wire, ops, runner, std::move(loop));
  return wires;
}

Status Run(const Program& startup, const Program& main) {
  const OpRegistry& ops = AllOps();
  Faults faults;
  LeaveHeadroom(FLAGS_headroom_mb);
  exec::Executor executor(ops, {.threads = 1});
  FaultyRunner runner(executor, faults);
  PENSTOCK_ASSIGN_OR_RETURN(const Wires wires,
                            FLAGS_lossy ? MakeLossyWires(ops, runner) : MakeWires(ops, runner));
  FaultyClient faulty(*wires.client, faults);
  executor.set_rpc(&faulty);
  executor.set_server(wires.server.get());
  Scope scope;
  PENSTOCK_RETURN_IF_ERROR(executor.Run(startup, scope, {}, {}).status());
  if (!FLAGS_values.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<exec::Feed> values, ReadTensors(FLAGS_values));
    for (const exec::Feed& value : values) scope.FindOrCreate(value.name)->As<Tensor>() = value.tensor;
  }
  if (FLAGS_steps == 0) {
    PENSTOCK_RETURN_IF_ERROR(executor.Run(main, scope, {}, {}).status());
    std::cerr << "peak_kb " << PeakKb() << "\n";  // before the saved variables are collected
    return SaveScope(scope);
  }
  PENSTOCK_RETURN_IF_ERROR(Train(executor, main, scope, faults));
  PENSTOCK_RETURN_IF_ERROR(SaveScope(scope));
  return wires.client->Complete();
}

int Main() {
  if (FLAGS_descriptors > 0) {
    const rlimit limit{FLAGS_descriptors, FLAGS_descriptors};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
  }
  const Result<Program> startup = ReadProgramFile(FLAGS_startup);
  const Result<Program> main = ReadProgramFile(FLAGS_main);
  for (const auto* program : {&startup, &main}) {
    if (program->ok()) continue;
    std::cerr << "error: " << program->status().ToString() << "\n";
    return 2;
  }
  const Status status = Run(*startup, *main);
  if (status.ok()) return 0;
  std::cerr << "error: " << status.ToString() << "\n";
  return 1;
}

}  // namespace
}  // namespace penstock::test

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return penstock::test::Main();
}
