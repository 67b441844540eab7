// A trainer without a network: a session whose connections keep sent messages until the benchmark delivers
// them.
//
//   Trainer trainer(job, 0);                        // its hello for server s is in ToServer(s)
//   ... process the hellos; pass the answers to trainer.Deliver(s, answer)
//   trainer.Step();                                 // pushes all, ends the step, pulls all
//   ... likewise ...
//   trainer.CheckDone();
#pragma once

#include <memory>
#include <vector>

#include "executor/client/session.h"
#include "tools/bench/job/job.h"

namespace penstock::bench {

class KeptMessages : public Connection {
 public:
  void Send(Message message) override { sent.push_back(std::move(message)); }
  void Close() override {}
  void Abort() override {}

  std::vector<Message> sent;
};

class Trainer {
 public:
  // Records metrics as a real process does.
  Trainer(const Job& job, int id);

  std::size_t servers() const { return wires_.lines.size(); }
  // The messages sent to server `s`; the caller removes them.
  std::vector<Message>& ToServer(std::size_t s) { return wires_.lines[s].connection->sent; }
  void Deliver(std::size_t s, Message message);
  void Step();
  void CheckDone() const;  // fails if a push or pull of the step is still pending

 private:
  struct Wires : Transport {
    struct Line {
      ConnectionHandler* handler;
      std::shared_ptr<KeptMessages> connection;
    };
    Result<std::unique_ptr<Listener>> Listen(const std::string&, ConnectionHandler&) override;
    std::shared_ptr<Connection> Connect(const std::string&, ConnectionHandler& handler) override;

    std::vector<Line> lines;  // by server, in order of attachment
  };

  Wires wires_;
  observe::Recorder recorder_{observe::FlightMemory::Own()};
  observe::Observer observer_{recorder_};
  client::Session session_;
  std::vector<PushHandle> pushes_;
  std::vector<PullHandle> pulls_;
  std::vector<Tensor> values_;
  Tensor gradient_;
  PeersHandle peers_;
};

}  // namespace penstock::bench
