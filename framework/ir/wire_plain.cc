// The plain form, read.
#include "framework/ir/wire_plain.h"

#include <cstring>

#include "framework/ir/wire_fields.h"

namespace penstock {
namespace {

using namespace wire;

struct Field {
  int number = 0;
  int wire_type = 0;
  std::uint64_t varint = 0;
  std::string_view bytes;  // kBytes, kFixed32
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // False at the end, or where the bytes make no sense: see ok().
  bool Next(Field& field) {
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

 private:
  bool Fail() {
    ok_ = false;
    return false;
  }
  bool Varint(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return shift < 63 || byte < 2;
    }
    return false;
  }

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

bool Is(const Field& field, int number, int wire_type) {
  return field.number == number && field.wire_type == wire_type;
}

bool ReadSlot(std::string_view bytes, Slot& slot) {
  Reader reader(bytes);
  Field field;
  bool named = false;
  while (reader.Next(field)) {
    if (Is(field, kSlotName, kBytes)) {
      slot.name = field.bytes;
      named = true;
    } else if (Is(field, kSlotArgs, kBytes)) {
      slot.args.emplace_back(field.bytes);
    } else {
      return false;
    }
  }
  return reader.ok() && named;
}

template <typename T>
T NumberOf(const Field& field) {
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

// What is left of an attribute: its values, all in the field of its kind.
template <std::size_t kKind>
bool ReadValue(Reader& reader, Attr& value) {
  using T = std::variant_alternative_t<kKind, Attr>;
  T out = {};
  Field field;
  while (reader.Next(field)) {
    if constexpr (IsList<T>::value) {
      using Element = typename T::value_type;
      if (!Is(field, kValueField[kKind], kWireTypeOf<Element>)) return false;
      out.push_back(NumberOf<Element>(field));
    } else {
      if (!Is(field, kValueField[kKind], kWireTypeOf<T>)) return false;
      out = NumberOf<T>(field);
    }
  }
  value = std::move(out);
  return reader.ok();
}

template <std::size_t... kKinds>
bool ReadValueOf(std::size_t kind, Reader& reader, Attr& value, std::index_sequence<kKinds...>) {
  using Read = bool (*)(Reader&, Attr&);
  static constexpr Read kRead[] = {&ReadValue<kKinds>...};
  return kRead[kind](reader, value);
}

// Name, then type, then values.
bool ReadAttr(std::string_view bytes, std::string_view& name, Attr& value) {
  Reader reader(bytes);
  Field field;
  if (!reader.Next(field) || !Is(field, kAttrName, kBytes)) return false;
  name = field.bytes;
  if (!reader.Next(field) || !Is(field, kAttrType, kVarint) || field.varint >= kAttrKinds) return false;
  return ReadValueOf(field.varint, reader, value, std::make_index_sequence<kAttrKinds>());
}

bool ReadTensor(std::string_view bytes, TensorType& type) {
  Reader reader(bytes);
  Field field;
  bool typed = false;
  std::vector<Dim> dims;
  while (reader.Next(field)) {
    if (Is(field, kTensorType, kVarint) && field.varint < 64 && IsDType(static_cast<int>(field.varint))) {
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

bool ReadLodTensor(std::string_view bytes, TensorType& type) {
  Reader reader(bytes);
  Field field;
  if (!reader.Next(field) || !Is(field, kLodTensor, kBytes) || !ReadTensor(field.bytes, type)) return false;
  while (reader.Next(field)) {
    if (!Is(field, kLodLevel, kVarint)) return false;
    type.lod_level = static_cast<std::int32_t>(field.varint);
    type.has_lod_level = true;
  }
  return reader.ok();
}

bool IsVarKind(std::uint64_t number) {
  return number >= static_cast<std::uint64_t>(VarKind::kTensor) &&
         number <= static_cast<std::uint64_t>(VarKind::kTuple) && number != 16;
}

// Kind, then at most one description.
bool ReadType(std::string_view bytes, Var& var) {
  Reader reader(bytes);
  Field field;
  if (!reader.Next(field) || !Is(field, kTypeKind, kVarint) || !IsVarKind(field.varint)) return false;
  var.kind = static_cast<VarKind>(field.varint);
  if (!reader.Next(field)) return reader.ok();
  TensorType type;
  if (field.wire_type != kBytes) return false;
  const bool tensor = field.number == kTypeTensor || field.number == kTypeArray;
  const bool rows = field.number == kTypeRows;
  if (rows ? !ReadTensor(field.bytes, type) : !tensor || !ReadLodTensor(field.bytes, type)) return false;
  var.type = std::move(type);
  return !reader.Next(field) && reader.ok();
}

}  // namespace

std::optional<Op> ReadPlainOp(std::string_view bytes) {
  Reader reader(bytes);
  Field field;
  std::optional<Op> op(std::in_place);
  bool typed = false;
  while (reader.Next(field)) {
    if (Is(field, kOpInputs, kBytes) || Is(field, kOpOutputs, kBytes)) {
      Slot slot;
      if (!ReadSlot(field.bytes, slot)) return std::nullopt;
      if (field.number == kOpInputs) {
        op->AddInput(std::move(slot.name), std::move(slot.args));
      } else {
        op->AddOutput(std::move(slot.name), std::move(slot.args));
      }
    } else if (Is(field, kOpType, kBytes)) {
      op->SetType(std::string(field.bytes));
      typed = true;
    } else if (Is(field, kOpAttrs, kBytes)) {
      std::string_view name;
      Attr value;
      if (!ReadAttr(field.bytes, name, value)) return std::nullopt;
      op->Set(name, std::move(value));
    } else if (Is(field, kOpTarget, kVarint)) {
      op->SetTarget(field.varint != 0);
    } else {
      return std::nullopt;
    }
  }
  if (!reader.ok() || !typed) return std::nullopt;
  return op;
}

std::optional<Var> ReadPlainVar(std::string_view bytes) {
  Reader reader(bytes);
  Field field;
  std::optional<Var> var(std::in_place);
  var->has_persistable = false;
  bool named = false, typed = false;
  while (reader.Next(field)) {
    if (Is(field, kVarName, kBytes)) {
      var->name = field.bytes;
      named = true;
    } else if (Is(field, kVarType, kBytes) && !typed) {
      if (!ReadType(field.bytes, *var)) return std::nullopt;
      typed = true;
    } else if (Is(field, kVarPersistable, kVarint)) {
      var->persistable = field.varint != 0;
      var->has_persistable = true;
    } else if (Is(field, kVarCheckFeed, kVarint)) {
      var->need_check_feed = field.varint != 0;
      var->has_need_check_feed = true;
    } else {
      return std::nullopt;
    }
  }
  if (!reader.ok() || !named || !typed) return std::nullopt;
  return var;
}

}  // namespace penstock
