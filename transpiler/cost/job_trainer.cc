// Reads a trainer's side of a Job: the messages that its program sends, requests and waits for in a step.
#include <algorithm>
#include <span>

#include "framework/text/policies.h"
#include "transpiler/cost/job_parts.h"

namespace penstock::cost {
namespace {

using Kind = JobMessage::Kind;

constexpr std::int64_t kIdBytes = 8;       // a row's number travels as int64
constexpr std::int64_t kCounterBytes = 8;  // so does a step counter

std::string ParamOf(const Op& op) { return std::string(roles::PairOf(op).param); }

// The rows of a table that each of its pieces holds: `heights`, if these add up to the table's rows, else an
// equal number each.
std::vector<std::int64_t> RowBounds(const std::vector<std::int64_t>& heights, std::int64_t rows) {
  std::vector<std::int64_t> bounds = {0};
  for (const std::int64_t height : heights) bounds.push_back(bounds.back() + height);
  if (bounds.back() == rows) return bounds;
  const auto count = static_cast<std::int64_t>(heights.size());
  for (std::int64_t i = 0; i <= count; ++i) {
    bounds[static_cast<std::size_t>(i)] = rows / count * i + std::min(i, rows % count);
  }
  return bounds;
}

class TrainerReader {
 public:
  TrainerReader(const JobProgram& in, const JobServers& servers, Job& job, JobTrainer& out)
      : in_(in), main_(in.program->main()), servers_(servers), job_(job), out_(out) {}

  Status Read() {
    PENSTOCK_ASSIGN_OR_RETURN(policies_, ReadPolicies(in_.program->meta()));
    const int last_backward = LastBackwardOp(main_);
    for (const roles::CommOp& one : roles::ReadTrainer(*in_.program).ops) {
      in_backward_ = one.position <= last_backward;
      PENSTOCK_RETURN_IF_ERROR(ReadOp(one));
    }
    return OkStatus();
  }

 private:
  Status ReadOp(const roles::CommOp& one) {
    const Op& op = *one.op;
    switch (one.kind) {
      case roles::CommOp::Kind::kSend:
      case roles::CommOp::Kind::kStep:
      case roles::CommOp::Kind::kTold:
        // In geo mode the op reports touched rows; a communicator sends them.
        return job_.exchange == Exchange::kGeo ? OkStatus() : ReadSend(op);
      case roles::CommOp::Kind::kRecv:
        return ReadRecv(op);
      case roles::CommOp::Kind::kSendBarrier:
        return ReadSendBarrier(op);
      case roles::CommOp::Kind::kFetchBarrier:
        return AddBarriers(op, Kind::kFetchBarrier);
      case roles::CommOp::Kind::kLookup:
        return ReadLookup(op);
      case roles::CommOp::Kind::kPrefetch:
        return ReadPrefetch(op);
      case roles::CommOp::Kind::kSampler:
      case roles::CommOp::Kind::kAnswers:
      case roles::CommOp::Kind::kSave:
        return OkStatus();
    }
    return OkStatus();
  }

  Status ReadSend(const Op& op) {
    const roles::SendView send(op);
    if (send.counts_step()) {
      for (const std::string& address : send.addresses()) {
        PENSTOCK_ASSIGN_OR_RETURN(JobMessage* const message,
                                  Add(op, Kind::kCounter, address, op.InputName("X")));
        message->bytes = kCounterBytes;
      }
      return OkStatus();
    }
    if (!send.by_communicator()) return AddPieces(op, send.variables(), send.variables(), {});
    UsesCommunicator();
    return AddPieces(op, std::vector<std::string>(send.addresses().size(), op.InputName("X")),
                     send.messages(), std::vector<std::int64_t>(send.sections()));
  }

