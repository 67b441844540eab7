// Reads a Job without pservers: the ranks and the variables that they all-reduce in a step.
#include "transpiler/cost/job_parts.h"

namespace penstock::cost {
namespace {

// Whether ops of the program reduce, or the runner does.
enum class Joined { kNo, kByOps, kByRunner };

// Reads the number of ranks and how they are joined.
Joined ReadCommunicator(const Program& startup, Job& job) {
  Joined joined = Joined::kNo;
  for (const OpEntry& entry : startup.main().ops()) {
    const Op& op = *entry.op;
    if (op.type() == "gen_nccl_id") {
      joined = Joined::kByRunner;
      job.trainers = static_cast<int>(op.GetOr<std::vector<std::string>>("trainers", {}).size());
      if (op.GetOr<bool>("use_hierarchical_allreduce", false)) {
        job.ranks_per_host = op.GetOr<std::int32_t>("hierarchical_allreduce_inter_nranks", 0);
      }
    } else if (op.type() == "c_comm_init") {
      joined = Joined::kByOps;
      job.trainers = op.GetOr<std::int32_t>("nranks", 1);
    } else if (op.type() == "c_comm_init_all") {
      joined = Joined::kByOps;  // the devices of one process: no other rank
    }
  }
  return joined;
}

Status AddReduction(const JobProgram& main, int block, const std::string& name, bool overlaps,
                    JobTrainer& trainer) {
  const Var* var = main.program->FindVar(block, name);
  if (var != nullptr && var->kind == VarKind::kSelectedRows)
    return OkStatus();  // a ring does not reduce rows
  PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t bytes, RequireJobBytes(main, var, name, "what ranks add up"));
  trainer.reductions.push_back({.variable = name, .bytes = bytes, .overlaps = overlaps});
  return OkStatus();
}

// Adds every gradient once, at its last writer: the runner reduces them there, without an op.
Status AddGradients(const JobProgram& main, JobTrainer& trainer) {
  const auto& ops = main.program->main().ops();
  const int last_backward = LastBackwardOp(main.program->main());
  std::map<std::string, int, std::less<>> written;
  std::vector<std::string> gradients;
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    const Op& op = *ops[static_cast<std::size_t>(i)].op;
    if (!Has(op.role(), OpRole::kBackward)) continue;
    for (const std::string& name : op.OutputNames()) written[name] = i;
    for (const auto& [param, grad] : op.RolePairs()) gradients.push_back(grad);
  }
  std::set<std::string> added;
  for (const std::string& name : gradients) {
    if (!added.insert(name).second) continue;
    const auto at = written.find(name);
    const bool overlaps = at != written.end() && at->second < last_backward;
    PENSTOCK_RETURN_IF_ERROR(AddReduction(main, 0, name, overlaps, trainer));
  }
  return OkStatus();
}

}  // namespace

Status AddReductions(const JobProgram& main, JobTrainer& trainer) {
  const int last_backward = LastBackwardOp(main.program->main());
  for (int block = 0; block < main.program->block_count(); ++block) {
    int position = 0;
    for (const OpEntry& entry : main.program->block(block).ops()) {
      const bool overlaps = block == 0 && position++ <= last_backward;
      if (entry.op->type() != "c_allreduce_sum" && entry.op->type() != "c_sparse_allreduce_sum") continue;
      PENSTOCK_RETURN_IF_ERROR(AddReduction(main, block, entry.op->InputName("X"), overlaps, trainer));
    }
  }
  return OkStatus();
}

Status ReadJobRanks(const JobProgram& main, const JobProgram* startup, Job& job, JobTrainer& trainer) {
  job.exchange = Exchange::kAllReduce;
  const Joined joined = startup == nullptr ? Joined::kNo : ReadCommunicator(*startup->program, job);
  if (joined == Joined::kNo) {
    return InvalidArgument("E-job-alone", main.file, ": there is no pserver, and ",
                           startup == nullptr ? "no startup program joins" : startup->file + " does not join",
                           " the ranks of a collective job");
  }
  if (job.trainers < 1 || job.trainers > 1'000'000) {
    return InvalidArgument("E-job-ranks", startup->file, ": a collective job of ", job.trainers, " ranks");
  }
  const int ranks = job.ranks_per_host;
  if (ranks < 0 || (ranks > 0 && job.trainers % ranks != 0)) {
    return InvalidArgument("E-job-ranks", startup->file, ": ", job.trainers, " ranks do not fill hosts of ",
                           ranks);
  }
  if (joined == Joined::kByRunner) return AddGradients(main, trainer);
  return AddReductions(main, trainer);
}

}  // namespace penstock::cost
