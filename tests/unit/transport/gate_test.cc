// How a server treats connections that have not proved the job's token and may come from anyone.
#include "executor/transport/gate.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <future>

#include "executor/transport/dial.h"
#include "executor/transport/grpc_transport.h"
#include "tests/support/raw_socket.h"
#include "tests/unit/transport/grpc_job.h"

namespace penstock::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Accepts all messages.
class Door {
 public:
  explicit Door(transport::GateOptions options, Nanoseconds patience = seconds(20)) {
    options.report = lines_.sink();
    options.patience = patience;
    gate_ = transport::Gate::Open(address_, std::move(options)).value();
    EXPECT_TRUE(gate_
                    ->Start({.grpc =
                                 [this](transport::Descriptor socket) {
                                   const std::lock_guard lock(mutex_);
                                   entered_.push_back(std::move(socket));
                                 }})
                    .ok());
  }
  ~Door() { gate_->Stop(); }
  transport::Gate& gate() { return *gate_; }
  const Lines& lines() const { return lines_; }
  const std::string& address() const { return address_; }

 private:
  const std::string address_ = StrCat("127.0.0.1:", FreePort());
  Lines lines_;
  std::mutex mutex_;
  std::vector<transport::Descriptor> entered_;
  std::unique_ptr<transport::Gate> gate_;
};

// The client's half of the proof, made with this token.
struct Answer {
  transport::Nonces nonces;
  std::string bytes;
};
Answer AnswerTo(const std::string& challenge, const std::string& token) {
  Answer answer;
  EXPECT_TRUE(transport::ReadChallenge(challenge, answer.nonces).ok());
  answer.nonces.client = transport::MakeNonce().value();
  answer.bytes =
      transport::WriteAnswer(transport::Follows::kRecords, answer.nonces.client,
                             transport::ProofOf(transport::Prover::kClient, token, answer.nonces).value());
  return answer;
}

transport::Verdict VerdictOf(const RawSocket& socket) {
  return transport::ReadVerdict(socket.Read(transport::kVerdictBytes)).value().verdict;
}

TEST(Proof, IsHmacSha256OfAllFields) {
  transport::Nonces nonces;
  nonces.server.fill('s');
  nonces.client.fill('c');
  const transport::ProofBytes proof =
      transport::ProofOf(transport::Prover::kClient, "secret", nonces).value();
  // printf 'penstock client\0' + 32 times s + 32 times c | openssl dgst -sha256 -hmac secret
  EXPECT_EQ(transport::WritePass(proof, proof).substr(0, 64),
            "c3098fa2165df1410b42866b94373cbeda44614dd109a8a0d16607f5e8f7a8a8");
  EXPECT_TRUE(transport::SameProof({proof.data(), proof.size()}, proof));
  std::vector<transport::ProofBytes> others = {
      transport::ProofOf(transport::Prover::kServer, "secret", nonces).value(),
      transport::ProofOf(transport::Prover::kStream, "secret", nonces).value(),
      transport::ProofOf(transport::Prover::kClient, "secre", nonces).value(),
      transport::ProofOf(transport::Prover::kClient, "", nonces).value()};
  nonces.tls = true;
  others.push_back(transport::ProofOf(transport::Prover::kClient, "secret", nonces).value());
  nonces.tls = false;
  nonces.server[31] = 'x';
  others.push_back(transport::ProofOf(transport::Prover::kClient, "secret", nonces).value());
  for (const transport::ProofBytes& other : others)
    EXPECT_FALSE(transport::SameProof({other.data(), other.size()}, proof));
  EXPECT_NE(transport::MakeNonce().value(), transport::MakeNonce().value());
}

TEST(Gate, SilentAndForeignConnectionsAreClosed) {
  Door door({.token = "secret"}, milliseconds(200));
  const RawSocket silent(door.address()), half(door.address()), other(door.address()), grpc(door.address());
  half.Send(std::string("PNS\x02", 4));
  other.Send("GET / HTTP/1.1\r\n\r\n" + std::string(100, '\0'));
  grpc.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(100, '\0'));
  EXPECT_TRUE(other.IsClosed());
  EXPECT_TRUE(grpc.IsClosed());
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_TRUE(half.IsClosed());
  EXPECT_TRUE(door.lines().Has("it does not speak penstock's protocol"));
  EXPECT_TRUE(door.lines().Has("it did not prove the job token in time"));
  EXPECT_TRUE(door.lines().Has("it speaks Fluid's wire, and this pserver the native one"));
  EXPECT_EQ(door.lines().count(), 4u) << door.lines().text();
}

