// Jobs over TLS, with certificates that the test generates.
#include <gtest/gtest.h>

#include <cstdlib>

#include "framework/base/files.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/transport/grpc_job.h"

namespace penstock::test {
namespace {

// A certificate authority and the certificates that it has signed.
class Authority {
 public:
  Authority() {
    Run("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=authority "
        "-keyout ca.key -out ca.pem");
  }
  // `name`.pem and `name`.key for "IP:127.0.0.1" or the like, valid from now for `days` (below 0: expired).
  void Sign(const std::string& name, const std::string& subject, int days = 2) {
    EXPECT_TRUE(WriteFile(folder_ / (name + ".ext"), "subjectAltName=" + subject + "\n").ok());
    Run(StrCat("req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=", name, " -keyout ",
               name, ".key -out ", name, ".csr"));
    Run(StrCat("x509 -req -in ", name, ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days ", days,
               " -extfile ", name, ".ext -out ", name, ".pem"));
  }
  transport::TlsFiles Server(const std::string& name, bool mutual = false) const {
    return {.cert = folder_ / (name + ".pem"),
            .key = folder_ / (name + ".key"),
            .ca = mutual ? ca() : "",
            .mutual = mutual};
  }
  transport::TlsFiles Trainer(const std::string& name = "") const {
    if (name.empty()) return {.ca = ca()};
    return {.cert = folder_ / (name + ".pem"), .key = folder_ / (name + ".key"), .ca = ca(), .mutual = true};
  }
  std::string ca() const { return folder_ / "ca.pem"; }

 private:
  void Run(const std::string& arguments) {
    const std::string command =
        StrCat("cd ", folder_ / "", " && openssl ", arguments, " >>log 2>&1 </dev/null");
    EXPECT_EQ(std::system(command.c_str()), 0) << ReadFile(folder_ / "log").value();
  }
  const TempDir folder_;
};

ToyJob OneServerJob() {
  ToyJob job;
  job.trainers = 1;
  job.servers = {StrCat("127.0.0.1:", FreePort())};
  job.params = {{.name = "w", .shape = {2, 300'000}, .server = 0, .optimizer = "momentum"}};
  return job;
}

struct Ran {
  Status trainer, server;
  ToyValues last;
};

Ran RunJob(const ToyJob& job, transport::TlsFiles of_server, transport::TlsFiles of_trainer) {
  test::ServerThread server(job, 0, {.token = "secret", .tls = std::move(of_server)});
  const TrainerOptions options = {.tls = std::move(of_trainer)};
  const auto client = Client(options);
  Ran ran;
  ran.trainer = Start(job, 0, *client, options, ran.last).get();
  if (!ran.trainer.ok()) server.Cancel();
  ran.server = server.Join();
  return ran;
}

TEST(Tls, AJobHasTheSameResult) {
  Authority authority;
  authority.Sign("server", "IP:127.0.0.1");
  authority.Sign("trainer", "DNS:trainer");
  const ToyJob job = OneServerJob();
  const ToyValues want = ToyReference(job, 3).back();
  const Ran tls = RunJob(job, authority.Server("server"), authority.Trainer());
  EXPECT_TRUE(tls.trainer.ok()) << tls.trainer.ToString();
  EXPECT_TRUE(tls.server.ok()) << tls.server.ToString();
  EXPECT_EQ(tls.last, want);
  const Ran mutual = RunJob(job, authority.Server("server", true), authority.Trainer("trainer"));
  EXPECT_TRUE(mutual.trainer.ok()) << mutual.trainer.ToString();
  EXPECT_EQ(mutual.last, want);
}

TEST(Tls, InvalidCertificatesAreRefusedAtOnce) {
  Authority authority, other;
  authority.Sign("server", "IP:127.0.0.1");
  authority.Sign("elsewhere", "IP:127.0.0.2");
  authority.Sign("old", "IP:127.0.0.1", -1);
  other.Sign("trainer", "DNS:trainer");
  transport::TlsFiles stranger =
      other.Trainer("trainer");  // signed by the other authority, and trusting ours
  stranger.ca = authority.ca();
  const std::vector<std::pair<transport::TlsFiles, transport::TlsFiles>> pairs = {
      {authority.Server("server"), other.Trainer()},            // the server's authority is not ours
      {authority.Server("elsewhere"), authority.Trainer()},     // it is another host's certificate
      {authority.Server("old"), authority.Trainer()},           // it has expired
      {authority.Server("server", true), authority.Trainer()},  // the trainer has no certificate
      {authority.Server("server", true), stranger},             // or one of another authority
  };
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Status status = RunJob(OneServerJob(), pairs[i].first, pairs[i].second).trainer;
    EXPECT_EQ(status.id(), "E-rpc-tls") << i << ": " << status.ToString();
    EXPECT_NE(status.message().find("check the certificates"), std::string::npos) << status.ToString();
  }
}

TEST(Tls, OneSidedTlsIsReportedOnBothSides) {
  Authority authority;
  authority.Sign("server", "IP:127.0.0.1");
  const Status plain = RunJob(OneServerJob(), authority.Server("server"), {}).trainer;
  EXPECT_NE(plain.ToString().find("the server speaks TLS; set PENSTOCK_TLS_CA here   [E-rpc-tls]"),
            std::string::npos)
      << plain.ToString();
  const Status tls = RunJob(OneServerJob(), {}, authority.Trainer()).trainer;
  EXPECT_NE(tls.ToString().find("the server does not speak TLS"), std::string::npos) << tls.ToString();
}

TEST(Tls, MissingAndInvalidPemFilesAreReported) {
  Authority authority;
  authority.Sign("server", "IP:127.0.0.1");
  transport::TlsFiles no_key = authority.Server("server");
  no_key.key = "";
  const auto error = [](transport::TlsFiles files) {
    const ToyJob job = OneServerJob();
    return test::ServerThread(job, 0, {.token = "secret", .tls = std::move(files)}).Join();
  };
  EXPECT_EQ(error(no_key).id(), "E-rpc-tls-files");
  transport::TlsFiles not_there = authority.Server("server");
  not_there.cert += ".not";
  const Status status = error(not_there);
  EXPECT_NE(status.ToString().find("PENSTOCK_TLS_CERT"), std::string::npos) << status.ToString();
  EXPECT_EQ(RunJob(OneServerJob(), authority.Server("server"), {.ca = "/dev/null"}).trainer.id(),
            "E-rpc-tls-files");
}

}  // namespace
}  // namespace penstock::test
