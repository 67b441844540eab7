#include "transpiler/cost/job.h"

#include <algorithm>
#include <span>

#include "transpiler/cost/job_parts.h"

namespace penstock::cost {
namespace {

constexpr int kGeoSteps = 100;  // geo_sgd_need_push_nums where the user gave none; no program holds it

// Assigns each piece to its parameter if the pserver's program alone does not show it.
class PieceOwners {
 public:
  explicit PieceOwners(Job& job) {
    for (JobPiece& piece : job.pieces) {
      if (piece.param.empty()) orphans_[piece.name].push_back(&piece);
    }
  }

  void ReadTrainer(const Program& main, const Program* startup) {
    if (orphans_.empty()) return;
    for (const Program* program : {&main, startup}) {
      if (program == nullptr) continue;
      for (const OpEntry& entry : program->main().ops()) ReadOp(*entry.op);
    }
    for (const VarRef& var : main.main().vars()) {
      if (var->persistable) Adopt({&var->name, 1}, var->name);
    }
    AdoptTables(main.main());
  }

  void Finish() {
    for (auto& [name, pieces] : orphans_) {
      for (JobPiece* piece : pieces) {
        if (piece->param.empty()) piece->param = name;
      }
    }
  }

 private:
  void ReadOp(const Op& op) {
    const roles::Comm comm = roles::CommOf(op);
    if (comm == roles::Comm::kRecv && !roles::PairOf(op).param.empty()) {
      const roles::RecvView recv(op);
      Adopt(recv.by_communicator() ? recv.messages() : recv.variables(),
            std::string(roles::PairOf(op).param));
    } else if (op.type() == "concat") {
      Adopt(op.Input("X"), op.OutputName("Out"));
    } else if (comm == roles::Comm::kLookup) {
      Adopt(roles::LookupView(op).pieces(), roles::LookupView(op).table());
    }
  }

  void Adopt(std::span<const std::string> names, const std::string& param) {
    for (const std::string& name : names) {
      const auto it = orphans_.find(name);
      if (it == orphans_.end()) continue;
      for (JobPiece* piece : it->second) piece->param = param;
      orphans_.erase(it);
    }
  }

  // In geo mode no recv names a table, only a send does: the remaining pieces that fit are its rows.
  void AdoptTables(const Block& main) {
    for (const OpEntry& entry : main.ops()) {
      if (roles::CommOf(*entry.op) != roles::Comm::kSend) continue;
      for (const std::string& table : roles::SendView(*entry.op).messages()) {
        const Var* var = main.FindVar(table);
        if (var != nullptr && var->HasShape() && var->shape().rank() > 0) AdoptRows(table, var->shape());
      }
    }
  }

  void AdoptRows(const std::string& table, const Shape& shape) {
    Dim left = shape[0];
    std::vector<std::string> names;
    for (const auto& [name, pieces] : orphans_) {
      const JobPiece& piece = *pieces.front();
      if (!piece.sparse || piece.shape.rank() == 0 || piece.shape.From(1) != shape.From(1)) continue;
      if (piece.rows() > left) continue;
      left -= piece.rows();
      names.push_back(name);
    }
    if (left == 0) Adopt(names, table);
  }

