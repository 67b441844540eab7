#include <algorithm>
#include <cstring>
#include <utility>

#include "executor/kvstore/local_entry.h"
#include "executor/kvstore/merge_rows.h"
#include "executor/protocol/compressed.h"
#include "framework/base/strings.h"
#include "framework/text/lexer.h"

namespace penstock::kvstore {
namespace {

// Floats may be converted to the key's type; other numbers must have it.
Status CheckType(std::string_view key, DType given, DType own) {
  if (given == own || (IsFloat(given) && IsFloat(own)) || (given == DType::kFp16 && IsFloat(own)) ||
      (IsFloat(given) && own == DType::kFp16))
    return OkStatus();
  return InvalidArgument("E-kv-value", "key ", SpellName(key), " is ", DTypeName(own), ", and the value is ",
                         DTypeName(given));
}

Status CheckShape(std::string_view key, const Shape& given, const Shape& own) {
  if (given == own) return OkStatus();
  return InvalidArgument("E-kv-value", "key ", SpellName(key), " has shape ", own, ", and the value ", given);
}

Status CheckIds(std::string_view key, std::span<const std::int64_t> ids, std::int64_t height) {
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= height)
      return InvalidArgument("E-kv-rows", "key ", SpellName(key), " has no row ", id, "; it has ", height,
                             " rows");
  }
  return OkStatus();
}

Status CheckRows(std::string_view key, const SelectedRows& value, const LocalStore::Facts& facts) {
  if (facts.shape.rank() == 0)
    return InvalidArgument("E-kv-rows", "key ", SpellName(key), " has no rows; its shape is ", facts.shape);
  PENSTOCK_RETURN_IF_ERROR(CheckType(key, value.value.dtype(), facts.dtype));
  const Shape rows = facts.shape.WithRows(static_cast<Dim>(value.rows.size()));
  PENSTOCK_RETURN_IF_ERROR(CheckShape(key, value.value.shape(), rows));
  return CheckIds(key, value.rows, facts.shape[0]);
}

Tensor Zeros(DType type, const Shape& shape) {
  Tensor zeros(type, shape);
  std::memset(zeros.raw(), 0, zeros.bytes());
  return zeros;
}

// A copy in another type, or of it.
Tensor CopyOf(const Tensor& value, DType type) {
  Tensor copy(type, value.shape());
  CastInto(value, copy);
  return copy;
}

void PutRows(const SelectedRows& rows, Tensor& table) {
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const auto place = static_cast<Dim>(i);
    table.Rows(rows.rows[i], rows.rows[i] + 1).CopyFrom(rows.value.Rows(place, place + 1));
  }
}

}  // namespace

LocalStore::LocalStore(const OpRegistry& ops, const Options& options) : ops_(ops), options_(options) {}
LocalStore::~LocalStore() = default;

Result<LocalStore::Entry*> LocalStore::Find(std::string_view key) {
  const auto found = entries_.find(key);
  if (found == entries_.end())
    return InvalidArgument("E-kv-key", "key ", SpellName(key), " has no value yet; init it first");
  return found->second.get();
}
Result<const LocalStore::Entry*> LocalStore::Find(std::string_view key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end())
    return InvalidArgument("E-kv-key", "key ", SpellName(key), " has no value yet; init it first");
  return static_cast<const Entry*>(found->second.get());
}

Status LocalStore::AddEntry(std::string_view key, const Facts& facts, Tensor value) {
  auto entry = std::make_unique<Entry>();
  entry->facts = facts;
  entry->scope.FindOrCreate(kVariable)->As<Tensor>() = std::move(value);
  entries_.emplace(std::string(key), std::move(entry));
  return OkStatus();
}

Status LocalStore::Init(std::string_view key, const Tensor& value) {
  if (entries_.contains(key))
    return InvalidArgument("E-kv-key-again", "key ", SpellName(key), " has a value already");
  if (!CanStore(value.dtype()))
    return InvalidArgument("E-kv-value", "a store keeps no ", DTypeName(value.dtype()),
                           "; it keeps f16, f32, f64, i8, i16, i32, i64 and u8");
  return AddEntry(key, {.dtype = value.dtype(), .shape = value.shape()},
                  CopyOf(value, KeptType(value.dtype())));
}

