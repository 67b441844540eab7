#include "tests/support/reference_job.h"

#include <utility>

namespace penstock::test {

struct ReferenceJob::Server {
  Server(const OpRegistry& ops, RolePrograms given, int threads)
      : programs(std::move(given)), executor(ops, {.threads = threads}) {}
  RolePrograms programs;
  Executor executor;
  Scope scope;
  std::string address;
  std::vector<BlockRef> blocks;                 // in the order they run
  std::map<std::string, std::size_t> received;  // variable: how many pushes in this step
};

// Hands values over by copying them between scopes.
class ReferenceJob::Client : public RpcClient {
 public:
  Client(ReferenceJob& job, std::size_t trainer) : job_(job), trainer_(trainer) {}

  Status Attach(const Program&) override { return OkStatus(); }
  Result<PushHandle> DeclarePush(const RemotePiece& piece) override {
    PENSTOCK_RETURN_IF_ERROR(Declare(piece));
    return PushHandle{static_cast<int>(pieces_.size()) - 1};
  }
  Result<PullHandle> DeclarePull(const RemotePiece& piece) override {
    PENSTOCK_RETURN_IF_ERROR(Declare(piece));
    return PullHandle{static_cast<int>(pieces_.size()) - 1};
  }
  Result<RowsHandle> DeclareRows(const RemotePiece& piece) override {
    PENSTOCK_RETURN_IF_ERROR(Declare(piece));
    return RowsHandle{static_cast<int>(pieces_.size()) - 1};
  }
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>&, int) override { return PeersHandle{0}; }

  Status Push(PushHandle handle, const Variable& value) override {
    const auto& [server, name] = pieces_[static_cast<std::size_t>(handle.index)];
    if (++server->received[name] > 1)
      return FailedPrecondition("E-ref-twice", name, " was sent twice in one step");
    Variable& variable = *server->scope.FindOrCreate(name);
    if (const Tensor* tensor = value.If<Tensor>()) {
      variable.As<Tensor>() = tensor->Clone();
    } else if (const auto* rows = value.If<SelectedRows>()) {
      variable.As<SelectedRows>() = {rows->rows, rows->height, rows->value.Clone()};
    } else {
      return FailedPrecondition("E-ref-empty", name, " has no value to send");
    }
    return OkStatus();
  }
  Status EndStep(PeersHandle) override { return job_.EndStep(trainer_); }
  Status Pull(PullHandle handle, Variable& out) override {
    const auto& [server, name] = pieces_[static_cast<std::size_t>(handle.index)];
    const Variable* variable = server->scope.Find(name);
    if (variable == nullptr || !variable->initialized() || !variable->Is<Tensor>()) {
      return FailedPrecondition("E-ref-empty", "pserver ", server->address, " has no ", name);
    }
    const Tensor& held = *variable->If<Tensor>();
    Tensor& into = out.As<Tensor>();
    if (into.initialized() && into.shape() == held.shape() && into.dtype() == held.dtype()) {
      into.CopyFrom(held);
    } else {
      into = held.Clone();
    }
    return OkStatus();
  }
  Status PullRows(RowsHandle handle, std::span<const std::int64_t> ids, Tensor& out) override {
    const auto& [server, name] = pieces_[static_cast<std::size_t>(handle.index)];
    const Variable* variable = server->scope.Find(name);
    const Tensor* table = variable == nullptr ? nullptr : variable->If<Tensor>();
    if (table == nullptr || !table->initialized())
      return FailedPrecondition("E-ref-empty", "pserver ", server->address, " has no table ", name);
    out.Reset(table->dtype(), table->shape().WithRows(static_cast<Dim>(ids.size())));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto at = static_cast<Dim>(i);
      out.Rows(at, at + 1).CopyFrom(table->Rows(ids[i], ids[i] + 1));
    }
    return OkStatus();
  }
  Status CompleteRows() override { return OkStatus(); }
  Status CompletePulls(PeersHandle) override { return OkStatus(); }
  Status Complete() override { return OkStatus(); }
  void Cancel() override {}

 private:
  Status Declare(const RemotePiece& piece) {
    const auto it = job_.server_at_.find(piece.pserver);
    if (it == job_.server_at_.end()) {
      return InvalidArgument("E-ref-server", piece.name, " belongs to ", piece.pserver,
                             ", which no program serves");
    }
    pieces_.emplace_back(it->second, piece.name);
    return OkStatus();
  }

  ReferenceJob& job_;
  std::size_t trainer_;
  std::vector<std::pair<Server*, std::string>> pieces_;
};

