// How the parts of a Job are read; for job*.cc alone.
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
#include "framework/roles/trainer_role.h"
#include "transpiler/cost/job.h"

namespace penstock::cost {

// Bytes of one variable; nothing if an extent is not known. A petabyte and more is taken for damage.
inline constexpr std::int64_t kJobVarBytesMax = std::int64_t{1} << 50;
std::optional<std::int64_t> JobBytes(DType dtype, const Shape& shape);
// Stops at a billion gigabytes, which ReadJob then refuses.
inline constexpr std::int64_t kJobBytesMax = std::int64_t{1} << 60;
inline void AddBytes(std::int64_t& sum, std::int64_t bytes) { sum = std::min(sum + bytes, kJobBytesMax); }
// E-job-var; `user` says what the variable is to be declared for.
Result<std::int64_t> RequireJobBytes(const JobProgram& in, const Var* var, const std::string& name,
                                     std::string_view user);

// What an op that updates a parameter has beside that and the gradient. Nothing if it updates none.
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

// What trainers need to know of the pservers.
class JobServers {
 public:
  explicit JobServers(const std::vector<JobPserver>& pservers);
  int Find(std::string_view address) const;                                     // -1 if there is none
  const JobPiece* FindPiece(int pserver, std::string_view name) const;          // null if it has none
  const JobPiece* FindPieceReadWith(int pserver, std::string_view name) const;  // by an op that reads both

 private:
  const std::vector<JobPserver>& pservers_;
  std::map<std::string, int, std::less<>> by_address_;
  std::vector<std::map<std::string, const JobPiece*, std::less<>>> by_name_;
};

// Adds to job.present; tables are found, or made, in job.tables.
Status ReadJobTrainer(const OpRegistry& ops, const JobProgram& main, const JobProgram* startup,
                      const JobServers& servers, Job& job);
// What trainers reduce among themselves, in a job without pservers: number of ranks, hosts and variables.
Status ReadJobRanks(const JobProgram& main, const JobProgram* startup, Job& job, JobTrainer& trainer);
// What trainers reduce by ops of the program, beside what pservers get.
Status AddReductions(const JobProgram& main, JobTrainer& trainer);
// Once messages are read; of what one trainer's program says, as all do.
Status AddPolicyNotes(const JobProgram& trainer, Job& job);
JobMemory ReadTrainerMemory(const OpRegistry& ops, const Program& program, const Job& job,
                            const JobTrainer& trainer);

// Position of the last op of the backward pass in block 0; -1 if there is none.
int LastBackwardOp(const Block& main);

}  // namespace penstock::cost