  // Adds a message for each piece of a gradient, under its name on the network. `sections` are the rows of
  // each piece if one variable is sent in pieces.
  Status AddPieces(const Op& op, std::span<const std::string> variables,
                   std::span<const std::string> messages, const std::vector<std::int64_t>& sections) {
    const roles::Names addresses = roles::SendView(op).addresses();
    if (variables.size() != addresses.size() || (!sections.empty() && sections.size() != addresses.size())) {
      return WrongCount(op, variables.size(), addresses.size());
    }
    std::vector<std::int64_t> heights = sections;
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const Var* var = main_.FindVar(variables[i]);
      PENSTOCK_ASSIGN_OR_RETURN(std::int64_t bytes, RequireJobBytes(in_, var, variables[i], "what is sent"));
      const std::int64_t rows = var->shape().rank() == 0 ? 1 : var->shape()[0];
      const std::int64_t row_bytes = rows == 0 ? 0 : bytes / rows;
      if (i >= sections.size()) heights.push_back(rows);
      PENSTOCK_ASSIGN_OR_RETURN(JobMessage* const message,
                                Add(op, Kind::kGradient, addresses[i], variables[i]));
      message->overlaps = in_backward_;
      if (var->kind == VarKind::kSelectedRows) {
        message->bytes_per_row = row_bytes + kIdBytes;
      } else {
        message->bytes = sections.empty() ? bytes : sections[i] * row_bytes;
        if (i < messages.size()) message->compression = policies_.CompressionOf(messages[i]);
      }
    }
    const Var* first = variables.empty() ? nullptr : main_.FindVar(variables[0]);
    if (first == nullptr || first->kind != VarKind::kSelectedRows) return OkStatus();
    return AssignRows(ParamOf(op), first->shape(), heights, variables.size());
  }

  // Sets the rows of the table in the last messages, one per piece.
  Status AssignRows(const std::string& param, const Shape& piece, const std::vector<std::int64_t>& heights,
                    std::size_t count) {
    const int table = FindTable(param, piece, heights);
    const std::vector<std::int64_t> bounds =
        RowBounds(heights, job_.tables[static_cast<std::size_t>(table)].rows);
    for (std::size_t i = 0; i < count; ++i) {
      JobMessage& message = out_.messages[out_.messages.size() - count + i];
      message.table = table;
      message.param = job_.tables[static_cast<std::size_t>(table)].param;
      message.row_begin = bounds[i];
      message.row_end = bounds[i + 1];
    }
    return OkStatus();
  }

  int FindTable(const std::string& param, const Shape& piece, const std::vector<std::int64_t>& heights) {
    for (std::size_t i = 0; i < job_.tables.size(); ++i) {
      if (job_.tables[i].param == param) return static_cast<int>(i);
    }
    JobTable table{.param = param};
    const Var* var = main_.FindVar(param);
    for (const std::int64_t height : heights) table.rows += height;
    if (var != nullptr && var->HasShape() && var->shape().rank() > 0) table.rows = var->shape()[0];
    const DType dtype = var != nullptr && var->HasShape() ? var->type->dtype : DType::kFp32;
    table.row_bytes = JobBytes(dtype, piece.From(std::min(1, piece.rank()))).value_or(0);
    job_.tables.push_back(std::move(table));
    return static_cast<int>(job_.tables.size()) - 1;
  }

  Status ReadRecv(const Op& op) {
    const roles::RecvView recv(op);
    const roles::Names addresses = recv.addresses(), remote = recv.messages(), out = recv.variables();
    if (recv.by_communicator()) UsesCommunicator();
    const std::size_t pieces = remote.empty() ? out.size() : remote.size();
    if (pieces != addresses.size()) return WrongCount(op, pieces, addresses.size());
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const std::string& name = remote.empty() ? out[i] : out.empty() ? remote[i] : out[0];
      PENSTOCK_ASSIGN_OR_RETURN(JobMessage* const message, Add(op, Kind::kParam, addresses[i], name));
      message->up = false;
      const JobPiece* piece = remote.empty() ? nullptr : servers_.FindPiece(message->pserver, remote[i]);
      if (piece != nullptr) {
        message->bytes = piece->value_bytes;
        continue;
      }
      PENSTOCK_ASSIGN_OR_RETURN(message->bytes,
                                RequireJobBytes(in_, main_.FindVar(name), name, "what is received"));
    }
    return OkStatus();
  }