struct ReferenceJob::Trainer {
  Trainer(const OpRegistry& ops, ReferenceJob& job, std::size_t id, RolePrograms given, int threads)
      : programs(std::move(given)), client(job, id), executor(ops, {.threads = threads, .rpc = &client}) {}
  RolePrograms programs;
  Client client;
  Executor executor;
  Scope scope;
  std::vector<Variable> fetched;
};

ReferenceJob::ReferenceJob(const OpRegistry& ops, std::vector<RolePrograms> trainers,
                           std::vector<RolePrograms> pservers, int threads) {
  for (RolePrograms& programs : pservers) {
    auto server = std::make_unique<Server>(ops, std::move(programs), threads);
    for (const OpEntry& entry : server->programs.main.main().ops()) {
      const auto* blocks = entry.op->Get<std::vector<BlockRef>>("optimize_blocks");
      if (blocks == nullptr) continue;
      server->blocks = *blocks;
      server->address = entry.op->GetOr<std::string>("endpoint", "");
    }
    PENSTOCK_CHECK(!server->address.empty(), "a pserver's program has a listen_and_serv");
    server_at_[server->address] = server.get();
    servers_.push_back(std::move(server));
  }
  for (std::size_t t = 0; t < trainers.size(); ++t) {
    trainers_.push_back(std::make_unique<Trainer>(ops, *this, t, std::move(trainers[t]), threads));
  }
}

ReferenceJob::~ReferenceJob() = default;

Status ReferenceJob::StartServers() {
  for (const auto& server : servers_) {
    PENSTOCK_RETURN_IF_ERROR(server->executor.Run(server->programs.startup, server->scope, {}, {}).status());
  }
  return OkStatus();
}

Status ReferenceJob::StartTrainers() {
  for (const auto& trainer : trainers_) {
    PENSTOCK_RETURN_IF_ERROR(
        trainer->executor.Run(trainer->programs.startup, trainer->scope, {}, {}).status());
  }
  return OkStatus();
}

Status ReferenceJob::Start() {
  PENSTOCK_RETURN_IF_ERROR(StartServers());
  return StartTrainers();
}

Result<std::vector<std::vector<Variable>>> ReferenceJob::Step(const std::vector<std::vector<Feed>>& feeds,
                                                              const std::vector<std::string>& fetches) {
  PENSTOCK_CHECK(feeds.size() == trainers_.size(), "every trainer needs its feeds");
  feeds_ = &feeds;
  fetches_ = &fetches;
  PENSTOCK_RETURN_IF_ERROR(RunTrainer(0));
  std::vector<std::vector<Variable>> all;
  for (const auto& trainer : trainers_) all.push_back(std::move(trainer->fetched));
  return all;
}

Status ReferenceJob::RunTrainer(std::size_t index) {
  Trainer& trainer = *trainers_[index];
  auto got = trainer.executor.Run(trainer.programs.main, trainer.scope, (*feeds_)[index], *fetches_);
  if (!got.ok()) return std::move(got).status();
  trainer.fetched = *std::move(got);
  return OkStatus();
}

Status ReferenceJob::EndStep(std::size_t trainer) {
  return trainer + 1 < trainers_.size() ? RunTrainer(trainer + 1) : RunServers();
}

Status ReferenceJob::RunServers() {
  for (const auto& server : servers_) {
    for (const BlockRef& block : server->blocks) {
      PENSTOCK_RETURN_IF_ERROR(server->executor.RunBlock(server->programs.main, block.index, server->scope));
    }
    server->received.clear();
  }
  return OkStatus();
}

Scope& ReferenceJob::trainer_scope(int trainer) {
  return trainers_[static_cast<std::size_t>(trainer)]->scope;
}
Scope& ReferenceJob::pserver_scope(int pserver) { return servers_[static_cast<std::size_t>(pserver)]->scope; }

}  // namespace penstock::test
