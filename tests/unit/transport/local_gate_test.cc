// The gate's second entrance, for processes of this host.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/transport/dial.h"
#include "executor/transport/gate.h"
#include "executor/transport/unix_socket.h"
#include "tests/support/raw_socket.h"
#include "tests/unit/transport/grpc_job.h"

namespace penstock::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Counts the connections through each entrance.
struct Doors {
  explicit Doors(transport::GateOptions options) {
    options.token = "secret";
    options.report = lines.sink();
    gate = transport::Gate::Open(address, std::move(options)).value();
    const Status started = gate->Start({.grpc = [this](transport::Descriptor) { ++by_tcp; },
                                        .local =
                                            [this](transport::Descriptor, const std::string& id) {
                                              gate->Admit(id);
                                              ++by_unix;
                                            }});
    EXPECT_TRUE(started.ok());
  }
  ~Doors() { gate->Stop(); }
  Result<transport::Dialed> Dial(bool local, const std::string& token = "secret") const {
    return transport::Dial(address, {.token = token, .local = local}, -1);
  }
  // The parts of the Unix socket's name, as a client receives them.
  std::string Id() const {
    transport::Nonces nonces;
    const RawSocket socket(address);
    EXPECT_TRUE(transport::ReadChallenge(socket.Read(transport::kChallengeBytes), nonces).ok());
    return {nonces.server.data(), transport::kServerIdBytes};
  }
  const std::string address = StrCat("127.0.0.1:", FreePort());
  Lines lines;
  std::atomic<int> by_tcp = 0, by_unix = 0;
  std::unique_ptr<transport::Gate> gate;
};

TEST(LocalGate, UnixSocketConnectionsReplaceTcp) {
  Doors doors({.local = true});
  Result<transport::Dialed> near = doors.Dial(true);
  ASSERT_TRUE(near.ok()) << near.status().ToString();
  EXPECT_TRUE(near->local);
  EXPECT_FALSE(doors.Dial(false)->local);
  doors.gate->Stop();
  EXPECT_EQ(doors.by_unix, 1);
  EXPECT_EQ(doors.by_tcp, 1);
  EXPECT_EQ(doors.lines.text(), "");
}

TEST(LocalGate, IsAbsentWithTlsOrWhenDisabled) {
  Doors tcp({.local = false}), tls({.tls = true, .local = true});
  EXPECT_FALSE(tcp.Dial(true)->local);
  EXPECT_FALSE(transport::Dial(tls.address, {.token = "secret", .tls = true, .local = true}, -1)->local);
  EXPECT_FALSE(transport::ConnectUnix(tls.Id()).valid());
}

TEST(LocalGate, RequiresProofOfTheToken) {
  Doors doors({.patience = milliseconds(200), .local = true});
  EXPECT_EQ(doors.Dial(true, "guess").status().id(), "E-rpc-token");
  EXPECT_TRUE(doors.lines.Has("a process of this host: its proof of the job token is wrong"));
  const transport::Descriptor silent = transport::ConnectUnix(doors.Id());
  EXPECT_TRUE(silent.valid());
  EXPECT_TRUE(doors.lines.Has("a process of this host: it did not prove the job token in time"));
  doors.gate->Stop();
  EXPECT_EQ(doors.by_unix, 0);
}

TEST(LocalGate, OtherUsersConnectByTcp) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  Doors doors({.local = true});
  const std::string id = doors.Id();
  const pid_t other = fork();
  if (other == 0) _exit(setuid(65534) == 0 && !transport::ConnectUnix(id).valid() ? 0 : 1);
  int status = 0;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(doors.lines.Has("a process of this host: it runs as another user"));
}

TEST(LocalGate, ItsSocketNameIsReleased) {
  std::string id;
  {
    Doors doors({.local = true});
    id = doors.Id();
    EXPECT_TRUE(transport::ConnectUnix(id).valid());
  }
  EXPECT_FALSE(transport::ConnectUnix(id).valid());
}

}  // namespace
}  // namespace penstock::test
