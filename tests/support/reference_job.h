// Runs the role programs of a job on one thread, without a network. Simulated and real jobs must give the
// same bytes.
//
//   ReferenceJob job(AllOps(), {trainer0, trainer1}, {pserver0, pserver1});
//   PENSTOCK_RETURN_IF_ERROR(job.Start());
//   PENSTOCK_ASSIGN_OR_RETURN(auto losses, job.Step({feeds of both trainers}, {"mean_0.tmp_0"}));
//   job.trainer_scope(0).Find("w");
//
// A step runs trainer 0's program up to its send_barrier; there trainer 1's program runs, and so on. In the
// last trainer's barrier the servers run their blocks, in the order of listen_and_serv's optimize_blocks, on
// the received gradients. Then every trainer continues and fetches. No program is cut or rewritten.
//
// Every server holds all rows of a table sharded by id, as a tensor; rows of other servers' shards are never
// looked up or changed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/runtime/rpc_client.h"

namespace penstock::test {

struct RolePrograms {
  Program startup;
  Program main;
};

class ReferenceJob {
 public:
  // Trainers in the order of their ids. A pserver's address is its listen_and_serv's `endpoint`.
  ReferenceJob(const OpRegistry& ops, std::vector<RolePrograms> trainers, std::vector<RolePrograms> pservers,
               int threads = 1);
  ~ReferenceJob();

  // Start() is StartServers() followed by StartTrainers(), which run the startup programs. In between, tests
  // may set variables in the servers' scopes.
  Status Start();
  Status StartServers();
  Status StartTrainers();
  // Runs one step of all trainers; returns the fetches of each.
  Result<std::vector<std::vector<Variable>>> Step(const std::vector<std::vector<exec::Feed>>& feeds,
                                                  const std::vector<std::string>& fetches);

  Scope& trainer_scope(int trainer);
  Scope& pserver_scope(int pserver);  // in the order given

 private:
  class Client;
  struct Server;
  struct Trainer;

  static Status MakeTablesWhole(const OpRegistry& ops, Server& server);
  Status RunTrainer(std::size_t trainer);
  Status RunServers();
  Status EndStep(std::size_t trainer);

  const OpRegistry& ops_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<std::unique_ptr<Server>> servers_;                 // in the order given
  std::map<std::string, Server*> server_at_;                     // by address
  const std::vector<std::vector<exec::Feed>>* feeds_ = nullptr;  // of the step now running
  const std::vector<std::string>* fetches_ = nullptr;
};

}  // namespace penstock::test
