// The plain form, written: the bytes that protobuf writes.
#include <cstring>

#include "framework/ir/wire_fields.h"
#include "framework/ir/wire_plain.h"

namespace penstock {
namespace {

using namespace wire;

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