TEST(Gate, ReplayedProofsAreRefused) {
  Door door({.token = "secret"});
  const RawSocket good(door.address()), replay(door.address());
  const Answer answer = AnswerTo(good.Read(transport::kChallengeBytes), "secret");
  good.Send(answer.bytes);
  EXPECT_EQ(VerdictOf(good), transport::Verdict::kWelcome);
  replay.Read(transport::kChallengeBytes);
  replay.Send(answer.bytes);
  EXPECT_EQ(VerdictOf(replay), transport::Verdict::kWrongToken);
  EXPECT_TRUE(replay.IsClosed());
  // Nor can the pass be replayed: it differs from the proof, and is accepted once.
  const transport::ProofBytes wrong =
      transport::ProofOf(transport::Prover::kClient, "secret", answer.nonces).value();
  EXPECT_FALSE(door.gate().Claim(transport::WritePass(answer.nonces.server, wrong)).has_value());
  const std::string pass = transport::WritePass(
      answer.nonces.server, transport::ProofOf(transport::Prover::kStream, "secret", answer.nonces).value());
  EXPECT_TRUE(door.gate().Claim(pass).has_value());
  EXPECT_FALSE(door.gate().Claim(pass).has_value());
}

TEST(Gate, TheServerProvesTheToken) {
  Door door({.token = "secret"});
  const Result<transport::Dialed> dialed = transport::Dial(door.address(), {.token = "guess"}, -1);
  EXPECT_EQ(dialed.status().id(), "E-rpc-token");
  EXPECT_TRUE(transport::Dial(door.address(), {.token = "secret"}, -1).ok());
  // A malicious server that accepts every client.
  transport::Nonces nonces;
  EXPECT_EQ(transport::WriteVerdict(transport::Verdict::kWelcome, {}).size(), transport::kVerdictBytes);
  EXPECT_FALSE(transport::SameProof(
      transport::ReadVerdict(transport::WriteVerdict(transport::Verdict::kWelcome, {})).value().proof,
      transport::ProofOf(transport::Prover::kServer, "secret", nonces).value()));
}

TEST(Gate, ConnectionsWithoutHelloAreClosed) {
  Door door({.token = "secret"}, milliseconds(200));
  const RawSocket idle(door.address());
  idle.Send(AnswerTo(idle.Read(transport::kChallengeBytes), "secret").bytes);
  EXPECT_EQ(VerdictOf(idle), transport::Verdict::kWelcome);
  EXPECT_TRUE(idle.IsClosed());
  EXPECT_TRUE(door.lines().Has("it sent no hello that was accepted in time"));
}

TEST(Gate, ExcessConnectionsReplaceTheOldest) {
  Door door({.token = "secret"});
  std::vector<RawSocket> idle;
  for (int i = 0; i < 300; ++i) idle.emplace_back(door.address());
  EXPECT_TRUE(idle.front().IsClosed());
  EXPECT_TRUE(transport::Dial(door.address(), {.token = "secret"}, -1).ok());
  EXPECT_TRUE(door.lines().Has("too many connections wait to prove the job token"));
  EXPECT_LE(door.lines().count(), 11u) << door.lines().text();
}

// Occupies all but a few free descriptors of this process during its lifetime.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(next) + 16;
    setrlimit(RLIMIT_NOFILE, &few);
    for (int fd = next; fd >= 0; fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) held_.emplace_back(fd);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<transport::Descriptor> held_;
};

TEST(Gate, DescriptorExhaustionIsReportedAndRecoversLater) {
  Door door({.token = "secret"});
  std::optional<NoDescriptors> none;
  RawSocket early(door.address(), [&] { none.emplace(); });
  EXPECT_TRUE(early.connected());  // by the kernel
  EXPECT_TRUE(door.lines().Has("accepts no connections for now: Too many open files"));
  none.reset();
  EXPECT_EQ(early.Read(transport::kChallengeBytes).size(), transport::kChallengeBytes);
  EXPECT_TRUE(door.lines().Has("accepts connections again"));
  EXPECT_EQ(door.lines().count(), 2u) << door.lines().text();
}

class Closed : public ConnectionHandler {
 public:
  void OnMessage(const std::shared_ptr<Connection>&, Message) override { ++messages_; }
  void OnClosed(const std::shared_ptr<Connection>&, const Status& why) override { why_.set_value(why); }
  Status why() {
    std::future<Status> why = why_.get_future();
    if (why.wait_for(seconds(30)) != std::future_status::ready) return InternalError("E-test", "not closed");
    return why.get();
  }
  int messages() const { return messages_; }

