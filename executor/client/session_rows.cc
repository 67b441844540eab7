// A session's rows: gradients that are rows of a table, and questions for single rows.
#include <algorithm>
#include <cstring>
#include <utility>

#include "executor/client/session.h"
#include "executor/protocol/saved_name.h"

namespace penstock::client {
namespace {

// A question's ids fit a message, whatever the parts in which its answer comes.
constexpr std::size_t kIdsOfRequest = std::size_t{1} << 16;
static_assert(kIdsOfRequest * sizeof(std::int64_t) <= kMaxBodyBytes);

// Of a table that is dealt out by id, any number is a row's. Whether the piece is of such a one only its
// server knows, where there is one.
bool MayHaveAnyRow(const protocol::Contract& contract) {
  return std::any_of(contract.tables.begin(), contract.tables.end(),
                     [](const protocol::ContractPiece& table) { return !table.shape.IsKnown(); });
}

Status RequireRows(const protocol::Contract& contract, const protocol::ContractPiece& piece,
                   const SelectedRows& value) {
  const auto count = static_cast<Dim>(value.rows.size());
  const auto error = [&](const auto&... parts) {
    return InvalidArgument("E-send-shape", "send: ", piece, " is declared, the value is ", StrCat(parts...));
  };
  if (!piece.rows) return error("selected rows");
  if (value.height != piece.shape[0]) return error("rows of a tensor of ", value.height, " rows");
  if (count == 0) return OkStatus();
  if (!value.value.initialized()) return error(count, " rows without values");
  if (value.value.dtype() != piece.dtype || value.value.shape() != piece.shape.WithRows(count))
    return error(count, " rows with values ", DTypeName(value.value.dtype()), value.value.shape());
  if (MayHaveAnyRow(contract)) return OkStatus();
  for (const std::int64_t row : value.rows) {
    if (row >= 0 && row < piece.shape[0]) continue;
    return InvalidArgument("E-op-index", "send: row ", row, " is outside ", piece.name, ", which has ",
                           piece.shape[0], " rows");
  }
  return OkStatus();
}

// All ids, then all values.
Payload BodyOf(const SelectedRows& value) {
  const std::size_t ids = value.rows.size() * sizeof(std::int64_t);
  std::string bytes(ids + (value.rows.empty() ? 0 : value.value.bytes()), 0);
  if (!bytes.empty()) {
    std::memcpy(bytes.data(), value.rows.data(), ids);
    std::memcpy(bytes.data() + ids, value.value.raw(), bytes.size() - ids);
  }
  return Payload::Of(std::move(bytes));
}

// `size` bytes from `begin` on of a payload that is one piece.
Payload PartOf(const Payload& body, std::size_t begin, std::size_t size) {
  if (size == 0) return {};
  const Bytes& all = body.pieces().front();
  return Payload(Bytes{all.owner, all.data + begin, size});
}

}  // namespace

Result<RowsHandle> Session::DeclareRows(const RemotePiece& piece) {
  const std::lock_guard lock(mutex_);
  const auto peer = peers_.find(piece.pserver);
  if (peer == peers_.end() || peer->second->contract.FindTable(piece.name) < 0) {
    return InvalidArgument("E-contract-unknown", "rows of ", piece.name, " on pserver ", piece.pserver,
                           " are asked for by no op of the programs attached");
  }
  tables_.push_back({.peer = peer->second.get(), .name = piece.name});
  return RowsHandle{static_cast<int>(tables_.size()) - 1};
}

Status Session::PushRows(PushHandle handle, const SelectedRows& value) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  const Declared& declared = pushes_[static_cast<std::size_t>(handle.index)];
  Peer& peer = *declared.peer;
  const int grad = peer.contract.FindGrad(declared.name);
  if (grad < 0) {
    return InvalidArgument("E-send-shape", "send: ", declared.name,
                           " is a first value, which must be a tensor, not selected rows");
  }
  PENSTOCK_RETURN_IF_ERROR(
      RequireRows(peer.contract, PieceOf(peer, static_cast<std::uint32_t>(grad)), value));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t variable, OpenPush(declared));
  Enqueue(peer, {.kind = protocol::MessageKind::kPush,
                 .step = step_,
                 .variable = variable,
                 .chunk = 0,
                 .value = {},
                 .body = BodyOf(value),
                 .rows = value.rows.size()});
  return OkStatus();
}

// A gradient without rows travels too, as one empty part: the server waits for every trainer's.
void Session::FlushRows(Peer& peer, const Ready& ready) {
  protocol::Envelope envelope{.kind = protocol::MessageKind::kPush,
                              .step = ready.step,
                              .credit = ready.rows,
                              .variable = ready.variable};
  std::size_t at = 0;
  do {
    const std::size_t size = std::min<std::size_t>(peer.cut.part_bytes, ready.body.size() - at);
    SendKept(peer, envelope, PartOf(ready.body, at, size));
    ++envelope.part;
    at += size;
  } while (at < ready.body.size());
}

