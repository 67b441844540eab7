// A job of role programs on the simulated network: the executor, the trainers' client and the pservers that
// processes run, with every message's fate decided by one seed.
//
//   RoleJob job(AllOps(), {trainer0, trainer1}, {pserver0}, seed, {.lost = 0.1});
//   job.trainer(0).feeds = {feeds of step 0, feeds of step 1};
//   job.fetches = {"mean_0.tmp_0"};
//   ASSERT_TRUE(job.Run().ok());
//   job.trainer(0).fetched[1]
//
// A trainer's program runs in a thread of its own, but only while the simulation waits for it: it gets its
// turn when what it waits for is there, and gives it back where a process would block. So there is one order
// of everything for each seed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/pserver/native_service.h"
#include "executor/pserver/pserver.h"
#include "executor/schedule/executor.h"
#include "tests/sim/network.h"
#include "tests/support/reference_job.h"

namespace penstock::test {

class RoleJob {
 public:
  struct Trainer {
    std::vector<std::vector<exec::Feed>> feeds;  // by step; as many steps as there are
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
  // Of every server; before Run.
  void set_chunk_bytes(std::size_t bytes) { chunk_bytes_ = bytes; }
  void set_checkpoint_folder(std::string folder) { checkpoint_folder_ = std::move(folder); }

  // Runs the servers' startup programs. Values may be set in their scopes afterwards.
  Status StartServers();
  // StartServers, if that has not been called, and the job to its end. The first error of a trainer, or of a
  // server.
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
  std::optional<std::size_t> chunk_bytes_;  // nothing: as the programs say
  std::string checkpoint_folder_ = ".";
  bool started_ = false;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Role>> roles_;  // trainers
};

}  // namespace penstock::test
