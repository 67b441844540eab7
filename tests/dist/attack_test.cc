// A process that reaches a server's port without the job's token cannot affect a running job. Trainer 0
// trains, and trainer 1 starts at the height of the attack; the job ends with the same bytes as without an
// attack.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "executor/transport/grpc_transport.h"
#include "framework/base/files.h"
#include "framework/ir/edit.h"
#include "tests/dist/job.h"
#include "tests/support/linear_sgd.h"
#include "tests/support/raw_socket.h"
#include "tests/support/run_program.h"

namespace penstock::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr long kGrowthMaxKb = 32 << 10;
constexpr long kLogLinesMax = 100;
constexpr int kSteps = 20;

// A line of /proc/<pid>/status in kB.
long MemoryKb(const Process& process, const std::string& field) {
  const std::string status = ReadFile(StrCat("/proc/", process.pid(), "/status")).value();
  const std::size_t at = status.find(field + ":");
  return at == std::string::npos ? -1 : std::stol(status.substr(at + field.size() + 1));
}

class Attacked {
 public:
  explicit Attacked(std::string token = "a secret of this job") : job_(Roles("trainer"), Roles("pserver")) {
    job_.token = std::move(token);
    for (int i = 0; i < 2; ++i) {
      job_.trainer(i).feeds = {{{"x", Constant({4, 13}, 0.01f)}, {"y", Constant({4, 1}, 0.02f)}}};
      job_.trainer(i).flags = {StrCat("--steps=", kSteps)};
    }
  }
  // Starts the servers, limited to 256 file descriptors, and trainer 0; returns when both servers listen.
  void Begin() {
    for (int i = 0; i < 2; ++i) servers_[i] = &job_.StartPserver(i, {"--descriptors=256"});
    trainers_[0] = &job_.StartTrainer(0);
    for (int i = 0; i < 2; ++i) {
      WaitUntilReady(i);
      before_[i] = MemoryKb(*servers_[i], "VmRSS");
    }
  }
  // Starts trainer 1. Expects the final values of an undisturbed job, and little memory and few log lines.
  void End() {
    trainers_[1] = &job_.StartTrainer(1);
    for (Process* trainer : trainers_) EXPECT_EQ(trainer->Wait(seconds(60)), 0) << job_.Logs();
    long peak[2];
    for (int i = 0; i < 2; ++i) {
      peak[i] = peak_[i];
      EXPECT_EQ(servers_[i]->Wait(seconds(60)), 0) << job_.Logs();
      EXPECT_LE(peak[i] - before_[i], kGrowthMaxKb) << "pserver " << i;
      testing::Test::RecordProperty(StrCat("pserver_", i, "_growth_kb"),
                                    static_cast<int>(peak[i] - before_[i]));
      const std::string log = servers_[i]->Log();
      EXPECT_LE(std::count(log.begin(), log.end(), '\n'), kLogLinesMax) << log.substr(0, 4000);
    }
    Attacked calm;
    ASSERT_TRUE(calm.job_.Run(seconds(120))) << calm.job_.Logs();
    for (int t = 0; t < 2; ++t) ExpectSame(job_.Final(t), calm.job_.Final(t));
  }
  // Call it while the attack continues and the server lives.
  void MeasureMemory() {
    for (int i = 0; i < 2; ++i) peak_[i] = std::max(peak_[i], MemoryKb(*servers_[i], "VmHWM"));
  }
  const std::string& address(int server) const { return job_.address(server); }
  Job& job() { return job_; }
  Process& server(int i) { return *servers_[i]; }