  // A half_async barrier is the communicator's: it reaches the pservers only if they count barriers.
  Status ReadSendBarrier(const Op& op) {
    if (!roles::BarrierView(op).half_async()) return AddBarriers(op, Kind::kSendBarrier);
    if (job_.exchange != Exchange::kSync && job_.exchange != Exchange::kSyncCommunicator) {
      job_.exchange = Exchange::kHalfAsync;
      return OkStatus();
    }
    PENSTOCK_RETURN_IF_ERROR(AddBarriers(op, Kind::kSendBarrier));
    return AddBarriers(op, Kind::kFetchBarrier);
  }

  void UsesCommunicator() {
    if (job_.exchange == Exchange::kSync) job_.exchange = Exchange::kSyncCommunicator;
    if (job_.exchange == Exchange::kAsync) job_.exchange = Exchange::kAsyncCommunicator;
  }

  Status AddBarriers(const Op& op, Kind kind) {
    for (const std::string& address : roles::BarrierView(op).addresses()) {
      PENSTOCK_RETURN_IF_ERROR(Add(op, kind, address, "").status());
    }
    return OkStatus();
  }

  // Adds ids to each piece's pserver, and the rows that come back.
  Status AddPrefetch(const Op& op, const std::string& address, std::int64_t row_bytes,
                     const std::string& what) {
    PENSTOCK_ASSIGN_OR_RETURN(JobMessage* const ids, Add(op, Kind::kIds, address, what));
    ids->bytes_per_row = kIdBytes;
    PENSTOCK_ASSIGN_OR_RETURN(JobMessage* const rows, Add(op, Kind::kRows, address, what));
    rows->up = false;
    rows->bytes_per_row = row_bytes;
    return OkStatus();
  }

  // `heights`: one per piece. The messages were added in pairs, ids then rows.
  void AssignPairs(int table, const std::vector<std::int64_t>& heights) {
    job_.tables[static_cast<std::size_t>(table)].remote = true;
    const std::vector<std::int64_t> bounds =
        RowBounds(heights, job_.tables[static_cast<std::size_t>(table)].rows);
    const std::size_t first = out_.messages.size() - 2 * heights.size();
    for (std::size_t i = 0; i < 2 * heights.size(); ++i) {
      JobMessage& message = out_.messages[first + i];
      message.table = table;
      message.param = job_.tables[static_cast<std::size_t>(table)].param;
      message.row_begin = bounds[i / 2];
      message.row_end = bounds[i / 2 + 1];
    }
  }

  Status ReadLookup(const Op& op) {
    const roles::LookupView lookup(op);
    const roles::Names addresses = lookup.addresses();
    const std::vector<std::int64_t> heights(lookup.heights());
    const Var* table = main_.FindVar(lookup.table());
    if (heights.size() != addresses.size()) return WrongCount(op, heights.size(), addresses.size());
    if (table == nullptr || !table->HasShape() || table->shape().rank() == 0) {
      return InvalidArgument("E-job-var", in_.file, ": table ", Quote(lookup.table()),
                             " is not declared with a known shape");
    }
    const auto row_bytes = JobBytes(table->type->dtype, table->shape().From(1));
    for (const std::string& address : addresses) {
      PENSTOCK_RETURN_IF_ERROR(AddPrefetch(op, address, row_bytes.value_or(0), table->name));
    }
    if (!heights.empty()) AssignPairs(FindTable(table->name, table->shape(), heights), heights);
    return OkStatus();
  }