Status LocalStore::InitRows(std::string_view key, const SelectedRows& value, const Shape& shape) {
  if (entries_.contains(key))
    return InvalidArgument("E-kv-key-again", "key ", SpellName(key), " has a value already");
  const Facts facts = {.dtype = value.value.dtype(), .shape = shape, .rows = true};
  PENSTOCK_RETURN_IF_ERROR(CheckRows(key, value, facts));
  if (!CanStore(facts.dtype))
    return InvalidArgument("E-kv-value", "a store keeps no rows of ", DTypeName(facts.dtype));
  Tensor table = Zeros(KeptType(facts.dtype), shape);
  PutRows(MergedRows({&value, 1}, KeptType(facts.dtype)), table);
  return AddEntry(key, facts, std::move(table));
}

Result<std::vector<Tensor>> LocalStore::Compressed(const std::string& key, Entry& entry,
                                                   std::span<const Tensor> values) {
  if (entry.facts.dtype != DType::kFp32 || entry.facts.rows)
    return FailedPrecondition("E-kv-compression", "key ", SpellName(key), ", ", DTypeName(entry.facts.dtype),
                              entry.facts.rows ? " by rows" : "",
                              ", cannot be compressed; only dense f32 can");
  const Shape& shape = entry.facts.shape;
  while (entry.residuals.size() < values.size()) entry.residuals.push_back(Zeros(DType::kFp32, shape));
  std::vector<Tensor> gradients;
  for (std::size_t i = 0; i < values.size(); ++i) {
    gradients.push_back(CopyOf(values[i], DType::kFp32));
    PENSTOCK_RETURN_IF_ERROR(protocol::CheckCompressible(*compression_, gradients[i].Span<float>(),
                                                         entry.residuals[i].Span<float>()));
  }
  std::vector<Tensor> sent;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Tensor bytes(DType::kUInt8, {compression_->Bytes(gradients[i].count())});
    protocol::Compress(*compression_, gradients[i].Span<float>(), entry.residuals[i].Span<float>(),
                       bytes.raw());
    Tensor& expanded = sent.emplace_back(DType::kFp32, shape);
    PENSTOCK_RETURN_IF_ERROR(
        protocol::Expand(*compression_, {Payload::Of(bytes, 0, bytes.bytes())}, expanded.Span<float>()));
  }
  return sent;
}

Result<Tensor> LocalStore::Sum(const std::string& key, Entry& entry, std::span<const Tensor> values) {
  if (values.empty())
    return InvalidArgument("E-kv-value", "key ", SpellName(key), " is pushed without a value");
  for (const Tensor& value : values) {
    PENSTOCK_RETURN_IF_ERROR(CheckType(key, value.dtype(), entry.facts.dtype));
    PENSTOCK_RETURN_IF_ERROR(CheckShape(key, value.shape(), entry.facts.shape));
  }
  const DType type = KeptType(entry.facts.dtype);
  if (!compression_) return SumOf(values, type, options_.order);
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Tensor> sent, Compressed(key, entry, values));
  return SumOf(sent, type, options_.order);
}

Status LocalStore::Push(std::string_view key, std::span<const Tensor> values) {
  PENSTOCK_ASSIGN_OR_RETURN(Entry * entry, Find(key));
  if (entry->facts.rows)
    return InvalidArgument("E-kv-rows", "key ", SpellName(key), " has rows, and the value is dense");
  const std::string name(key);
  PENSTOCK_ASSIGN_OR_RETURN(Tensor sum, Sum(name, *entry, values));
  if (!optimizer_) {
    entry->value() = std::move(sum);
    return OkStatus();
  }
  Variable gradient;
  gradient.As<Tensor>() = std::move(sum);
  return Update(name, *entry, std::move(gradient), /*by_rows=*/false);
}

Result<Tensor> LocalStore::Merge(std::string_view key, std::span<const Tensor> values) {
  PENSTOCK_ASSIGN_OR_RETURN(Entry * entry, Find(key));
  PENSTOCK_ASSIGN_OR_RETURN(const Tensor sum, Sum(std::string(key), *entry, values));
  return CopyOf(sum, entry->facts.dtype);
}

