// Makes the role programs of a small job for tests of servers and trainers: pieces of parameters on servers,
// with their optimizers, and a reference that runs the same programs on one thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/tensor/scope.h"
#include "framework/text/policies.h"

namespace penstock::test {

class FaultyDisk;

struct ToyParam {
  std::string name;
  Shape shape;
  int server = 0;
  std::string optimizer = "sgd";  // sgd momentum adam
  bool decay = false;             // an L2 term between merge and update
  bool start = false;             // never updated: trainer 0 sends its value at the start
  Compression compression = {};   // of its gradients
  bool table = false;             // trainers look up single rows and send gradients of rows
  bool clipped = false;           // dense: by the norm over all clipped gradients
  std::uint64_t salt = 0;         // seed of the looked-up rows; every fourth value makes lookups rare
};

struct ToyJob {
  int trainers = 2;
  std::vector<std::string> servers;
  std::vector<ToyParam> params;
  bool lr_block = false;  // a block halves the rate in each step; if async, in each step of any trainer
  int backup_trainers = 0;
  std::optional<std::size_t> early_bytes;  // PserverOptions::early_bytes of each server; nullopt: its default
  std::chrono::milliseconds resend_after{100};
  // Steps from one checkpoint to the next, on servers that may be started again by themselves; 0: none.
  std::uint64_t checkpoint_every = 0;
  // Without an interval, on a disk that all servers share: as frequent as this share of the time allows.
  std::optional<double> checkpoint_share;
  // The disk of all servers; null: each has one. The job continues after the step `resume` of its
  // checkpoints.
  std::shared_ptr<FaultyDisk> disk;
  std::optional<std::uint64_t> resume;
  std::string run = "sim.0";                   // names this start of the job
  std::optional<std::size_t> retention_bytes;  // SessionOptions::retention_bytes; nullopt: its default
  bool all_by_turn = false;  // small parameters too, if early gradients may exceed early_bytes
  // No barriers in a step; all trainers send a gradient under the same name, and each one is an update.
  bool async = false;
  std::optional<int> staleness;
  // Lambda of delay compensation, for asynchronous jobs without tables.
  std::optional<float> delay;

  Program Pserver(int server) const;
  Program Trainer(int trainer) const;         // recv, send, send_barrier, fetch_barrier for everything
  Program TrainerStartup(int trainer) const;  // recv, fetch_barrier
  std::string GradName(const ToyParam& param, int trainer) const;
  // The ids that a trainer looks up in a step: ToyIds, but never empty in asynchronous jobs.
  std::vector<std::int64_t> IdsOf(const ToyParam& table, int trainer, std::uint64_t step) const;
  // Sets every variable of a pserver to its initial value.
  void Start(int server, Scope& scope) const;

 private:
  static Var Persistable(std::string name, Shape shape);
  static Var GradVar(const ToyParam& param, std::string name);
  void CountSteps(Program& program, int block) const;
  // Adds the blocks that compute the norms of the server's clipped gradients, and the block whose result all
  // its updates read, if there are any.
  void AddNorms(Program& program, int server, std::vector<BlockRef>& blocks) const;
  void AddMerge(Program& program, int block, const ToyParam& param) const;
  std::string CorrectForDelay(Program& program, int block, const ToyParam& param,
                              const std::string& grad) const;
  Program WithoutFetchBarrier(const Program& sending, int trainer) const;
  JobPolicies PoliciesOf(const std::vector<int>& senders, int server) const;  // server -1: to all servers
};

// The initial value that trainer 0 sends for a parameter with `start`.
std::vector<float> ToyStart(const ToyParam& param);

using ToyValues = std::map<std::string, std::vector<float>>;  // by parameter
// A gradient that depends on all of its arguments.
std::vector<float> ToyGradient(const std::vector<float>& param, const std::string& name, int trainer,
                               std::uint64_t step);
std::string ToyCounter(int trainer);                           // its step counter, for the rate's block
std::string ToySquares(const std::string& param);              // sum of squares of a clipped gradient
std::string ToyBackup(const std::string& param, int trainer);  // the parameter that it read, if `delay`
// The ids that a trainer looks up in a step, some of them twice, in some steps none; and the rows of `ids`.
std::vector<std::int64_t> ToyIds(const ToyParam& table, int trainer, std::uint64_t step);
std::vector<float> ToyRows(const ToyParam& table, const std::vector<float>& values,
                           const std::vector<std::int64_t>& ids);
// The reference: versions 0 to `steps` of every parameter, computed on one thread.
std::vector<ToyValues> ToyReference(const ToyJob& job, int steps);

}  // namespace penstock::test
