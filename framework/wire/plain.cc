// Reads the plain form.
#include "framework/wire/plain.h"

#include <cstring>

#include "framework/wire/fields.h"

namespace penstock {
namespace {

using namespace wire;

struct PlainField {
  int number = 0;
  int wire_type = 0;
  std::uint64_t varint = 0;
  std::string_view bytes;  // kBytes, kFixed32
};

// Reads fields. Clears `as_written` if AppendOpFields and AppendVarFields would write different bytes because
// a number is longer than necessary; the code that uses the reader clears it for other differences.
class Reader {
 public:
  Reader(std::string_view bytes, bool& as_written)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()), as_written_(as_written) {}

  // Returns false at the end, and at invalid bytes; ok() tells which.
  bool Next(PlainField& field) {
    if (at_ == end_) return false;
    std::uint64_t tag = 0;
    if (!Varint(tag) || tag > UINT32_MAX) return Fail();
    field.number = static_cast<int>(tag >> 3);
    field.wire_type = static_cast<int>(tag & 7);
    if (field.wire_type == kVarint) return Varint(field.varint) || Fail();
    std::uint64_t length = 4;
    if (field.wire_type == kBytes) {
      if (!Varint(length)) return Fail();
    } else if (field.wire_type != kFixed32) {
      return Fail();
    }
    if (length > static_cast<std::uint64_t>(end_ - at_)) return Fail();
    field.bytes = {at_, static_cast<std::size_t>(length)};
    at_ += length;
    return true;
  }
  bool ok() const { return ok_; }
  std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }

 private:
  bool Fail() {
    ok_ = false;
    return false;
  }
  bool Varint(std::uint64_t& value) {
    if (at_ != end_ && static_cast<unsigned char>(*at_) < 0x80) {
      value = static_cast<unsigned char>(*at_++);
      return true;
    }
    return LongVarint(value);
  }
  bool LongVarint(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      if (byte == 0 && shift > 0) as_written_ = false;
      return shift < 63 || byte < 2;
    }
    return false;
  }

  const char* at_;
  const char* end_;
  bool& as_written_;
  bool ok_ = true;
};

bool Is(const PlainField& field, int number, int wire_type) {
  return field.number == number && field.wire_type == wire_type;
}

// The number of fields with this number that follow, to reserve memory.
std::size_t CountOf(int number, std::string_view bytes) {
  bool ignored = true;
  Reader reader(bytes, ignored);
  PlainField field;
  std::size_t count = 0;
  while (reader.Next(field)) count += field.number == number ? 1 : 0;
  return count;
}

// The number of an op's inputs, outputs and attributes.
struct OpCounts {
  std::size_t inputs = 0, outputs = 0, attrs = 0;
};

OpCounts CountOpFields(std::string_view bytes) {
  bool ignored = true;
  Reader reader(bytes, ignored);
  PlainField field;
  OpCounts counts;
  while (reader.Next(field)) {
    counts.inputs += field.number == kOpInputs ? 1 : 0;
    counts.outputs += field.number == kOpOutputs ? 1 : 0;
    counts.attrs += field.number == kOpAttrs ? 1 : 0;
  }
  return counts;
}

bool ReadSlot(std::string_view bytes, std::string_view& name, ArgList& args, bool& as_written) {
  Reader reader(bytes, as_written);
  PlainField field;
  bool named = false;
  args.reserve(CountOf(kSlotArgs, bytes));
  while (reader.Next(field)) {
    if (Is(field, kSlotName, kBytes)) {
      if (named || !args.empty()) as_written = false;
      name = field.bytes;
      named = true;
    } else if (Is(field, kSlotArgs, kBytes)) {
      args.push_back(std::string(field.bytes));
    } else {
      return false;
    }
  }
  return reader.ok() && named;
}

template <typename T>
T NumberOf(const PlainField& field) {
  if constexpr (std::is_same_v<T, float>) {
    float value = 0;
    std::memcpy(&value, field.bytes.data(), sizeof(value));
    return value;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return std::string(field.bytes);
  } else if constexpr (std::is_same_v<T, bool>) {
    return field.varint != 0;
  } else if constexpr (std::is_same_v<T, BlockRef>) {
    return BlockRef{static_cast<std::int32_t>(field.varint)};
  } else {
    return static_cast<T>(field.varint);
  }
}

