// A simulated synchronous job whose servers are replaced by others, of another number, between two steps: as
// penstock scale does it, with the objects of real processes.
//
//   ScaleJob job({.placements = {{2, 3}, {3, 4}, {1, 7}}}, seed, kRough);   // 2 servers up to step 3, ...
//   ASSERT_TRUE(job.Run().ok());
//   job.seen(0)                                                   // what trainer 0 has pulled, by version
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "executor/client/job_client.h"
#include "tests/sim/sim_client.h"
#include "tests/sim/simulation.h"

namespace penstock::test {

struct Placement {
  int servers = 2;
  std::uint64_t until = 0;  // the step that is ended on these servers
};

struct ScaleSetup {
  int trainers = 2;
  bool lr_block = false;
  std::vector<Placement> placements;
  bool kills = false;  // a server is killed while it is asked to save what it holds
};

class ScaleJob {
 public:
  ScaleJob(ScaleSetup setup, std::uint64_t seed, Faults faults);
  ~ScaleJob();

  // The first error; E-sim-hang if the job did not end.
  Status Run();

  // The job on the servers of a placement; only these differ.
  const ToyJob& job(std::size_t placement) const { return jobs_[placement]; }
  const std::vector<ToyValues>& seen(int trainer) const { return roles_[Index(trainer)]->seen; }
  // What the last servers hold.
  ToyValues Held() const;
  std::uint64_t restarts() const { return restarts_; }
  int old_routes() const { return old_routes_; }  // calls that name replaced servers

 private:
  // What one server of one placement is.
  struct Placed {
    std::size_t placement = 0;
    int index = 0;
    std::uint64_t restarts = 0;
  };
  struct Role {
    Turn turn;
    std::vector<SimClient*> clients;  // of `client`
    std::unique_ptr<client::JobClient> client;
    std::vector<ToyValues> seen;
    std::thread thread;
    Status status;
    std::size_t waits_for = 0;  // the placement without which it does not go on
    bool here = false, ended = false;
  };
  struct Handles {
    std::vector<PullHandle> pulls;
    std::vector<PushHandle> pushes;
    std::vector<RowsHandle> tables;
    PeersHandle peers;
    std::vector<Variable> values;
  };

  static std::size_t Index(int i) { return static_cast<std::size_t>(i); }
  void StartServers(std::size_t placement);
  void StartServer(const Placed& place);
  void Kill(std::size_t at);
  void Tick(Server& server);
  // As the launcher: asks the servers once all trainers wait, and starts others once all is saved.
  void Look();
  void KillWhileCutting();

  Status Train(int id, Role& role);
  Status Declare(int id, Role& role, std::size_t placement, Handles& handles);
  Status PullAll(const ToyJob& job, Role& role, Handles& handles);
  Status TrainStep(const ToyJob& job, int id, Role& role, Handles& handles, std::uint64_t step);
  Status WaitFor(Role& role, std::size_t placement);
  Status TryOldRoutes(Role& role, Handles& old, const Program& old_program);
  void Tick(Role& role);
  bool MayGoOn(const Role& role) const;
  Role* FindReady();
  bool IsLast(std::size_t at) const;
  bool AllEnded() const;
  std::string HowItStands();

  const ScaleSetup setup_;
  std::vector<ToyJob> jobs_;  // by placement
  Network net_;
  FaultyDisk disk_;  // that all servers share
  SimBlockRunner runner_;
  std::vector<std::unique_ptr<Server>> servers_, dead_;
  std::vector<Placed> places_;  // of servers_
  std::vector<std::unique_ptr<Role>> roles_;
  std::size_t placement_ = 0;  // whose servers have been started last
  bool asked_ = false;
  std::uint64_t restarts_ = 0;
  int old_routes_ = 0;
};

}  // namespace penstock::test