Result<SelectedRows> LocalStore::SumRows(std::string_view key, std::span<const SelectedRows> values) const {
  PENSTOCK_ASSIGN_OR_RETURN(const Entry* entry, Find(key));
  if (values.empty())
    return InvalidArgument("E-kv-value", "key ", SpellName(key), " is pushed without a value");
  if (compression_)
    return FailedPrecondition("E-kv-compression", "key ", SpellName(key),
                              " is pushed by rows, which cannot be compressed");
  for (const SelectedRows& value : values) PENSTOCK_RETURN_IF_ERROR(CheckRows(key, value, entry->facts));
  SelectedRows merged = MergedRows(values, KeptType(entry->facts.dtype));
  merged.height = entry->facts.shape[0];
  return merged;
}

Result<SelectedRows> LocalStore::MergeRows(std::string_view key, std::span<const SelectedRows> values) {
  PENSTOCK_ASSIGN_OR_RETURN(const Entry* entry, std::as_const(*this).Find(key));
  PENSTOCK_ASSIGN_OR_RETURN(SelectedRows merged, SumRows(key, values));
  merged.value = CopyOf(merged.value, entry->facts.dtype);  // it may be the caller's memory
  return merged;
}

Status LocalStore::PushRows(std::string_view key, std::span<const SelectedRows> values) {
  PENSTOCK_ASSIGN_OR_RETURN(SelectedRows merged, SumRows(key, values));
  PENSTOCK_ASSIGN_OR_RETURN(Entry * entry, Find(key));
  if (!optimizer_) {
    Tensor table = Zeros(merged.value.dtype(), entry->facts.shape);
    PutRows(merged, table);
    entry->value() = std::move(table);
    return OkStatus();
  }
  Variable gradient;
  gradient.As<SelectedRows>() = std::move(merged);
  return Update(std::string(key), *entry, std::move(gradient), /*by_rows=*/true);
}

Status LocalStore::Assign(std::string_view key, const Tensor& value) {
  PENSTOCK_ASSIGN_OR_RETURN(Entry * entry, Find(key));
  PENSTOCK_RETURN_IF_ERROR(CheckType(key, value.dtype(), entry->facts.dtype));
  PENSTOCK_RETURN_IF_ERROR(CheckShape(key, value.shape(), entry->facts.shape));
  CastInto(value, entry->value());
  return OkStatus();
}

Status LocalStore::Pull(std::string_view key, Tensor& out) const {
  PENSTOCK_ASSIGN_OR_RETURN(const Entry* entry, Find(key));
  PENSTOCK_RETURN_IF_ERROR(CheckShape(key, out.shape(), entry->facts.shape));
  if (!CanStore(out.dtype()))
    return InvalidArgument("E-kv-value", "key ", SpellName(key), " cannot be pulled as ",
                           DTypeName(out.dtype()));
  CastInto(entry->value(), out);
  return OkStatus();
}

Result<SelectedRows> LocalStore::PullRows(std::string_view key, std::span<const std::int64_t> ids) const {
  PENSTOCK_ASSIGN_OR_RETURN(const Entry* entry, Find(key));
  if (!entry->facts.rows)
    return InvalidArgument("E-kv-rows", "key ", SpellName(key), " is dense; it has no rows");
  PENSTOCK_RETURN_IF_ERROR(CheckIds(key, ids, entry->facts.shape[0]));
  SelectedRows pulled;
  pulled.height = entry->facts.shape[0];
  pulled.rows.assign(ids.begin(), ids.end());
  std::ranges::sort(pulled.rows);
  pulled.rows.erase(std::ranges::unique(pulled.rows).begin(), pulled.rows.end());
  pulled.value =
      Tensor(entry->facts.dtype, entry->facts.shape.WithRows(static_cast<Dim>(pulled.rows.size())));
  for (std::size_t i = 0; i < pulled.rows.size(); ++i) {
    Tensor to = pulled.value.Rows(static_cast<Dim>(i), static_cast<Dim>(i) + 1);
    CastInto(entry->value().Rows(pulled.rows[i], pulled.rows[i] + 1), to);
  }
  return pulled;
}

std::vector<std::string> LocalStore::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, entry] : entries_) keys.push_back(key);
  return keys;
}

Result<LocalStore::Facts> LocalStore::FactsOf(std::string_view key) const {
  PENSTOCK_ASSIGN_OR_RETURN(const Entry* entry, Find(key));
  return entry->facts;
}

Status LocalStore::SetCompression(float threshold) {
  const Compression how{.kind = Compression::Kind::kTwoBit, .threshold = threshold};
  PENSTOCK_RETURN_IF_ERROR(ValidateCompression("compression", how));
  compression_ = how;
  return OkStatus();
}

}  // namespace penstock::kvstore
