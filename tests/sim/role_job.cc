#include "tests/sim/role_job.h"

#include <algorithm>
#include <thread>

#include "tests/sim/sim_client.h"

namespace penstock::test {
namespace {

constexpr auto kTick = std::chrono::milliseconds(50);
constexpr char kCancelled[] = "E-cancelled";
constexpr auto kLimit = std::chrono::hours(1);  // of simulated time without progress

}  // namespace

struct RoleJob::Server {
  Server(const OpRegistry& registry, RolePrograms given)
      : ops(registry), programs(std::move(given)), executor(registry, {.threads = 1}) {}
  const OpRegistry& ops;
  const RolePrograms programs;
  exec::Executor executor;
  Scope scope;
  std::unique_ptr<pserver::Pserver> pserver;
  std::unique_ptr<pserver::NativeService> service;
  std::unique_ptr<Listener> listener;
};

struct RoleJob::Role {
  Role(const OpRegistry& ops, RolePrograms given, Network& net)
      : programs(std::move(given)),
        client(net.transport(), Observed(SimClient::OptionsOf(net), observer), turn),
        executor(ops, {.threads = 1, .rpc = &client}) {}

  Status Train(const std::vector<std::string>& fetches, bool looks_ahead) {
    PENSTOCK_RETURN_IF_ERROR(executor.Run(programs.startup, trainer.scope, {}, {}).status());
    for (std::size_t step = 0; step < trainer.feeds.size(); ++step) {
      PENSTOCK_ASSIGN_OR_RETURN(std::vector<Variable> fetched,
                                executor.Run(programs.main, trainer.scope, trainer.feeds[step], fetches));
      trainer.fetched.push_back(std::move(fetched));
      if (looks_ahead && step + 1 < trainer.feeds.size())
        executor.LookAhead(programs.main, trainer.feeds[step + 1], fetches);
    }
    if (trainer.last) PENSTOCK_RETURN_IF_ERROR(executor.Run(*trainer.last, trainer.scope, {}, {}).status());
    return client.Complete();
  }
  void Start(const std::vector<std::string>& fetches, bool looks_ahead) {
    thread = std::thread([this, &fetches, looks_ahead] {
      turn.Take();
      trainer.status = Train(fetches, looks_ahead);
      if (!trainer.status.ok()) client.Abandon(trainer.status);  // tells the servers
      ended = true;
      turn.Return();
    });
  }

  static client::SessionOptions Observed(client::SessionOptions options, observe::Observer& observer) {
    options.observer = &observer;
    return options;
  }

  const RolePrograms programs;
  observe::Recorder recorder{observe::FlightMemory::Own()};
  observe::Observer observer{recorder};
  Turn turn;
  SimClient client;
  exec::Executor executor;
  Trainer trainer;
  std::thread thread;
  bool here = false;  // started, by simulated time
  bool ended = false;
};

RoleJob::RoleJob(const OpRegistry& ops, std::vector<RolePrograms> trainers,
                 std::vector<RolePrograms> pservers, std::uint64_t seed, Faults faults)
    : net_(seed, faults) {
  for (RolePrograms& programs : pservers)
    servers_.push_back(std::make_unique<Server>(ops, std::move(programs)));
  for (RolePrograms& programs : trainers)
    roles_.push_back(std::make_unique<Role>(ops, std::move(programs), net_));
}

RoleJob::~RoleJob() = default;

RoleJob::Trainer& RoleJob::trainer(int id) { return roles_[static_cast<std::size_t>(id)]->trainer; }
observe::AheadCounts RoleJob::ahead_of(int id) const {
  return roles_[static_cast<std::size_t>(id)]->observer.Now().ahead;
}
Scope& RoleJob::pserver_scope(int pserver) { return servers_[static_cast<std::size_t>(pserver)]->scope; }

Status RoleJob::StartServers() {
  started_ = true;
  for (const auto& server : servers_) {
    PENSTOCK_RETURN_IF_ERROR(server->executor.Run(server->programs.startup, server->scope, {}, {}).status());
  }
  return OkStatus();
}

Status RoleJob::Serve(Server& server) {
  pserver::PserverOptions options;
  options.job = "sim";
  options.chunk_limit = chunk_bytes_;
  options.table_shards.exactly = table_shards_;
  options.checkpoint_folder = checkpoint_folder_;
  options.run = [this](std::function<void()> work) { net_.After(net_.Delay(), std::move(work)); };
  options.report = [](const std::string&) {};
  options.clock = &net_.clock();
  options.reconnect_deadline = net_.reconnect_deadline();
  PENSTOCK_ASSIGN_OR_RETURN(
      server.pserver,
      pserver::Pserver::Make(server.programs.main, *server.programs.main.main().ops().back().op, server.scope,
                             server.ops, server.executor, std::move(options)));
  server.service = std::make_unique<pserver::NativeService>(*server.pserver);
  net_.After(net_.Delay() * 10, [this, &server] {
    server.listener = std::move(net_.transport().Listen(server.pserver->address(), *server.service)).value();
  });
  return OkStatus();
}

void RoleJob::Tick(Role& role) {
  role.client.session().Tick();
  if (!role.ended) net_.After(kTick, [this, &role] { Tick(role); });
}

RoleJob::Role* RoleJob::FindReady() {
  for (const auto& role : roles_) {
    if (role->here && !role->ended && role->client.MayGoOn()) return role.get();
  }
  return nullptr;
}

// The servers keep waiting for a trainer that failed before it sent anything.
bool RoleJob::AllEnded() const {
  const bool failed = std::any_of(roles_.begin(), roles_.end(),
                                  [](const auto& role) { return role->ended && !role->trainer.status.ok(); });
  return std::all_of(roles_.begin(), roles_.end(), [](const auto& role) { return role->ended; }) &&
         std::all_of(servers_.begin(), servers_.end(),
                     [&](const auto& server) { return failed || server->pserver->Ended().has_value(); });
}

// The error of a trainer that detected it, rather than of one that learned that another was cancelled.
Status RoleJob::FirstError() const {
  Status first;
  for (const auto& role : roles_) {
    const Status& status = role->trainer.status;
    if (first.ok() || first.id() == kCancelled) first = status.ok() ? first : status;
  }
  for (const auto& server : servers_) {
    if (first.ok() && server->pserver->Ended().has_value()) first = *server->pserver->Ended();
  }
  return first;
}

Status RoleJob::Run() {
  if (!started_) PENSTOCK_RETURN_IF_ERROR(StartServers());
  for (const auto& server : servers_) PENSTOCK_RETURN_IF_ERROR(Serve(*server));
  for (const auto& role : roles_) {
    role->Start(fetches, looks_ahead_);
    net_.After(net_.Delay() * 10, [this, &role = *role] {
      role.here = true;
      Tick(role);
    });
  }
  bool hangs = false;
  while (!AllEnded()) {
    if (Role* role = FindReady()) {
      role->turn.Give();
    } else if (!net_.RunUntil([&] { return FindReady() != nullptr || AllEnded(); }, kLimit)) {
      if (std::exchange(hangs, true)) break;
      for (const auto& waiting : roles_) waiting->client.Cancel();
    }
  }
  for (const auto& role : roles_) role->thread.join();
  return hangs ? DeadlineExceeded("E-sim-hang", "the job did not end") : FirstError();
}

}  // namespace penstock::test
