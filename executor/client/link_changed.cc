// Receives the changed rows of a table in geo-SGD. Each part of the answer gives the total number of rows.
#include <algorithm>
#include <cstring>

#include "executor/client/link.h"

namespace penstock::client {
namespace {

std::size_t BytesOf(const protocol::ContractPiece& piece, std::uint64_t rows) {
  const std::size_t row = static_cast<std::size_t>(piece.shape.RowWidth()) * SizeOf(piece.dtype);
  return static_cast<std::size_t>(rows) * (sizeof(std::int64_t) + row);
}

}  // namespace

// A resent request may be answered twice, the second time after more updates. The newer answer replaces the
// parts of the older one.
Status Link::On(const protocol::ChangedRows& rows) {
  Variable* variable = At(rows.variable);
  if (variable == nullptr) return OkStatus();
  Arriving& arriving = variable->arriving;
  if (!arriving.active || arriving.changed == nullptr || arriving.version != rows.version ||
      arriving.chunks_left == 0)
    return OkStatus();
  const protocol::ContractPiece& piece = PieceOf(*variable);
  if (piece.shape.rank() == 0 || rows.rows > static_cast<std::uint64_t>(piece.shape[0])) {
    return DataLoss("E-rpc-part-size", "pserver ", address_, " sent ", rows.rows, " changed rows of ", piece);
  }
  if (!arriving.have.empty()) {
    const auto newer =
        static_cast<std::int32_t>(rows.updates - static_cast<std::uint32_t>(arriving.updates[0]));
    if (newer < 0) return OkStatus();
    if (newer > 0) arriving.have.clear();
  }
  if (arriving.have.empty()) BeginChanged(*variable, rows, arriving);
  const bool there = rows.part < arriving.have.size();
  const Extent part = there ? PartOf({0, BytesOf(piece, arriving.rows)}, rows.part) : Extent{};
  if (!there || rows.bytes.size() != part.size) {
    return DataLoss("E-rpc-part-size", "pserver ", address_, " sent ", rows.bytes.size(), " bytes as part ",
                    rows.part, " of changed rows of ", piece.name);
  }
  if (arriving.have[rows.part] == PartIs::kThere) return OkStatus();
  if (part.size > 0) rows.bytes.CopyTo(arriving.to.data + part.begin);
  arriving.have[rows.part] = PartIs::kThere;
  if (--arriving.parts_left.front() > 0) return OkStatus();
  trace_.Arrived(trace::FlowKind::kChanged, variable->traced, 0, rows.version, BytesOf(piece, arriving.rows));
  PENSTOCK_RETURN_IF_ERROR(LandChanged(*variable, arriving));
  EndPull(arriving);
  Acknowledge(KeyOf(protocol::PullChanged{.variable = rows.variable, .version = rows.version}));
  return OkStatus();
}

void Link::BeginChanged(const Variable& variable, const protocol::ChangedRows& rows,
                        Arriving& arriving) const {
  const std::size_t bytes = BytesOf(PieceOf(variable), rows.rows);
  const std::size_t parts = std::max<std::size_t>(PartsOf(bytes), 1);
  arriving.to = Target::Of(Tensor(DType::kUInt8, {static_cast<Dim>(bytes)}));
  arriving.rows = rows.rows;
  arriving.updates.assign(1, rows.updates);
  arriving.parts_left.assign(1, static_cast<std::uint32_t>(parts));
  arriving.have.assign(parts, PartIs::kMissing);
}

Status Link::LandChanged(const Variable& variable, Arriving& arriving) const {
  const protocol::ContractPiece& piece = PieceOf(variable);
  SelectedRows& out = *arriving.changed;
  out.height = piece.shape[0];
  out.rows.resize(arriving.rows);
  out.ResetValue(piece.dtype, piece.shape.WithRows(static_cast<Dim>(arriving.rows)));
  if (arriving.rows == 0) return OkStatus();
  const std::size_t ids = out.rows.size() * sizeof(std::int64_t);
  std::memcpy(out.rows.data(), arriving.to.data, ids);
  std::memcpy(out.value.raw(), arriving.to.data + ids, out.value.bytes());
  const bool ascend =
      std::adjacent_find(out.rows.begin(), out.rows.end(), std::greater_equal<>()) == out.rows.end();
  if (ascend && out.rows.front() >= 0 && out.rows.back() < piece.shape[0]) return OkStatus();
  return DataLoss("E-rpc-part-size", "pserver ", address_, " sent changed rows of ", piece.name,
                  " that do not ascend within its ", piece.shape[0], " rows");
}

}  // namespace penstock::client