Status Session::PullRows(RowsHandle handle, std::span<const std::int64_t> ids, Tensor& out) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  const Declared& declared = tables_[static_cast<std::size_t>(handle.index)];
  Peer& peer = *declared.peer;
  const auto variable = static_cast<std::uint32_t>(peer.contract.FindTable(declared.name));
  const protocol::ContractPiece& piece = PieceOf(peer, variable);
  const std::size_t row_bytes = static_cast<std::size_t>(piece.shape.RowWidth()) * SizeOf(piece.dtype);
  out.Reset(piece.dtype, piece.shape.WithRows(static_cast<Dim>(ids.size())));
  for (std::size_t begin = 0; begin < ids.size(); begin += kIdsOfRequest) {
    const std::span<const std::int64_t> asked =
        ids.subspan(begin, std::min(kIdsOfRequest, ids.size() - begin));
    const std::uint32_t request = peer.requests++;
    peer.arriving_rows[request] = {.version = step_,
                                   .variable = variable,
                                   .out = out,
                                   .begin = begin * row_bytes,
                                   .bytes = asked.size() * row_bytes,
                                   .have = {}};
    Enqueue(
        peer,
        {.kind = protocol::MessageKind::kPullRows,
         .step = step_,
         .variable = variable,
         .chunk = 0,
         .value = {},
         .body = Payload::Of(std::string(reinterpret_cast<const char*>(asked.data()), asked.size_bytes())),
         .request = request});
  }
  return OkStatus();
}

void Session::FlushRowsPull(Peer& peer, const Ready& ready) {
  ArrivingRows& arriving = peer.arriving_rows[ready.request];
  arriving.have.resize((arriving.bytes + peer.cut.part_bytes - 1) / peer.cut.part_bytes);
  SendKept(peer,
           {.kind = protocol::MessageKind::kPullRows,
            .step = ready.step,
            .variable = ready.variable,
            .part = ready.request},
           ready.body);
}

Status Session::OnRows(Peer& peer, const protocol::Envelope& envelope, const Payload& body) {
  const auto found = peer.arriving_rows.find(static_cast<std::uint32_t>(envelope.credit));
  if (found == peer.arriving_rows.end() || found->second.version != envelope.step) return OkStatus();
  ArrivingRows& arriving = found->second;
  if (envelope.part >= arriving.have.size() || arriving.have[envelope.part]) return OkStatus();  // a repeat
  const std::size_t at = std::size_t{envelope.part} * peer.cut.part_bytes;
  if (body.size() != std::min<std::size_t>(peer.cut.part_bytes, arriving.bytes - at)) {
    return DataLoss("E-rpc-part-size", "pserver ", peer.address, " sent ", body.size(), " bytes as part ",
                    envelope.part, " of rows of ", PieceOf(peer, arriving.variable).name);
  }
  body.CopyTo(arriving.out.raw() + arriving.begin + at);
  arriving.have[envelope.part] = true;
  if (!std::all_of(arriving.have.begin(), arriving.have.end(), [](bool have) { return have; }))
    return OkStatus();
  const Key question{protocol::MessageKind::kPullRows, arriving.version, arriving.variable, 0, found->first};
  peer.arriving_rows.erase(found);
  Acknowledge(peer, question);
  return OkStatus();
}

Status Session::OnRowsGone(const Peer& peer, const protocol::Envelope& envelope) const {
  const auto found = peer.arriving_rows.find(static_cast<std::uint32_t>(envelope.credit));
  if (found == peer.arriving_rows.end()) return OkStatus();  // a repeat
  return FailedPrecondition(
      "E-lookup-version", "lookup: version ", envelope.step, " of ",
      PieceOf(peer, found->second.variable).name, " on pserver ", peer.address,
      " is overwritten by a later one; look rows up before the step's gradients are sent");
}

Status Session::SaveTable(PeersHandle handle, const std::string& table,
                          const std::vector<std::string>& files) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  saved_ = OkStatus();
  const std::vector<Peer*>& group = groups_[static_cast<std::size_t>(handle.index)];
  for (std::size_t i = 0; i < group.size(); ++i) {
    Peer& peer = *group[i];
    const std::string file = options_.checkpoint_folder.empty()
                                 ? files[i]
                                 : protocol::NameInFolder(options_.checkpoint_folder, files[i]);
    Enqueue(peer, {.kind = protocol::MessageKind::kSave,
                   .step = step_,
                   .variable = 0,
                   .chunk = 0,
                   .value = {},
                   .body = Payload::Of(protocol::WriteSave({.table = table, .file = file})),
                   .request = peer.saves++});
  }
  return OkStatus();
}

bool Session::SavesDone() const {
  const std::lock_guard lock(mutex_);
  return saves_open_ == 0;
}

Status Session::TakeSaved() {
  const std::lock_guard lock(mutex_);
  return std::exchange(saved_, OkStatus());
}

// The answer names the request alone; one of a server is under way at a time.
Status Session::OnSaved(Peer& peer, const protocol::Envelope& envelope, const Payload& body) {
  auto asked = peer.sent.lower_bound({protocol::MessageKind::kSave, 0, 0, 0, 0});
  const auto is_save = [&] {
    return asked != peer.sent.end() && std::get<0>(asked->first) == protocol::MessageKind::kSave;
  };
  while (is_save() && std::get<4>(asked->first) != envelope.part) ++asked;
  if (!is_save()) return OkStatus();  // a repeat
  if (body.size() > 0 && saved_.ok()) saved_ = protocol::ReadStatus(body.ToText());
  Acknowledge(peer, Key(asked->first));
  return OkStatus();
}

bool Session::RowsDone() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return entry.second->arriving_rows.empty(); });
}

}  // namespace penstock::client
