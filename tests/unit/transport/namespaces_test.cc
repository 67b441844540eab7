// The transport treats two network namespaces of one machine as two hosts: it uses TCP, although the user is
// the same.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <future>

#include "executor/transport/grpc_transport.h"
#include "framework/base/strings.h"

namespace penstock::test {
namespace {

using std::chrono::seconds;

constexpr char kAddress[] = "10.9.0.1:6174";
constexpr int kNotPossible = 77;  // exit code: this machine lends no namespaces

// Answers the first message when it has got all of it.
class Answers : public ConnectionHandler {
 public:
  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override {
    from->Admit();
    from->Send({StrCat(message.head, " ", message.body.size()), {}});
  }
  void OnClosed(const std::shared_ptr<Connection>&, const Status&) override {}
};

class Keeps : public ConnectionHandler {
 public:
  void OnMessage(const std::shared_ptr<Connection>&, Message message) override {
    answer.set_value(message.head);
  }
  void OnClosed(const std::shared_ptr<Connection>&, const Status&) override { over.set_value(); }
  std::promise<std::string> answer;
  std::promise<void> over;
};

std::unique_ptr<Transport> MakeTransport(std::string& told) {
  return transport::MakeGrpcTransport({.token = "secret",
                                       .report = [](auto&) {},
                                       .tell = [&told](const std::string& line) { told += line; }});
}

bool Write(const char* path, const std::string& text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  const bool done = file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  return done;
}

int RunClient() {
  std::string told;
  const auto transport = MakeTransport(told);
  Keeps handler;
  const auto connection = transport->Connect(kAddress, handler);
  connection->Send({"hello", Payload::Of(std::string(1000, 'x'))});
  std::future<std::string> answer = handler.answer.get_future();
  if (answer.wait_for(seconds(60)) != std::future_status::ready || answer.get() != "hello 1000") return 1;
  connection->Close();
  handler.over.get_future().wait_for(seconds(30));
  return told == StrCat("pserver ", kAddress, ": connected by TCP") ? 0 : 2;
}

// Two ends of a pipe, for one byte.
struct Signal {
  Signal() { EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0); }
  void Give() const { EXPECT_EQ(write(ends[1], "x", 1), 1); }
  bool Wait() const {
    char byte = 0;
    return read(ends[0], &byte, 1) == 1;
  }
  int ends[2] = {-1, -1};
};

// Joins the namespaces of this process and of the client by a pair of virtual network cards.
bool Join(pid_t client) {
  const std::string inside = StrCat("nsenter -t ", client, " -n ip ");
  const std::string commands =
      StrCat("exec 2>/dev/null; ip link add peer0 type veth peer name peer1 && ip link set peer1 netns ",
             client, " && ip addr add 10.9.0.1/24 dev peer0 && ip link set peer0 up && ", inside,
             "addr add 10.9.0.2/24 dev peer1 && ", inside, "link set peer1 up");
  return std::system(commands.c_str()) == 0;
}

int RunServer() {
  const std::string map = StrCat("0 ", getuid(), " 1");
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 || !Write("/proc/self/uid_map", map)) return kNotPossible;
  const Signal apart, listening;
  const pid_t client = fork();
  if (client == 0) {
    if (unshare(CLONE_NEWNET) != 0) _exit(kNotPossible);
    apart.Give();
    _exit(listening.Wait() ? RunClient() : kNotPossible);
  }
  if (!apart.Wait() || !Join(client)) {
    kill(client, SIGKILL);
    return kNotPossible;
  }
  std::string told;
  const auto transport = MakeTransport(told);
  Answers handler;
  const auto listener = transport->Listen(kAddress, handler);
  if (!listener.ok()) return 3;
  listening.Give();
  int status = 0;
  waitpid(client, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

// In a process of its own: a namespace cannot be left.
TEST(Namespaces, ProcessesOfTwoNamespacesUseTcp) {
  const pid_t server = fork();
  if (server == 0) _exit(RunServer());
  int status = 0;
  waitpid(server, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotPossible) GTEST_SKIP() << "this machine lends no network namespaces";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace penstock::test
