#include "tools/bench/micro/trainer.h"

#include <algorithm>

namespace penstock::bench {

Trainer::Trainer(const Job& job, int id)
    : session_(wires_, {.job = "bench", .trainers = job.trainers, .observer = &observer_}),
      gradient_(DType::kFp32, job.shape) {
  std::fill(gradient_.Span<float>().begin(), gradient_.Span<float>().end(), 0.25f);
  Must(session_.Attach(TrainerProgram(job, id)));
  for (int i = 0; i < job.variables; ++i) {
    const std::string& server = job.ServerOf(i);
    pushes_.push_back(Must(session_.DeclarePush({.pserver = server, .name = job.Grad(i, id)})));
    pulls_.push_back(Must(session_.DeclarePull({.pserver = server, .name = job.Param(i)})));
    values_.emplace_back(DType::kFp32, job.shape);
  }
  peers_ = Must(session_.DeclarePeers(job.servers));
}

Result<std::unique_ptr<Listener>> Trainer::Wires::Listen(const std::string&, ConnectionHandler&) {
  return Unimplemented("E-bench", "a trainer does not listen");
}

std::shared_ptr<Connection> Trainer::Wires::Connect(const std::string&, ConnectionHandler& handler) {
  lines.push_back({&handler, std::make_shared<KeptMessages>()});
  return lines.back().connection;
}

void Trainer::Deliver(std::size_t s, Message message) {
  const Wires::Line& line = wires_.lines[s];
  line.handler->OnMessage(line.connection, std::move(message));
}

void Trainer::Step() {
  for (const PushHandle push : pushes_) Must(session_.Push(push, gradient_));
  Must(session_.EndStep(peers_));
  for (std::size_t i = 0; i < pulls_.size(); ++i) Must(session_.Pull(pulls_[i], values_[i]));
}

void Trainer::CheckDone() const {
  Must(session_.status());
  PENSTOCK_CHECK(session_.PullsDone() && session_.EarlierPushesDone(session_.step()), "the step is not over");
}

}  // namespace penstock::bench