 private:
  void WaitUntilReady(int server) {
    const auto end = std::chrono::steady_clock::now() + seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      const RawSocket knock(address(server));
      if (knock.connected() && !knock.Read(1).empty()) return;
    }
    FAIL() << job_.Logs();
  }
  static void ExpectSame(const Arrays& a, const Arrays& b) {
    ASSERT_EQ(a.size(), b.size());
    ASSERT_FALSE(a.empty());
    for (const auto& [name, tensor] : a) {
      ASSERT_TRUE(b.contains(name)) << name;
      ASSERT_EQ(tensor.bytes(), b.at(name).bytes()) << name;
      EXPECT_EQ(std::memcmp(tensor.raw(), b.at(name).raw(), tensor.bytes()), 0) << name;
    }
  }

  Job job_;
  Process* servers_[2] = {};
  Process* trainers_[2] = {};
  long before_[2] = {}, peak_[2] = {};
};

TEST(Attack, IdleConnectionsDoNotBlockTrainers) {
  Attacked job;
  job.Begin();
  std::vector<RawSocket> idle;
  for (int i = 0; i < 300; ++i) idle.emplace_back(job.address(i % 2 == 0 ? 0 : 1));
  for (int i = 0; i < 300; ++i) idle.emplace_back(job.address(0));
  job.MeasureMemory();
  job.End();
}

TEST(Attack, PartialMessagesOfManyConnectionsTakeNoMemory) {
  ASSERT_TRUE(AllowDescriptors(4000)) << "ulimit -n";
  Attacked job;
  job.Begin();
  std::vector<RawSocket> idle;
  const std::string http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9);
  for (int i = 0; i < 160; ++i) {
    idle.emplace_back(job.address(0));
    idle.back().Send(std::string("PNS\x02", 4) + std::string(60, 'x'));  // all but the last bytes of a proof
    idle.emplace_back(job.address(0));
    idle.back().Send(http2 + std::string(4 << 20, 'x'));
  }
  for (int i = 0; i < 3000; ++i) idle.emplace_back(job.address(0));
  job.MeasureMemory();
  job.End();
}

// Messages without a proof of the token are only bytes.
TEST(Attack, FramesOfEmptyMessagesAreLoggedInFewLines) {
  Attacked job;
  job.Begin();
  for (int i = 0; i < 20; ++i) {
    const RawSocket socket(job.address(i % 2));
    socket.Send(std::string(4 << 20, '\0'));
    EXPECT_TRUE(socket.IsClosed());
  }
  job.MeasureMemory();
  job.End();
}

// Makes the trainer of a job talk to these servers.
void SendTo(Role& role, const std::map<std::string, std::string>& addresses) {
  for (Program* program : {&role.startup, &role.main}) *program = WithAddresses(*program, addresses);
}

// A trainer of another job with this id, started without a token, as the trainers here are.
TEST(Attack, ATrainerOfAnotherJobEndsNoJobWithoutToken) {
  Attacked job("");
  job.Begin();
  Job stray(Roles("trainer"), Roles("pserver"));
  stray.token = "";
  Role& role = stray.trainer(0);
  for (Program* program : {&role.startup, &role.main}) {
    ProgramEdit edit(*program);
    for (const OpEntry& entry : program->main().ops()) {
      if (entry.op->FindAttr("trainer_id") == nullptr) continue;
      edit.main().Replace(entry.id, Op(*entry.op).Set("trainer_id", std::int32_t{7}));
    }
    *program = edit.Apply().value();
  }
  SendTo(role, {{stray.address(0), job.address(0)}, {stray.address(1), job.address(1)}});
  role.feeds = {{{"x", Constant({4, 13}, 0.01f)}, {"y", Constant({4, 1}, 0.02f)}}};
  Process& lost = stray.StartTrainer(0);
  EXPECT_EQ(lost.Wait(seconds(60)), 1) << lost.Log();
  EXPECT_NE(lost.Log().find("trainer_id 7 is out of range"), std::string::npos) << lost.Log();
  job.MeasureMemory();
  job.End();
  EXPECT_NE(job.server(0).Log().find("warning: no job token is set (PENSTOCK_JOB_TOKEN)"), std::string::npos)
      << job.server(0).Log();
}