  std::map<std::string, std::vector<JobPiece*>, std::less<>>
      orphans_;  // by name: the same on several pservers
};

// In geo mode a communicator exchanges changes in both directions after several steps, without ops.
void AddGeoMessages(Job& job) {
  job.steps_per_exchange = kGeoSteps;
  JobTrainer& trainer = job.present.front();
  std::map<std::string, int> tables;
  std::map<std::string, std::int64_t> rows;
  for (const JobPiece& piece : job.pieces) {
    JobMessage up{.kind = JobMessage::Kind::kGradient,
                  .pserver = piece.pserver,
                  .variable = piece.name,
                  .param = piece.param};
    JobMessage down{.kind = JobMessage::Kind::kParam,
                    .up = false,
                    .pserver = piece.pserver,
                    .variable = piece.name,
                    .param = piece.param};
    if (piece.sparse) {
      const std::int64_t row_bytes = piece.rows() == 0 ? 0 : piece.value_bytes / piece.rows();
      const auto it = tables.emplace(piece.param, static_cast<int>(job.tables.size())).first;
      if (it->second == static_cast<int>(job.tables.size())) {
        job.tables.push_back({.param = piece.param, .row_bytes = row_bytes});
      }
      up.table = down.table = it->second;
      up.row_begin = down.row_begin = rows[piece.param];
      up.row_end = down.row_end = rows[piece.param] += piece.rows();
      up.bytes_per_row = row_bytes + 8;
      down.bytes_per_row = job.trainers * (row_bytes + 8);  // at most the rows that all of them changed
    } else {
      up.bytes = down.bytes = piece.value_bytes;
    }
    trainer.messages.push_back(std::move(up));
    trainer.messages.push_back(std::move(down));
  }
  for (JobTable& table : job.tables) table.rows = rows[table.param];
  for (JobTrainer& other : job.present) other.messages = trainer.messages;
}

// check/ reports errors of the set; these notes only cover conditions that change the meaning of the numbers.
void AddNotes(Job& job) {
  const auto is_barrier = [](const JobMessage& message) {
    return message.kind == JobMessage::Kind::kSendBarrier;
  };
  const bool sync = job.exchange == Exchange::kSync || job.exchange == Exchange::kSyncCommunicator;
  for (const JobTrainer& trainer : job.present) {
    if (!sync || job.pieces.empty()) break;
    if (std::any_of(trainer.messages.begin(), trainer.messages.end(), is_barrier)) continue;
    job.notes.push_back(StrCat("the pservers wait for a barrier at the end of a step, and ", trainer.file,
                               " sends none: these programs hang"));
  }
}

Status CheckSize(const Job& job) {
  const auto large = [](const JobMemory& memory) {
    return std::max({memory.parameters, memory.gradients, memory.optimizer_state, memory.copies, memory.other,
                     memory.activations, memory.activations_per_example}) >= kJobBytesMax;
  };
  for (std::size_t i = 0; i < job.pserver_memory.size(); ++i) {
    if (large(job.pserver_memory[i])) {
      return InvalidArgument("E-job-size", "pserver ", i, " holds more bytes than can be counted");
    }
  }
  for (const JobTrainer& trainer : job.present) {
    if (large(trainer.memory))
      return InvalidArgument("E-job-size", trainer.file, ": more bytes than can be counted");
  }
  return OkStatus();
}

Status ReadPservers(const OpRegistry& ops, const JobPrograms& programs, Job& job,
                    std::vector<JobPserver>& pservers) {
  for (const JobProgram& program : programs.pservers) {
    PENSTOCK_ASSIGN_OR_RETURN(JobPserver pserver,
                              ReadJobPserver(ops, program, static_cast<int>(pservers.size())));
    const auto twice = std::find(job.pservers.begin(), job.pservers.end(), pserver.address);
    if (twice != job.pservers.end()) {
      return InvalidArgument("E-job-address", program.file, ": its address ", Quote(pserver.address),
                             " is that of ",
                             programs.pservers[static_cast<std::size_t>(twice - job.pservers.begin())].file);
    }
    job.pservers.push_back(pserver.address);
    job.pserver_memory.push_back(pserver.memory);
    if (pserver.telling) job.tellings.push_back(*pserver.telling);
    job.pieces.insert(job.pieces.end(), pserver.pieces.begin(), pserver.pieces.end());
    pservers.push_back(std::move(pserver));
  }
  if (pservers.empty()) return OkStatus();
  const roles::ServeMode mode = pservers.front().mode;
  job.exchange = mode == roles::ServeMode::kSync  ? Exchange::kSync
                 : mode == roles::ServeMode::kGeo ? Exchange::kGeo
                                                  : Exchange::kAsync;
  job.trainers = pservers.front().trainers;
  return OkStatus();
}

}  // namespace

std::string_view ExchangeName(Exchange exchange) {
  switch (exchange) {
    case Exchange::kSync:
      return "sync";
    case Exchange::kSyncCommunicator:
      return "sync_communicator";
    case Exchange::kAsync:
      return "async";
    case Exchange::kAsyncCommunicator:
      return "async_communicator";
    case Exchange::kHalfAsync:
      return "half_async";
    case Exchange::kGeo:
      return "geo";
    case Exchange::kAllReduce:
      return "all_reduce";
  }
  return "";
}

std::optional<std::int64_t> JobBytes(DType dtype, const Shape& shape) {
  auto bytes = static_cast<std::int64_t>(SizeOf(dtype));
  for (const Dim dim : shape.dims()) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes) || bytes > kJobVarBytesMax) return std::nullopt;
  }
  return bytes;
}

Result<std::int64_t> RequireJobBytes(const JobProgram& in, const Var* var, const std::string& name,
                                     std::string_view user) {
  const std::optional<std::int64_t> bytes =
      var != nullptr && var->HasShape() ? JobBytes(var->type->dtype, var->shape()) : std::nullopt;
  if (bytes) return *bytes;
  return InvalidArgument(
      "E-job-var", in.file, ": ", user, " must be declared with a known shape: ", Quote(name),
      var == nullptr ? std::string(" is not declared") : StrCat(" is declared ", var->shape()));
}

std::vector<JobParam> ParamsOf(const Job& job) {
  std::map<std::string, JobParam> params;
  for (const JobPiece& piece : job.pieces) {
    JobParam& param = params[piece.param];
    if (param.pieces++ == 0) {
      param.name = piece.param;
      param.dtype = piece.dtype;
      param.shape = piece.shape;
    } else if (piece.shape.rank() > 0 && param.shape.rank() > 0) {
      param.shape.Set(0, param.shape[0] + piece.rows());
    }
    param.sparse = param.sparse || piece.sparse;
    param.elementwise = param.elementwise && piece.elementwise;
  }
  std::vector<JobParam> out;
  out.reserve(params.size());
  for (auto& [name, param] : params) out.push_back(std::move(param));
  return out;
}

Result<Job> ReadJob(const OpRegistry& ops, const JobPrograms& programs) {
  Job job;
  if (programs.trainers.empty()) return InvalidArgument("E-job-trainer", "a job without a trainer");
  std::vector<JobPserver> pservers;
  PENSTOCK_RETURN_IF_ERROR(ReadPservers(ops, programs, job, pservers));
  const JobServers servers(pservers);
  for (std::size_t i = 0; i < programs.trainers.size(); ++i) {
    const JobProgram* startup =
        i < programs.trainer_startups.size() ? &programs.trainer_startups[i] : nullptr;
    PENSTOCK_RETURN_IF_ERROR(ReadJobTrainer(ops, programs.trainers[i], startup, servers, job));
  }
  PieceOwners owners(job);
  owners.ReadTrainer(*programs.trainers.front().program,
                     programs.trainer_startups.empty() ? nullptr : programs.trainer_startups.front().program);
  owners.Finish();
  if (job.exchange == Exchange::kGeo) AddGeoMessages(job);
  AddNotes(job);
  PENSTOCK_RETURN_IF_ERROR(AddPolicyNotes(programs.trainers.front(), job));
  PENSTOCK_RETURN_IF_ERROR(CheckSize(job));
  job.plan = programs.trainers.front().program->meta().plan;
  return job;
}

}  // namespace penstock::cost