 private:
  std::promise<Status> why_;
  std::atomic<int> messages_ = 0;
};

TEST(Gate, WithoutATokenOnlyLocalPeersAreServed) {
  Lines lines;
  const auto transport = transport::MakeGrpcTransport({.report = lines.sink()});
  Closed handler, far;
  const auto beyond = transport->Listen(StrCat("0.0.0.0:", FreePort()), handler);
  EXPECT_EQ(beyond.status().id(), "E-rpc-token-missing") << beyond.status().ToString();
  transport->Connect("192.0.2.1:6174", far);
  EXPECT_EQ(far.why().id(), "E-rpc-token-missing");
  const std::string here = StrCat("127.0.0.1:", FreePort());
  EXPECT_TRUE(transport->Listen(here, handler).ok());
  EXPECT_EQ(lines.text(),
            StrCat("warning: no job token is set (PENSTOCK_JOB_TOKEN): any process of this machine "
                   "can take part in the job at ",
                   here, "\n"));
}

TEST(Gate, AnUnknownHostNameIsReportedAtOnce) {
  Lines lines;
  const auto transport = transport::MakeGrpcTransport({.token = "secret", .report = lines.sink()});
  Closed handler;
  const auto connection = transport->Connect("no-such-host.invalid:6174", handler);
  EXPECT_TRUE(
      lines.Has("pserver no-such-host.invalid:6174: host name \"no-such-host.invalid\" is not known"));
  connection->Abort();
  EXPECT_FALSE(handler.why().ok());
  EXPECT_EQ(transport->Listen("no-such-host.invalid:6174", handler).status().id(), "E-rpc-resolve");
}

TEST(Gate, BeforeItsHelloAConnectionIsLimitedTo64KB) {
  const auto transport = transport::MakeGrpcTransport({.token = "secret", .report = [](auto&) {}});
  Closed server, much, little;
  const std::string address = StrCat("127.0.0.1:", FreePort());
  const auto listener = transport->Listen(address, server).value();
  transport->Connect(address, much)->Send({"head", Payload::Of(std::string(65 << 10, 'x'))});
  EXPECT_FALSE(much.why().ok());
  EXPECT_FALSE(server.why().ok());
  EXPECT_EQ(server.messages(), 0);
}

// Frames of 8 bytes, each of which is rejected.
TEST(Attacks, ManyEmptyMessagesAreLoggedInOneLine) {
  const ToyJob job = Job();
  ServerThread server(job, 0);
  const auto transport = transport::MakeGrpcTransport({.token = "secret", .report = [](auto&) {}});
  Closed handler;
  const auto connection = transport->Connect(job.servers[0], handler);
  for (int i = 0; i < 100'000; ++i) connection->Send({});
  EXPECT_TRUE(handler.why().code() != StatusCode::kInternal);
  EXPECT_TRUE(server.lines().Has("refused a connection: a message does not begin with an envelope"));
  EXPECT_LE(server.lines().count(), 3u) << server.lines().text();
  server.Cancel();
}

TEST(Attacks, WithoutATokenAMismatchedHelloEndsNoJob) {
  const ToyJob job = Job();
  ServerThread server0(job, 0, {}), server1(job, 1, {});
  ToyJob wide = job;
  wide.trainers = 8;
  ToyJob other = job;
  other.params[0].shape = {299, 1000};
  other.params[2].shape = {2};  // it matches neither server: a matching server might accept it as trainer 0
  ToyValues none, last0, last1;
  const TrainerOptions open = {.token = ""};
  const auto stray = Client(open), second = Client(open);
  EXPECT_EQ(Start(wide, 7, *stray, open, none).get().id(), "E-plan-trainer-id");
  EXPECT_EQ(Start(other, 0, *second, open, none).get().id(), "E-plan-mismatch");
  const auto client0 = Client(open), client1 = Client(open);
  std::future<Status> trainer0 = Start(job, 0, *client0, open, last0);
  std::future<Status> trainer1 = Start(job, 1, *client1, open, last1);
  const Status ended0 = trainer0.get(), ended1 = trainer1.get();
  EXPECT_TRUE(ended0.ok()) << ended0.ToString();
  EXPECT_TRUE(ended1.ok()) << ended1.ToString();
  EXPECT_TRUE(server0.Join().ok());
  EXPECT_TRUE(server1.Join().ok());
}

}  // namespace
}  // namespace penstock::test