class Ignored : public ConnectionHandler {
 public:
  void OnMessage(const std::shared_ptr<Connection>&, Message) override {}
  void OnClosed(const std::shared_ptr<Connection>&, const Status&) override {
    const std::lock_guard lock(mutex_);
    ++closed_;
    changed_.notify_all();
  }
  // Whether `count` connections were closed within two minutes.
  bool Closed(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, seconds(120), [&] { return closed_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int closed_ = 0;
};

// Without a token, any process can send the first message.
TEST(Attack, LargeFirstMessagesWithoutATokenTakeNoMemory) {
  Attacked job("");
  job.Begin();
  constexpr int kCount = 12;
  Ignored handler;
  const auto transport = transport::MakeGrpcTransport({.report = [](const std::string&) {}});
  const Payload large = Payload::Of(std::string(4 << 20, 'x'));
  std::vector<std::shared_ptr<Connection>> connections;
  for (int i = 0; i < kCount; ++i) {
    connections.push_back(transport->Connect(job.address(0), handler));
    for (int k = 0; k < 10; ++k) connections.back()->Send({"x", large});
  }
  EXPECT_TRUE(handler.Closed(kCount));
  for (const auto& connection : connections) connection->Abort();
  job.MeasureMemory();
  job.End();
}

// A proxy between a trainer and its server that records the trainer's bytes.
class Recorder {
 public:
  explicit Recorder(std::string server) : server_(std::move(server)), thread_([this] { Run(); }) {}
  ~Recorder() {
    done_ = true;
    thread_.join();
  }
  const std::string& address() const { return door_.address(); }
  // Waits until `bytes` bytes are recorded, at most a minute; returns the recorded bytes.
  std::string Heard(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, seconds(60), [&] { return heard_.size() >= bytes; });
    return heard_;
  }

 private:
  void Run() {
    while (!done_) {  // a server that has not started rejects connections, and the trainer retries
      const RawSocket trainer = door_.Accept(done_);
      const RawSocket server(server_);
      if (trainer.connected() && server.connected()) return Carry(trainer, server);
    }
  }
  void Carry(const RawSocket& trainer, const RawSocket& server) {
    while (!done_) {
      const std::optional<std::string> said = trainer.ReadSome(milliseconds(5));
      const std::optional<std::string> answered = server.ReadSome(milliseconds(5));
      if (!said || !answered) return;
      server.SendAll(*said);
      trainer.SendAll(*answered);
      const std::lock_guard lock(mutex_);
      heard_ += *said;
      changed_.notify_all();
    }
  }

  const std::string server_;
  const RawListener door_;
  std::atomic<bool> done_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string heard_;
  std::thread thread_;
};

TEST(Attack, AReplayedHelloIsRefused) {
  Attacked job;
  Recorder recorder(job.address(0));
  SendTo(job.job().trainer(0), {{job.address(0), recorder.address()}});
  job.job().trainer(0).flags.push_back(
      "--transport=tcp");  // otherwise it only says that it uses another transport
  job.Begin();
  const std::string heard = recorder.Heard(1000);  // the proof (72 bytes), and the hello behind it
  ASSERT_GE(heard.size(), 1000u);
  EXPECT_EQ(heard.find("a secret of this job"), std::string::npos);
  for (int i = 0; i < 3; ++i) {
    const RawSocket replay(job.address(0));
    EXPECT_EQ(replay.Read(40).size(), 40u);
    replay.Send(heard);
    EXPECT_EQ(replay.Read(5), std::string("PNS\x02\x01", 5));  // the token is wrong
    EXPECT_TRUE(replay.IsClosed());
  }
  job.MeasureMemory();
  job.End();
  EXPECT_NE(job.server(0).Log().find("its proof of the job token is wrong"), std::string::npos)
      << job.server(0).Log();
}

}  // namespace
}  // namespace penstock::test
