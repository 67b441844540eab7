#include "executor/client/initial_values.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "framework/ir/program.h"
#include "framework/roles/row_pieces.h"
#include "framework/roles/views.h"

namespace penstock::client {
namespace {

constexpr std::size_t kProgramsMax = 64;  // in the cache of Concerns

bool Has(const Program& program, roles::Comm comm) {
  const auto& ops = program.main().ops();
  return std::any_of(ops.begin(), ops.end(),
                     [&](const OpEntry& entry) { return roles::CommOf(*entry.op) == comm; });
}

// Whether the program sends gradients. A sent variable is a gradient unless the program also receives it
// under the same name; then it is an initial value.
bool Trains(const Program& program) {
  if (Has(program, roles::Comm::kSendBarrier)) return true;
  std::set<std::string_view> received;
  for (const OpEntry& entry : program.main().ops()) {
    if (roles::CommOf(*entry.op) != roles::Comm::kRecv) continue;
    const roles::Names names = roles::RecvView(*entry.op).variables();
    received.insert(names.begin(), names.end());
  }
  for (const OpEntry& entry : program.main().ops()) {
    if (roles::CommOf(*entry.op) != roles::Comm::kSend) continue;
    for (const std::string& name : roles::SendView(*entry.op).variables())
      if (!received.contains(name)) return true;
  }
  return false;
}

Dim RowsDeclared(const Program& program, const std::string& name) {
  const Var* var = program.FindVar(0, name);
  if (var == nullptr || !var->HasShape() || var->shape().rank() == 0) return 1;
  return var->shape()[0];
}

using Parts = std::map<std::string, std::vector<RemotePart>>;

// Errors of the op are ignored here: attaching the program reports them.
void AddCut(const Program& program, const Op& op, Parts& parts) {
  const Result<std::vector<roles::RowPiece>> pieces = roles::RowPiecesOf(program, op);
  if (!pieces.ok()) return;
  std::vector<RemotePart>& rows = parts[roles::WholeOf(op)];
  rows.clear();
  for (const roles::RowPiece& piece : *pieces)
    rows.push_back({piece.pserver, piece.type.name, piece.begin, piece.end});
}

void AddReceived(const Program& program, const Op& op, Parts& parts) {
  const roles::RecvView recv(op);
  if (recv.by_communicator()) return AddCut(program, op, parts);
  if (recv.idle()) return;
  const roles::Names servers = recv.addresses(), remote = recv.renamed(), local = recv.variables();
  for (std::size_t i = 0; i < local.size() && i < servers.size(); ++i) {
    const std::string& name = i < remote.size() ? remote[i] : local[i];
    parts[local[i]] = {{servers[i], name, 0, RowsDeclared(program, local[i])}};
  }
}

// A concat of received slices along axis 0: the slices become rows of its output. `wholes` are parameters
// that a recv gives whole; an op of the user may read them.
void AddJoined(const Op& op, const std::set<std::string>& wholes, Parts& parts) {
  if (op.GetOr<std::int32_t>("axis", 0) != 0) return;
  const auto& slices = op.Input("X");
  if (std::any_of(slices.begin(), slices.end(), [&](const auto& name) { return wholes.contains(name); }))
    return;
  std::vector<RemotePart> joined;
  Dim at = 0;
  for (const std::string& slice : slices) {
    const auto found = parts.find(slice);
    if (found == parts.end()) return;
    for (RemotePart part : found->second) {
      const Dim rows = part.end - part.begin;
      part.begin = at;
      part.end = at += rows;
      joined.push_back(std::move(part));
    }
  }
  parts[op.OutputName("Out")] = std::move(joined);
}

void AddSlices(const roles::LookupView& lookup, Parts& parts) {
  const roles::Names names = lookup.pieces(), addresses = lookup.addresses();
  const roles::Numbers heights = lookup.heights();
  std::vector<RemotePart> slices;
  Dim at = 0;
  for (std::size_t i = 0; i < names.size() && i < heights.size() && i < addresses.size(); ++i) {
    slices.push_back({addresses[i], names[i], at, at + heights[i]});
    at += heights[i];
  }
  parts[lookup.table()] = std::move(slices);
}

Status AddPieces(const std::string& name, const std::vector<RemotePart>& parts, const Scope& scope,
                 std::vector<InitialPiece>& pieces) {
  const Variable* variable = scope.Find(name);
  const Tensor* value = variable == nullptr ? nullptr : variable->If<Tensor>();
  if (value == nullptr || !value->initialized()) return OkStatus();  // e.g. a table that was never loaded
  const Dim rows = value->shape().rank() == 0 ? 1 : value->shape()[0];
  if (parts.back().end != rows) {
    return InvalidArgument("E-load-shape", name, " was set to ", DTypeName(value->dtype()), value->shape(),
                           ", but the parameter servers hold ", parts.back().end, " rows of it");
  }
  for (const RemotePart& part : parts) {
    pieces.push_back(
        {part.pserver, part.name, parts.size() == 1 ? *value : value->Rows(part.begin, part.end)});
  }
  return OkStatus();
}

}  // namespace

Parts RemoteParts(const Program& program) {
  Parts parts;
  std::set<std::string> wholes;
  for (const OpEntry& entry : program.main().ops()) {
    const Op& op = *entry.op;
    const roles::Comm comm = roles::CommOf(op);
    if (comm == roles::Comm::kRecv) {
      AddReceived(program, op, parts);
      wholes.emplace(roles::PairOf(op).param);
    }
    if (op.type() == "concat") AddJoined(op, wholes, parts);
    if (comm == roles::Comm::kLookup || comm == roles::Comm::kSampler)
      AddSlices(roles::LookupView(op), parts);
  }
  std::erase_if(parts, [](const auto& part) { return part.second.empty(); });
  return parts;
}

bool InitialValues::Concerns(const Program& program) {
  if (speaks_to_servers_.size() >= kProgramsMax) speaks_to_servers_.clear();
  const auto [known, added] = speaks_to_servers_.try_emplace(program.content_id(), false);
  if (added) known->second = Has(program, roles::Comm::kRecv) || Trains(program);
  return known->second;
}

Status InitialValues::HandOver(const Program& program, Scope& scope, ChangedVars& changed, RpcClient& rpc) {
  const Parts parts = RemoteParts(program);
  if (!Trains(program)) {
    std::erase_if(changed, [&](const auto& entry) { return parts.contains(entry.first); });
    return OkStatus();
  }
  std::vector<InitialPiece> pieces;
  const std::string* loaded = nullptr;
  const ChangedVars taken = std::exchange(changed, {});
  for (const auto& [name, by_load] : taken) {
    const auto found = parts.find(name);
    if (found == parts.end()) {
      if (rpc.IsOfAnotherProgram(program, name)) changed.emplace(name, by_load);
      continue;
    }
    if (by_load && loaded == nullptr) loaded = &name;
    PENSTOCK_RETURN_IF_ERROR(AddPieces(name, found->second, scope, pieces));
  }
  const std::uint64_t step = rpc.StepOf(program);
  if (step > 0 && loaded != nullptr) {
    return FailedPrecondition("E-load-late", *loaded, " was loaded after step ", step,
                              " of this trainer: the parameter servers hold it and would overwrite it")
        .With("load on every trainer, after its startup program and before its first step");
  }
  if (step > 0 || pieces.empty()) return OkStatus();
  PENSTOCK_RETURN_IF_ERROR(rpc.Attach(program));
  return rpc.SetInitial(pieces);
}

}  // namespace penstock::client
