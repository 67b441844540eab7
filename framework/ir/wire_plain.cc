#include "framework/ir/wire_plain.h"

#include <cstring>

namespace penstock {
namespace {

constexpr int kVarint = 0, kBytes = 2, kFixed32 = 5;  // wire types

// Field numbers of framework.proto.
constexpr int kOpInputs = 1, kOpOutputs = 2, kOpType = 3, kOpAttrs = 4, kOpTarget = 5;
constexpr int kSlotName = 1, kSlotArgs = 2;
constexpr int kAttrName = 1, kAttrType = 2;
constexpr int kVarName = 1, kVarType = 2, kVarPersistable = 3, kVarCheckFeed = 4;
constexpr int kTypeKind = 1, kTypeRows = 2, kTypeTensor = 3, kTypeArray = 4, kTypeReader = 5, kTypeTuple = 7;
constexpr int kTensorType = 1, kTensorDims = 2;
constexpr int kLodTensor = 1, kLodLevel = 2, kReaderPart = 1, kTupleElement = 1;
// Of an attribute's value, by AttrKind.
constexpr int kValueField[] = {3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15};
constexpr std::size_t kAttrKinds = std::size(kValueField);

// ---- reading

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
  if (field.number == kTypeRows) {
    if (!ReadTensor(field.bytes, type)) return false;
  } else if (field.number != kTypeTensor && field.number != kTypeArray) {
    return false;
  } else if (!ReadLodTensor(field.bytes, type)) {
    return false;
  }
  var.type = std::move(type);
  return !reader.Next(field) && reader.ok();
}

// ---- writing

void AppendVarint(std::uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void AppendTag(int number, int wire_type, std::string& out) {
  AppendVarint(static_cast<std::uint64_t>(number) << 3 | static_cast<unsigned>(wire_type), out);
}

void AppendNumberField(int number, std::int64_t value, std::string& out) {
  AppendTag(number, kVarint, out);
  AppendVarint(static_cast<std::uint64_t>(value), out);  // negative ones take ten bytes, also of 32 bits
}

// A message in a field: its length stands before it and is known after it.
template <typename Write>
void AppendMessage(int number, std::string& out, const Write& write) {
  AppendTag(number, kBytes, out);
  const std::size_t at = out.size();
  out.push_back('\0');  // room for lengths under 128
  write();
  std::size_t length = out.size() - at - 1;
  if (length < 0x80) {
    out[at] = static_cast<char>(length);
    return;
  }
  std::string digits;
  AppendVarint(length, digits);
  out.replace(at, 1, digits);
}

struct ValueWriter {
  int number;
  std::string& out;
  void operator()(std::int32_t v) const { AppendNumberField(number, v, out); }
  void operator()(std::int64_t v) const { AppendNumberField(number, v, out); }
  void operator()(bool v) const { AppendNumberField(number, v ? 1 : 0, out); }
  void operator()(BlockRef v) const { AppendNumberField(number, v.index, out); }
  void operator()(const std::string& v) const { AppendBytesField(number, v, out); }
  void operator()(float v) const {
    AppendTag(number, kFixed32, out);
    char bytes[sizeof(v)];
    std::memcpy(bytes, &v, sizeof(v));
    out.append(bytes, sizeof(v));
  }
  template <typename T>
  void operator()(const std::vector<T>& list) const {
    for (const T& v : list) (*this)(v);
  }
};

void AppendSlot(int number, const Slot& slot, std::string& out) {
  AppendMessage(number, out, [&] {
    AppendBytesField(kSlotName, slot.name, out);
    for (const std::string& arg : slot.args) AppendBytesField(kSlotArgs, arg, out);
  });
}

void AppendTensor(int number, const TensorType& type, std::string& out) {
  AppendMessage(number, out, [&] {
    AppendNumberField(kTensorType, static_cast<std::int64_t>(type.dtype), out);
    for (const Dim extent : type.shape.dims()) AppendNumberField(kTensorDims, extent, out);
  });
}

void AppendLodTensor(int number, const TensorType& type, std::string& out) {
  AppendMessage(number, out, [&] {
    AppendTensor(kLodTensor, type, out);
    if (type.has_lod_level || type.lod_level != 0) AppendNumberField(kLodLevel, type.lod_level, out);
  });
}

void AppendDescription(const Var& var, std::string& out) {
  if (var.type && var.kind == VarKind::kSelectedRows) {
    AppendTensor(kTypeRows, *var.type, out);
  } else if (var.type) {
    AppendLodTensor(var.kind == VarKind::kTensorArray ? kTypeArray : kTypeTensor, *var.type, out);
  }
  if (!var.reader.empty()) {
    AppendMessage(kTypeReader, out, [&] {
      for (const TensorType& part : var.reader) AppendLodTensor(kReaderPart, part, out);
    });
  }
  if (!var.tuple.empty()) {
    AppendMessage(kTypeTuple, out, [&] {
      for (const DType element : var.tuple)
        AppendNumberField(kTupleElement, static_cast<std::int64_t>(element), out);
    });
  }
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

void AppendBytesField(int number, std::string_view bytes, std::string& out) {
  AppendTag(number, kBytes, out);
  AppendVarint(bytes.size(), out);
  out.append(bytes);
}

void AppendOpFields(const Op& op, std::string& out) {
  for (const Slot& slot : op.inputs()) AppendSlot(kOpInputs, slot, out);
  for (const Slot& slot : op.outputs()) AppendSlot(kOpOutputs, slot, out);
  AppendBytesField(kOpType, op.type(), out);
  for (const NamedAttr& attr : op.attrs()) {
    AppendMessage(kOpAttrs, out, [&] {
      AppendBytesField(kAttrName, attr.name, out);
      AppendNumberField(kAttrType, static_cast<std::int64_t>(attr.value.index()), out);
      std::visit(ValueWriter{kValueField[attr.value.index()], out}, attr.value);
    });
  }
  if (op.is_target()) AppendNumberField(kOpTarget, 1, out);
}

void AppendVarFields(const Var& var, std::string& out) {
  AppendBytesField(kVarName, var.name, out);
  AppendMessage(kVarType, out, [&] {
    AppendNumberField(kTypeKind, static_cast<std::int64_t>(var.kind), out);
    AppendDescription(var, out);
  });
  if (var.has_persistable || var.persistable)
    AppendNumberField(kVarPersistable, var.persistable ? 1 : 0, out);
  if (var.has_need_check_feed || var.need_check_feed)
    AppendNumberField(kVarCheckFeed, var.need_check_feed ? 1 : 0, out);
}

}  // namespace penstock
