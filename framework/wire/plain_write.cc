// Writes the plain form: the same bytes as protobuf.
#include "framework/wire/plain.h"
#include "framework/wire/write.h"

namespace penstock {
namespace {

using namespace wire;

struct ValueWriter {
  int number;
  std::string& out;
  void operator()(std::int32_t v) const { AppendNumberField(number, v, out); }
  void operator()(std::int64_t v) const { AppendNumberField(number, v, out); }
  void operator()(bool v) const { AppendNumberField(number, v ? 1 : 0, out); }
  void operator()(BlockRef v) const { AppendNumberField(number, v.index, out); }
  void operator()(const std::string& v) const { AppendTextField(number, v, out); }
  void operator()(float v) const { AppendFloatField(number, v, out); }
  template <typename T>
  void operator()(const std::vector<T>& list) const {
    for (const T& v : list) (*this)(v);
  }
};

void AppendSlot(int number, const Slot& slot, std::string& out) {
  AppendMessage(number, out, [&] {
    AppendTextField(kSlotName, slot.name, out);
    for (const std::string& arg : slot.args) AppendTextField(kSlotArgs, arg, out);
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
  AppendTextField(number, bytes, out);
}

void AppendOpFields(const Op& op, std::string& out) {
  for (const Slot& slot : op.inputs()) AppendSlot(kOpInputs, slot, out);
  for (const Slot& slot : op.outputs()) AppendSlot(kOpOutputs, slot, out);
  AppendTextField(kOpType, op.type(), out);
  for (const NamedAttr& attr : op.attrs()) {
    AppendMessage(kOpAttrs, out, [&] {
      AppendTextField(kAttrName, attr.name, out);
      AppendNumberField(kAttrType, static_cast<std::int64_t>(attr.value.index()), out);
      std::visit(ValueWriter{kValueField[attr.value.index()], out}, attr.value);
    });
  }
  if (op.is_target()) AppendNumberField(kOpTarget, 1, out);
}

void AppendVarFields(const Var& var, std::string& out) {
  AppendTextField(kVarName, var.name, out);
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
