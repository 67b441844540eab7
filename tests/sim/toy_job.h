// A job of role programs for the tests of servers and trainers: pieces of parameters over servers, their
// optimizers, and what one thread makes of the same programs.
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

struct ToyParam {
  std::string name;
  Shape shape;
  int server = 0;
  std::string optimizer = "sgd";  // sgd momentum adam
  bool decay = false;             // an L2 term between merge and update
  bool start = false;             // never updated: trainer 0 sends its value at the start
  Compression compression = {};   // of its gradients
  bool table = false;             // trainers look single rows up and send gradients of rows
  bool clipped = false;           // by the norm over all gradients that are; dense
  std::uint64_t salt = 0;         // of which rows they look up; with every fourth, they seldom do
};

struct ToyJob {
  int trainers = 2;
  std::vector<std::string> servers;
  std::vector<ToyParam> params;
  bool lr_block = false;  // a block that halves the rate each step, of each trainer if they are asynchronous
  int backup_trainers = 0;
  std::optional<std::size_t> early_bytes;  // of each server, as PserverOptions says; nothing: its default
  std::chrono::milliseconds resend_after{100};
  bool all_by_turn = false;  // small parameters too, where early gradients could be more than those bytes
  // No barriers in a step; all trainers send a gradient under one name, and each is an update.
  bool async = false;
  std::optional<int> staleness;
  // Of asynchronous jobs without tables: gradients are corrected for delay, by so much.
  std::optional<float> delay;

  Program Pserver(int server) const;
  Program Trainer(int trainer) const;         // recv, send, send_barrier, fetch_barrier for everything
  Program TrainerStartup(int trainer) const;  // recv, fetch_barrier
  std::string GradName(const ToyParam& param, int trainer) const;
  // What a trainer looks up in a step: ToyIds, but in asynchronous jobs never nothing.
  std::vector<std::int64_t> IdsOf(const ToyParam& table, int trainer, std::uint64_t step) const;
  // Gives every variable of a pserver its initial value.
  void Start(int server, Scope& scope) const;

 private:
  static Var Persistable(std::string name, Shape shape);
  static Var GradVar(const ToyParam& param, std::string name);
  void CountSteps(Program& program, int block) const;
  // Blocks that measure the gradients of the server's clipped parameters, and the one that all its updates
  // read; where it has any.
  void AddNorms(Program& program, int server, std::vector<BlockRef>& blocks) const;
  void AddMerge(Program& program, int block, const ToyParam& param) const;
  std::string CorrectForDelay(Program& program, int block, const ToyParam& param,
                              const std::string& grad) const;
  Program WithoutFetchBarrier(const Program& sending, int trainer) const;
  JobPolicies PoliciesOf(const std::vector<int>& senders, int server) const;  // server -1: to any
};

// What trainer 0 sends of a parameter that is an initial value.
std::vector<float> ToyStart(const ToyParam& param);

using ToyValues = std::map<std::string, std::vector<float>>;  // by parameter
// A gradient that depends on everything it may depend on.
std::vector<float> ToyGradient(const std::vector<float>& param, const std::string& name, int trainer,
                               std::uint64_t step);
// The rows that a trainer looks up in a step, some of them twice, in some steps none; and the rows
// themselves.
std::string ToyCounter(int trainer);                           // of its steps, for the block of the rate
std::string ToySquares(const std::string& param);              // what is measured of a clipped gradient
std::string ToyBackup(const std::string& param, int trainer);  // what it has read, where delay is corrected
std::vector<std::int64_t> ToyIds(const ToyParam& table, int trainer, std::uint64_t step);
std::vector<float> ToyRows(const ToyParam& table, const std::vector<float>& values,
                           const std::vector<std::int64_t>& ids);
// Versions 0 to `steps` of every parameter, made by one thread.
std::vector<ToyValues> ToyReference(const ToyJob& job, int steps);

}  // namespace penstock::test
