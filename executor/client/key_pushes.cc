// What a worker pushes of its keys: copied, compressed, and handed to the links.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "executor/client/key_client.h"
#include "executor/client/key_work.h"
#include "executor/client/push_bytes.h"
#include "executor/protocol/compressed.h"
#include "framework/base/strings.h"

namespace penstock::client {
namespace {

std::string TypeText(const KeyType& type) {
  return StrCat(type.rows ? "rows of " : "", DTypeName(type.dtype), type.shape);
}

// Small values of one call lie in one piece of memory, each from a cache line on.
constexpr std::size_t kSmallValue = std::size_t{16} << 10;
std::size_t InLines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

Status KeyClient::CheckValue(const Key& key, const Tensor& value, const char* what) const {
  if (value.dtype() == key.type.dtype && value.shape() == key.type.shape) return OkStatus();
  return InvalidArgument("E-kv-array", "key ", Quote(key.type.name), " is ", TypeText(key.type), ", the ",
                         what, " is ", DTypeName(value.dtype()), value.shape());
}

Tensor KeyClient::Stored(const Key& key, const Tensor& value, const std::shared_ptr<Buffer>& memory,
                         std::size_t& at) const {
  const Shape shape = key.type.rows ? value.shape() : Shape({value.count()});
  const std::size_t bytes = static_cast<std::size_t>(value.count()) * SizeOf(key.stored);
  const bool is_small = memory != nullptr && bytes <= kSmallValue;
  Tensor stored = is_small ? Tensor(key.stored, shape, memory, at) : Tensor(key.stored, shape);
  if (is_small) at += InLines(bytes);
  if (value.dtype() == key.stored) {
    std::memcpy(stored.raw(), value.raw(), bytes);
  } else {
    std::ranges::transform(value.Span<Half>(), stored.Data<float>(), FloatOf);
  }
  return stored;
}

// kFailedPrecondition E-compression-finite.
Status KeyClient::CheckCompressible(Key& key, const Tensor& gradient) const {
  if (!IsCompressed(key)) return OkStatus();
  if (!key.residual.initialized()) {
    key.residual = Tensor(DType::kFp32, {key.type.shape.Count()});
    std::ranges::fill(key.residual.Span<float>(), 0.0f);
  }
  return protocol::CheckCompressible(compression_, gradient.Span<float>(), key.residual.Span<float>());
}

Status KeyClient::SetCompression(float threshold) {
  const Compression how{.kind = Compression::Kind::kTwoBit, .threshold = threshold};
  if (!ValidateCompression("compression", how).ok()) {
    return InvalidArgument("E-kv-threshold", "the threshold of 2bit compression is ", threshold,
                           "; it must be finite and above 0");
  }
  PENSTOCK_RETURN_IF_ERROR(wait_([&] { return links_.front()->was_welcome(); }));
  if (links_.front()->cut_every() > 0) {
    return Unimplemented("E-kv-checkpoint",
                         "gradient compression does not go with checkpoints of keys: what a ",
                         "worker has not sent yet is in none of them")
        .With("leave set_gradient_compression or --checkpoint_steps out");
  }
  const std::lock_guard lock(mutex_);
  compression_ = how;
  return OkStatus();
}

// What is sent of a piece of a gradient: its codes, chunk by chunk. The rest stays in the residual.
Bytes KeyClient::Compressed(const Key& key, const Piece& piece, const Tensor& part) const {
  VariableCut cut = piece.link->KeyCut(piece.slots.gradient);
  cut.compression = compression_;
  const Tensor residual = key.residual.Rows(piece.begin, piece.end);
  return MakePushBytes(cut, {part.buffer(), part.raw(), part.bytes()},
                       reinterpret_cast<float*>(residual.raw()), false)
      .bytes;
}

// Returns the push's step. The optimizer of a table counts its own.
std::uint64_t KeyClient::CountPush(Key& key) {
  const std::uint64_t step = key.pushes++;
  if (!key.type.table.empty()) return step;
  largest_ = std::max(largest_, ++key.since);
  most_ = std::max(most_, key.pushes);
  return step;
}

KeyClient::Ticket KeyClient::StartPush(int index, const Tensor& gradient, int priority) {
  Key& key = keys_[static_cast<std::size_t>(index)];
  const bool compressed = IsCompressed(key);
  const std::uint64_t step = CountPush(key);
  for (const Piece& piece : key.pieces) {
    const Tensor part = gradient.Rows(piece.begin, piece.end);
    piece.link->PushKey(
        piece.slots.gradient,
        {.bytes = compressed ? Compressed(key, piece, part) : Bytes{part.buffer(), part.raw(), part.bytes()},
         .step = step,
         .largest = largest_,
         .priority = priority,
         .threshold = compressed ? compression_.threshold : 0});
  }
  return std::make_shared<Work>(Work::Kind::kPush, index, step + 1);
}

Result<KeyClient::Ticket> KeyClient::Push(int index, const Tensor& value, int priority) {
  const Given given{index, value};
  return PushAll({&given, 1}, priority);
}

// Either all values are pushed, or none.
Result<KeyClient::Ticket> KeyClient::PushAll(std::span<const Given> values, int priority) {
  std::size_t small = 0;
  std::vector<Key*> keys;
  keys.reserve(values.size());
  for (const Given& given : values) {
    PENSTOCK_ASSIGN_OR_RETURN(Key* const key, Ready(given.key));
    if (key->type.rows) {
      return InvalidArgument("E-kv-array", "key ", Quote(key->type.name), " is ", TypeText(key->type),
                             ", and a dense value is pushed to it");
    }
    PENSTOCK_RETURN_IF_ERROR(CheckValue(*key, given.value, "pushed value"));
    const std::size_t bytes = static_cast<std::size_t>(given.value.count()) * SizeOf(key->stored);
    if (bytes <= kSmallValue) small += InLines(bytes);
    keys.push_back(key);
  }
  std::vector<int> pushed;
  for (std::size_t i = 0; cut_every_ > 0 && i < values.size(); ++i) pushed.push_back(values[i].key);
  PENSTOCK_RETURN_IF_ERROR(PassCut(pushed));
  const std::shared_ptr<Buffer> memory = values.size() > 1 && small > 0 ? Buffer::Allocate(small) : nullptr;
  std::vector<Tensor> copies;
  copies.reserve(values.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    copies.push_back(Stored(*keys[i], values[i].value, memory, at));
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(session_.status());
  for (std::size_t i = 0; i < values.size(); ++i)
    PENSTOCK_RETURN_IF_ERROR(CheckCompressible(*keys[i], copies[i]));
  return Together(values, [&](std::size_t i) { return StartPush(values[i].key, copies[i], priority); });
}

Status KeyClient::CheckRows(const Key& key, std::span<const std::int64_t> rows, const Tensor& values) const {
  if (!key.type.rows) {
    return InvalidArgument("E-kv-array", "key ", Quote(key.type.name), " is ", TypeText(key.type),
                           ", and has no pushes or pulls by rows");
  }
  const Shape shape = key.type.shape.WithRows(static_cast<Dim>(rows.size()));
  if (values.dtype() != key.type.dtype || values.shape() != shape) {
    return InvalidArgument("E-kv-array", rows.size(), " rows of key ", Quote(key.type.name), " are ",
                           DTypeName(key.type.dtype), shape, ", the array is ", DTypeName(values.dtype()),
                           values.shape());
  }
  if (!key.type.table.empty()) return OkStatus();
  const Dim height = key.type.shape[0];
  const auto outside = std::ranges::find_if(rows, [&](std::int64_t row) { return row < 0 || row >= height; });
  if (outside == rows.end()) return OkStatus();
  return InvalidArgument("E-kv-row", "key ", Quote(key.type.name), " has no row ", *outside, "; it has ",
                         height);
}

RowsOfPiece KeyClient::RowsIn(const Key& key, std::size_t piece, std::span<const std::int64_t> rows) {
  const Piece& at = key.pieces[piece];
  return key.type.table.empty() ? RowsOfPiece(rows, at.begin, at.end)
                                : RowsOfPiece::OfServer(rows, piece, key.pieces.size());
}

Result<KeyClient::Ticket> KeyClient::PushRows(int index, std::span<const std::int64_t> rows,
                                              const Tensor& values, int priority) {
  PENSTOCK_ASSIGN_OR_RETURN(Key* const key, Ready(index));
  PENSTOCK_RETURN_IF_ERROR(CheckRows(*key, rows, values));
  PENSTOCK_RETURN_IF_ERROR(PassCut({&index, 1}));
  const Tensor stored = rows.empty() ? Tensor() : Stored(*key, values);
  const std::size_t row_bytes = static_cast<std::size_t>(key->type.shape.RowWidth()) * SizeOf(key->stored);
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(session_.status());
  const std::uint64_t step = CountPush(*key);
  for (std::size_t i = 0; i < key->pieces.size(); ++i) {
    const Piece& piece = key->pieces[i];
    const RowsOfPiece part = RowsIn(*key, i, rows);
    piece.link->PushKey(piece.slots.gradient, {.bytes = part.Bytes(stored, row_bytes),
                                               .step = step,
                                               .largest = largest_,
                                               .priority = priority,
                                               .at_once = !key->type.table.empty()});
  }
  return Remember(std::make_shared<Work>(Work::Kind::kPush, index, step + 1));
}

}  // namespace penstock::client