template <typename T>
constexpr int kWireTypeOf = std::is_same_v<T, float>         ? kFixed32
                            : std::is_same_v<T, std::string> ? kBytes
                                                             : kVarint;

template <typename T>
struct IsList : std::false_type {};
template <typename T>
struct IsList<std::vector<T>> : std::true_type {};

// The varint as it would be written.
template <typename T>
std::uint64_t Rewritten(const T& value) {
  if constexpr (std::is_same_v<T, BlockRef>) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value.index));
  } else {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}

template <typename T>
T ValueOf(const PlainField& field, bool& as_written) {
  T value = NumberOf<T>(field);
  if constexpr (kWireTypeOf<T> == kVarint) as_written = as_written && Rewritten(value) == field.varint;
  return value;
}

// Reads the rest of an attribute: its values, all in the field for its kind.
template <std::size_t kKind>
bool ReadValue(Reader& reader, std::string_view rest, Attr& value, bool& as_written) {
  using T = std::variant_alternative_t<kKind, Attr>;
  T& out = value.emplace<kKind>();
  PlainField field;
  if constexpr (IsList<T>::value) {
    using Element = typename T::value_type;
    out.reserve(CountOf(kValueField[kKind], rest));
    while (reader.Next(field)) {
      if (!Is(field, kValueField[kKind], kWireTypeOf<Element>)) return false;
      out.push_back(ValueOf<Element>(field, as_written));
    }
  } else {
    int values = 0;
    for (; reader.Next(field); ++values) {
      if (!Is(field, kValueField[kKind], kWireTypeOf<T>)) return false;
      out = ValueOf<T>(field, as_written);
    }
    as_written = as_written && values == 1;
  }
  return reader.ok();
}

template <std::size_t... kKinds>
bool ReadValueOf(std::size_t kind, Reader& reader, std::string_view rest, Attr& value, bool& as_written,
                 std::index_sequence<kKinds...>) {
  using Read = bool (*)(Reader&, std::string_view, Attr&, bool&);
  static constexpr Read kRead[] = {&ReadValue<kKinds>...};
  return kRead[kind](reader, rest, value, as_written);
}

// Reads the name, then the type, then the values.
bool ReadAttr(std::string_view bytes, std::string_view& name, Attr& value, bool& as_written) {
  Reader reader(bytes, as_written);
  PlainField field;
  if (!reader.Next(field) || !Is(field, kAttrName, kBytes)) return false;
  name = field.bytes;
  if (!reader.Next(field) || !Is(field, kAttrType, kVarint) || field.varint >= kAttrKinds) return false;
  return ReadValueOf(field.varint, reader, reader.rest(), value, as_written,
                     std::make_index_sequence<kAttrKinds>());
}

bool ReadTensor(std::string_view bytes, TensorType& type, bool& as_written) {
  Reader reader(bytes, as_written);
  PlainField field;
  bool typed = false;
  std::vector<Dim> dims;
  dims.reserve(CountOf(kTensorDims, bytes));
  while (reader.Next(field)) {
    if (Is(field, kTensorType, kVarint) && field.varint < 64 && IsDType(static_cast<int>(field.varint))) {
      if (typed || !dims.empty()) as_written = false;
      type.dtype = static_cast<DType>(field.varint);
      typed = true;
    } else if (Is(field, kTensorDims, kVarint)) {
      dims.push_back(static_cast<Dim>(field.varint));
    } else {
      return false;
    }
  }
  type.shape = Shape(std::move(dims));
  return reader.ok() && typed;
}

bool ReadLodTensor(std::string_view bytes, TensorType& type, bool& as_written) {
  Reader reader(bytes, as_written);
  PlainField field;
  if (!reader.Next(field) || !Is(field, kLodTensor, kBytes)) return false;
  if (!ReadTensor(field.bytes, type, as_written)) return false;
  while (reader.Next(field)) {
    if (!Is(field, kLodLevel, kVarint)) return false;
    if (type.has_lod_level) as_written = false;
    type.lod_level = ValueOf<std::int32_t>(field, as_written);
    type.has_lod_level = true;
  }
  return reader.ok();
}

