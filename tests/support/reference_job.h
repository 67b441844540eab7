// The same role programs as a job of processes, in one thread and without a network: what simulated and real
// jobs are compared with, byte for byte.
//
//   ReferenceJob job(AllOps(), {trainer0, trainer1}, {pserver0, pserver1});
//   PENSTOCK_RETURN_IF_ERROR(job.Start());
//   PENSTOCK_ASSIGN_OR_RETURN(auto losses, job.Step({feeds of both trainers}, {"mean_0.tmp_0"}));
//   job.trainer_scope(0).Find("w");
//
// A step runs trainer 0's program up to its send_barrier; there trainer 1's program runs, and so on. In the
// last trainer's barrier the servers run their blocks, in the order of listen_and_serv's optimize_blocks, on
// what was handed over. Then every trainer goes on and fetches. No program is cut or rewritten.
//
// Of a table sharded by id every server has all rows, as a tensor: those of the others are never
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

  // Runs every startup program, the servers' first. Values of the servers may be set in their scopes in
  // between: Start is StartServers, then StartTrainers.
  Status Start();
  Status StartServers();
  Status StartTrainers();
  // One step of all trainers: for each, its fetches.
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
