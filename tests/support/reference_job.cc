#include "tests/support/reference_job.h"

#include <algorithm>
#include <utility>

#include "executor/protocol/contract.h"
#include "framework/tensor/row_start.h"

namespace penstock::test {

struct ReferenceJob::Server {
  Server(const OpRegistry& ops, RolePrograms given, int threads)
      : programs(std::move(given)), executor(ops, {.threads = threads}) {}
  RolePrograms programs;
  exec::Executor executor;
  Scope scope;
  std::string address;
  std::vector<BlockRef> blocks;                 // in the order they run
  std::map<std::string, std::size_t> received;  // variable: how many pushes in this step
  struct Lookup {
    std::string table;
    std::int64_t padding;
  };
  std::map<std::string, Lookup> lookups;  // by the name of the question
};

// A client that copies values between scopes.
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
    const auto lookup = server->lookups.find(name);
    const bool by_id = lookup != server->lookups.end();
    const Variable* variable = server->scope.Find(by_id ? lookup->second.table : name);
    const Tensor* table = variable == nullptr ? nullptr : variable->If<Tensor>();
    if (table == nullptr || !table->initialized())
      return FailedPrecondition("E-ref-empty", "pserver ", server->address, " has no table ", name);
    out.Reset(table->dtype(), table->shape().WithRows(static_cast<Dim>(ids.size())));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto at = static_cast<Dim>(i);
      Tensor row = out.Rows(at, at + 1);
      if (by_id && lookup->second.padding != -1 && lookup->second.padding == ids[i]) {
        std::fill_n(row.raw(), row.bytes(), std::byte{0});
      } else {
        row.CopyFrom(table->Rows(ids[i], ids[i] + 1));
      }
    }
    return OkStatus();
  }
  Status CompleteRows() override { return OkStatus(); }
  Status CompletePulls(PeersHandle) override { return OkStatus(); }
  Status SaveTable(PeersHandle, const std::string&, const std::vector<std::string>&) override {
    return Unimplemented("E-ref-save", "the reference job saves nothing");
  }
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
  exec::Executor executor;
  Scope scope;
  std::vector<Variable> fetched;
};

ReferenceJob::ReferenceJob(const OpRegistry& ops, std::vector<RolePrograms> trainers,
                           std::vector<RolePrograms> pservers, int threads)
    : ops_(ops) {
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
    PENSTOCK_RETURN_IF_ERROR(MakeTablesWhole(ops_, *server));
  }
  return OkStatus();
}

Status ReferenceJob::MakeTablesWhole(const OpRegistry& ops, Server& server) {
  const Op& serve = *server.programs.main.main().ops().back().op;
  if (serve.GetOr<std::vector<std::string>>("prefetch_var_name_to_block_id", {}).empty()) return OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const roles::PserverFacts facts,
                            protocol::ReadServer(ops, server.programs.main, serve));
  for (const roles::ServedParam& served : facts.params) {
    if (!served.by_id) continue;
    for (const roles::ServedLookup& lookup : served.lookups)
      server.lookups[lookup.ids] = {served.param.name, lookup.padding};
    for (const OpEntry& entry : server.programs.main.block(served.block).ops()) {
      for (const std::string& name : entry.op->InputNames()) {
        Variable* variable = server.scope.Find(name);
        const auto* rows = variable == nullptr ? nullptr : variable->If<SelectedRows>();
        if (rows == nullptr || rows->start == nullptr) continue;
        const std::shared_ptr<const RowStart> start = rows->start;
        Tensor whole(rows->value.dtype(), served.param.shape);
        for (Dim row = 0; row < whole.shape()[0]; ++row)
          start->Make(row, whole.shape().RowWidth(), whole.Rows(row, row + 1).raw());
        variable->As<Tensor>() = std::move(whole);
      }
    }
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

Result<std::vector<std::vector<Variable>>> ReferenceJob::Step(
    const std::vector<std::vector<exec::Feed>>& feeds, const std::vector<std::string>& fetches) {
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