  Status ReadPrefetch(const Op& op) {
    const roles::Names addresses = roles::PrefetchView(op).addresses(), ids = roles::PrefetchView(op).ids();
    if (ids.size() != addresses.size()) return WrongCount(op, ids.size(), addresses.size());
    std::vector<std::int64_t> heights;
    const JobPiece* piece = nullptr;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const int pserver = servers_.Find(addresses[i]);
      piece = pserver < 0 ? nullptr : servers_.FindPieceReadWith(pserver, ids[i]);
      if (piece == nullptr) {
        return InvalidArgument("E-job-var", in_.file, ": no op of the pserver at ", Quote(addresses[i]),
                               " looks up ids ", Quote(ids[i]), " in a table of its own");
      }
      const auto row_bytes = JobBytes(piece->dtype, piece->shape.From(std::min(1, piece->shape.rank())));
      PENSTOCK_RETURN_IF_ERROR(AddPrefetch(op, addresses[i], row_bytes.value_or(0), ids[i]));
      heights.push_back(piece->rows());
    }
    if (piece != nullptr) {
      AssignPairs(FindTable(piece->param.empty() ? piece->name : piece->param, piece->shape, heights),
                  heights);
    }
    return OkStatus();
  }

  // Valid until the next one is added.
  Result<JobMessage*> Add(const Op& op, Kind kind, const std::string& address, const std::string& variable) {
    const int pserver = servers_.Find(address);
    if (pserver < 0) {
      return InvalidArgument("E-job-address", in_.file, ": ", op.type(), " speaks to ", Quote(address),
                             ", which is the address of no pserver");
    }
    out_.messages.push_back({.kind = kind, .pserver = pserver, .variable = variable, .param = ParamOf(op)});
    return &out_.messages.back();
  }
  Status WrongCount(const Op& op, std::size_t pieces, std::size_t addresses) const {
    return InvalidArgument("E-job-epmap", in_.file, ": ", op.type(), " has ", pieces, " pieces and ",
                           addresses, " addresses");
  }

  const JobProgram& in_;
  const Block& main_;
  const JobServers& servers_;
  Job& job_;
  JobTrainer& out_;
  JobPolicies policies_;
  bool in_backward_ = false;
};

// Finds the ids looked up in each table from the inputs of its gradient ops.
void CountIds(const Program& program, Job& job) {
  for (const OpEntry& entry : program.main().ops()) {
    const Op& op = *entry.op;
    if (!Has(op.role(), OpRole::kBackward) || !op.HasInputSlot("Ids")) continue;
    const auto table = std::find_if(job.tables.begin(), job.tables.end(),
                                    [&](const JobTable& one) { return one.param == op.InputName("W"); });
    if (table == job.tables.end()) continue;
    for (const std::string& name : op.Input("Ids")) {
      const Var* var = program.main().FindVar(name);
      if (var == nullptr || !var->HasShape()) continue;
      std::int64_t count = 1;
      int unknown = 0;
      for (const Dim dim : var->shape().dims()) {
        if (dim < 0) ++unknown;
        if (dim > 0) count = std::min<std::int64_t>(count * std::min<Dim>(dim, 1 << 20), 1 << 20);
      }
      (unknown == 0 ? table->ids : table->ids_per_example) += count;
    }
  }
}

}  // namespace

int LastBackwardOp(const Block& main) {
  static const std::set<std::string_view> kBetweenTrainers = {"c_allreduce_sum", "c_sparse_allreduce_sum",
                                                              "c_sync_calc_stream", "c_sync_comm_stream"};
  int last = -1, position = 0;
  for (const OpEntry& entry : main.ops()) {
    const bool computes = !kBetweenTrainers.contains(entry.op->type());
    if (Has(entry.op->role(), OpRole::kBackward) && computes) last = position;
    ++position;
  }
  return last;
}

Status ReadJobTrainer(const OpRegistry& ops, const JobProgram& main, const JobProgram* startup,
                      const JobServers& servers, Job& job) {
  JobTrainer& out = job.present.emplace_back();
  out.file = main.file;
  if (job.pservers.empty()) {
    PENSTOCK_RETURN_IF_ERROR(ReadJobRanks(main, startup, job, out));
  } else {
    PENSTOCK_RETURN_IF_ERROR(TrainerReader(main, servers, job, out).Read());
    PENSTOCK_RETURN_IF_ERROR(AddReductions(main, out));
    if (job.present.size() == 1) CountIds(*main.program, job);
  }
  out.memory = ReadTrainerMemory(ops, *main.program, job, out);
  return OkStatus();
}

}  // namespace penstock::cost
