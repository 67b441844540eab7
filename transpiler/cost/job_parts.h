// Reads the parts of a Job. Internal to job*.cc.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/roles/server_wiring.h"
#include "framework/roles/trainer_facts.h"
#include "transpiler/cost/job.h"

namespace penstock::cost {

// Bytes of one variable; nullopt if an extent is unknown, or above kJobVarBytesMax, which indicates a damaged
// program.
inline constexpr std::int64_t kJobVarBytesMax = std::int64_t{1} << 50;
std::optional<std::int64_t> JobBytes(DType dtype, const Shape& shape);
// Sums saturate at kJobBytesMax, which ReadJob then rejects.
inline constexpr std::int64_t kJobBytesMax = std::int64_t{1} << 60;
inline void AddBytes(std::int64_t& sum, std::int64_t bytes) { sum = std::min(sum + bytes, kJobBytesMax); }
// JobBytes, or kInvalidArgument E-job-var; `user` names the purpose of the variable in the error.
Result<std::int64_t> RequireJobBytes(const JobProgram& in, const Var* var, const std::string& name,
                                     std::string_view user);

// The state variables of an op that updates a parameter; nullopt if the op updates none.
struct JobOptimizer {
  std::vector<std::string> state;  // variables
  bool elementwise = true;
};
std::optional<JobOptimizer> ReadJobOptimizer(const OpRegistry& ops, const Op& op);

struct JobPserver {
  const JobProgram* program = nullptr;
  std::string address;
  int trainers = 1;
  roles::ServeMode mode = roles::ServeMode::kSync;
  std::vector<JobPiece> pieces;
  std::optional<JobTelling> telling;
  JobMemory memory;
};
Result<JobPserver> ReadJobPserver(const OpRegistry& ops, const JobProgram& program, int index);

// An index of the pservers and their pieces, for reading trainers.
class JobServers {
 public:
  explicit JobServers(const std::vector<JobPserver>& pservers);
  int Find(std::string_view address) const;                                     // -1 if there is none
  const JobPiece* FindPiece(int pserver, std::string_view name) const;          // null if absent
  const JobPiece* FindPieceReadWith(int pserver, std::string_view name) const;  // by an op that reads both

 private:
  const std::vector<JobPserver>& pservers_;
  std::map<std::string, int, std::less<>> by_address_;
  std::vector<std::map<std::string, const JobPiece*, std::less<>>> by_name_;
};

// Appends to job.present, and to job.tables if a table is not there yet.
Status ReadJobTrainer(const OpRegistry& ops, const JobProgram& main, const JobProgram* startup,
                      const JobServers& servers, Job& job);
// For a job without pservers: reads the number of ranks, the groups by host and the reduced variables.
Status ReadJobRanks(const JobProgram& main, const JobProgram* startup, Job& job, JobTrainer& trainer);
// Adds the variables that ops of the program reduce, for jobs with pservers too.
Status AddReductions(const JobProgram& main, JobTrainer& trainer);
// Adds notes about the policies in one trainer's program; all trainers have the same. Call it after the
// messages are read.
Status AddPolicyNotes(const JobProgram& trainer, Job& job);
JobMemory ReadTrainerMemory(const OpRegistry& ops, const Program& program, const Job& job,
                            const JobTrainer& trainer);

// Position of the last op of the backward pass in block 0; -1 if there is none.
int LastBackwardOp(const Block& main);

}  // namespace penstock::cost
