// Runs role programs on the simulated network, with the executor, client and pserver of real processes. One
// seed decides the fate of every message.
//
//   RoleJob job(AllOps(), {trainer0, trainer1}, {pserver0}, seed, {.lost = 0.1});
//   job.trainer(0).feeds = {feeds of step 0, feeds of step 1};
//   job.fetches = {"mean_0.tmp_0"};
//   ASSERT_TRUE(job.Run().ok());
//   job.trainer(0).fetched[1]
//
// A trainer's program runs on its own thread, but only while the simulation waits for it: it gets its turn
// when the event for which it waits has happened, and returns it where a process would block. Each seed
// therefore has one order of all events.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/observe/observer.h"
#include "executor/pserver/pserver.h"
#include "executor/pserver/service/native_service.h"
#include "executor/schedule/executor.h"
#include "tests/sim/network.h"
#include "tests/support/reference_job.h"

namespace penstock::test {

class RoleJob {
 public:
  struct Trainer {
    std::vector<std::vector<exec::Feed>> feeds;  // by step; their number is the number of steps
    std::vector<std::vector<Variable>> fetched;
    std::optional<Program> last;  // runs after the steps
    Scope scope;
    Status status;
  };

  RoleJob(const OpRegistry& ops, std::vector<RolePrograms> trainers, std::vector<RolePrograms> pservers,
          std::uint64_t seed, Faults faults);
  ~RoleJob();

  std::vector<std::string> fetches;
  Trainer& trainer(int id);
  Scope& pserver_scope(int pserver);  // in the order given
  // The chunk size of every server. Call it before Run.
  void set_chunk_bytes(std::size_t bytes) { chunk_bytes_ = bytes; }
  // The shards of every table that can have several, on every server. Call it before Run.
  void set_table_shards(int shards) { table_shards_ = shards; }
  // Trainers tell their client the feeds of the next step after each step (Executor::LookAhead).
  void set_looks_ahead(bool looks_ahead) { looks_ahead_ = looks_ahead; }
  observe::AheadCounts ahead_of(int trainer) const;
  void set_checkpoint_folder(std::string folder) { checkpoint_folder_ = std::move(folder); }

  // Runs the servers' startup programs. Afterwards tests may set values in their scopes.
  Status StartServers();
  // Calls StartServers unless that was done, and runs the job to its end. Returns the first error of a
  // trainer or server.
  Status Run();

 private:
  struct Server;
  struct Role;

  Status Serve(Server& server);
  Role* FindReady();
  bool AllEnded() const;
  Status FirstError() const;
  void Tick(Role& role);

  Network net_;
  std::optional<std::size_t> chunk_bytes_;  // nullopt: from the programs
  std::optional<int> table_shards_;
  bool looks_ahead_ = false;
  std::string checkpoint_folder_ = ".";
  bool started_ = false;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Role>> roles_;  // trainers
};

}  // namespace penstock::test
