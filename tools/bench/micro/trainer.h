// A trainer without a network: its session, whose connections keep what is sent until the bench delivers it.
//
//   Trainer trainer(job, 0);                        // its hellos lie in lines()[s].sent
//   ... deliver them, and the answers: trainer.Deliver(s, answer)
//   trainer.Step();                                 // pushes all, ends the step, pulls all
//   ... the same ...
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
  // Counts and records as a process does.
  Trainer(const Job& job, int id);

  std::size_t servers() const { return wires_.lines.size(); }
  // What waits for server `s`; the caller empties it.
  std::vector<Message>& ToServer(std::size_t s) { return wires_.lines[s].connection->sent; }
  void Deliver(std::size_t s, Message message);
  void Step();
  void CheckDone() const;  // dies if something of the step is under way still

 private:
  struct Wires : Transport {
    struct Line {
      ConnectionHandler* handler;
      std::shared_ptr<KeptMessages> connection;
    };
    Result<std::unique_ptr<Listener>> Listen(const std::string&, ConnectionHandler&) override;
    std::shared_ptr<Connection> Connect(const std::string&, ConnectionHandler& handler) override;

    std::vector<Line> lines;  // by server, as they are attached
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