bool IsVarKind(std::uint64_t number) {
  return number >= static_cast<std::uint64_t>(VarKind::kTensor) &&
         number <= static_cast<std::uint64_t>(VarKind::kTuple) && number != 16;
}

// Reads the kind, then at most one description.
bool ReadType(std::string_view bytes, Var& var, bool& as_written) {
  Reader reader(bytes, as_written);
  PlainField field;
  if (!reader.Next(field) || !Is(field, kTypeKind, kVarint) || !IsVarKind(field.varint)) return false;
  var.kind = static_cast<VarKind>(field.varint);
  if (!reader.Next(field)) return reader.ok();
  TensorType type;
  if (field.wire_type != kBytes) return false;
  const bool tensor = field.number == kTypeTensor || field.number == kTypeArray;
  const bool rows = field.number == kTypeRows;
  if (rows ? !ReadTensor(field.bytes, type, as_written)
           : !tensor || !ReadLodTensor(field.bytes, type, as_written)) {
    return false;
  }
  const int written = var.kind == VarKind::kSelectedRows  ? kTypeRows
                      : var.kind == VarKind::kTensorArray ? kTypeArray
                                                          : kTypeTensor;
  if (field.number != written) as_written = false;
  var.type = std::move(type);
  return !reader.Next(field) && reader.ok();
}

}  // namespace

bool ReadPlainOp(std::string_view bytes, Op& op) {
  bool as_written = true;
  Reader reader(bytes, as_written);
  PlainField field;
  bool typed = false;
  int last = 0;  // the last field's number; the plain form has ascending numbers
  std::size_t attrs = 0, inputs = 0, outputs = 0;
  const OpCounts counts = CountOpFields(bytes);
  op.Reserve(counts.inputs, counts.outputs, counts.attrs);
  while (reader.Next(field)) {
    if (field.number < last) as_written = false;
    last = field.number;
    if (Is(field, kOpInputs, kBytes) || Is(field, kOpOutputs, kBytes)) {
      std::string_view name;
      ArgList args;
      if (!ReadSlot(field.bytes, name, args, as_written)) return false;
      if (field.number == kOpInputs) {
        ++inputs;
        op.AddInput(name, std::move(args));
      } else {
        ++outputs;
        op.AddOutput(name, std::move(args));
      }
    } else if (Is(field, kOpType, kBytes)) {
      if (typed) as_written = false;
      op.SetType(field.bytes);
      typed = true;
    } else if (Is(field, kOpAttrs, kBytes)) {
      std::string_view name;
      Attr value;
      if (!ReadAttr(field.bytes, name, value, as_written)) return false;
      ++attrs;
      op.Set(name, std::move(value));
    } else if (Is(field, kOpTarget, kVarint)) {
      if (op.is_target() || field.varint != 1) as_written = false;
      op.SetTarget(field.varint != 0);
    } else {
      return false;
    }
  }
  if (!reader.ok() || !typed) return false;
  // If two slots or attributes have one name, the last is kept.
  if (inputs != op.inputs().size() || outputs != op.outputs().size() || attrs != op.attrs().size())
    as_written = false;
  if (!as_written) op.set_wire_bytes(bytes);
  return true;
}

bool ReadPlainVar(std::string_view bytes, Var& var) {
  bool as_written = true;
  Reader reader(bytes, as_written);
  PlainField field;
  var.has_persistable = false;
  bool named = false, typed = false;
  int last = 0;
  while (reader.Next(field)) {
    if (field.number <= last) as_written = false;
    last = field.number;
    if (Is(field, kVarName, kBytes)) {
      var.name = field.bytes;
      named = true;
    } else if (Is(field, kVarType, kBytes) && !typed) {
      if (!ReadType(field.bytes, var, as_written)) return false;
      typed = true;
    } else if (Is(field, kVarPersistable, kVarint)) {
      var.persistable = ValueOf<bool>(field, as_written);
      var.has_persistable = true;
    } else if (Is(field, kVarCheckFeed, kVarint)) {
      var.need_check_feed = ValueOf<bool>(field, as_written);
      var.has_need_check_feed = true;
    } else {
      return false;
    }
  }
  if (!reader.ok() || !named || !typed) return false;
  if (!as_written) var.wire_bytes = Word::Rare(bytes);
  return true;
}

}  // namespace penstock
