// Ranks as forked processes. This process must not start threads, because it forks them.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/collective/rendezvous/store.h"
#include "executor/process/job_store.h"
#include "executor/transport/grpc_transport.h"
#include "tests/support/free_port.h"

namespace penstock::rendezvous {
namespace {

// A forked process that runs `part` and reports how it ended. The destructor kills it.
class Forked {
 public:
  template <typename Part>
  explicit Forked(const Part& part) {
    int ends[2];
    if (pipe(ends) != 0) return;
    process_ = fork();
    if (process_ == 0) {
      part(ends[1]);
      _exit(0);
    }
    close(ends[1]);
    said_ = ends[0];
  }
  ~Forked() {
    Kill();
    close(said_);
  }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  void Kill() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  // The next line that it prints, or the part of it after 30 s.
  std::string Line() const {
    std::string line;
    pollfd polled{said_, POLLIN, 0};
    char c = 0;
    while (poll(&polled, 1, 30'000) == 1 && read(said_, &c, 1) == 1 && c != '\n') line += c;
    return line;
  }

 private:
  pid_t process_ = -1;
  int said_ = -1;
};

std::unique_ptr<Transport> MakeTransport() {
  return transport::MakeGrpcTransport(
      {.token = "secret",
       .carrier = transport::CarrierOf(ProcessEnvironment()("PENSTOCK_TRANSPORT")).value(),
       .tell = [](auto&) {}});
}

void Say(int to, const std::string& line) { (void)!write(to, (line + "\n").data(), line.size() + 1); }

TEST(Processes, WaitingRanksLearnOfAKilledRank) {
  std::vector<std::string> addresses;
  for (int i = 0; i < 3; ++i) addresses.push_back(StrCat("127.0.0.1:", test::FreePort()));
  const auto rank = [&](int number) {
    return [&addresses, number](int to) {
      const auto transport = MakeTransport();
      auto store = Store::Join(*transport, {.job = "job", .rank = number, .addresses = addresses});
      Say(to, store.status().ToString());
      if (store.ok())
        Say(to, (number == 1 ? (*store)->Get("k").status() : (*store)->Barrier("b")).ToString());
    };
  };
  const Forked rank0(rank(0)), rank1(rank(1));
  Forked rank2([&](int to) {
    const auto transport = MakeTransport();
    const auto store = Store::Join(*transport, {.job = "job", .rank = 2, .addresses = addresses});
    Say(to, store.status().ToString());
    pause();
  });
  for (const Forked* process : {&rank0, &rank1, static_cast<const Forked*>(&rank2)})
    EXPECT_EQ(process->Line(), "ok");
  rank2.Kill();
  for (const Forked* process : {&rank0, &rank1}) {
    const std::string end = process->Line();
    EXPECT_EQ(end.find(StrCat("rank 2 (", addresses[2], ") is gone: ")), 0u) << end;
    EXPECT_NE(end.find("[E-rendezvous-gone]"), std::string::npos) << end;
  }
}

TEST(Processes, WaitingRanksLearnOfAKilledRankZero) {
  std::vector<std::string> addresses;
  for (int i = 0; i < 2; ++i) addresses.push_back(StrCat("127.0.0.1:", test::FreePort()));
  Forked rank0([&](int to) {
    const auto transport = MakeTransport();
    const auto store = Store::Join(*transport, {.job = "job", .rank = 0, .addresses = addresses});
    Say(to, store.status().ToString());
    pause();
  });
  const Forked rank1([&](int to) {
    const auto transport = MakeTransport();
    const auto store = Store::Join(*transport, {.job = "job", .rank = 1, .addresses = addresses});
    Say(to, store.status().ToString());
    if (store.ok()) Say(to, (*store)->Barrier("b").ToString());
  });
  EXPECT_EQ(rank0.Line(), "ok");
  EXPECT_EQ(rank1.Line(), "ok");
  rank0.Kill();
  const std::string end = rank1.Line();
  EXPECT_EQ(end.find(StrCat("rank 0 (", addresses[0], "), which keeps the store, is gone")), 0u) << end;
}

// As the launcher sets it.
Status JoinFromEnvironment() {
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<JoinFacts> facts, FactsOfEnvironment(ProcessEnvironment()));
  PENSTOCK_ASSIGN_OR_RETURN(const process::JobStore job,
                            process::JoinJobStore(*facts, std::chrono::minutes(15)));
  return job.store->Barrier("start");
}

TEST(Processes, MeetByTheLaunchersEnvironment) {
  const std::string addresses = StrCat("127.0.0.1:", test::FreePort(), ",127.0.0.1:", test::FreePort(),
                                       ",127.0.0.1:", test::FreePort());
  const auto rank = [&](const char* number, const char* token) {
    return [&addresses, number, token](int to) {
      setenv("PADDLE_TRAINER_ENDPOINTS", addresses.c_str(), 1);
      setenv("PADDLE_TRAINERS_NUM", "3", 1);
      setenv("PADDLE_TRAINER_ID", number, 1);
      setenv("PENSTOCK_JOB_ID", "j", 1);
      setenv("PENSTOCK_JOB_TOKEN", token, 1);
      Say(to, JoinFromEnvironment().ToString());
    };
  };
  const Forked rank0(rank("0", "secret")), rank1(rank("1", "secret")), stranger(rank("2", "guess"));
  EXPECT_NE(stranger.Line().find("[E-rpc-token]"), std::string::npos);
  const Forked rank2(rank("2", "secret"));
  for (const Forked* process : {&rank0, &rank1, &rank2}) EXPECT_EQ(process->Line(), "ok");
}

}  // namespace
}  // namespace penstock::rendezvous
